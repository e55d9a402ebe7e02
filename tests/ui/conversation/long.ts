// Writes a long conversation into a store.

import { appendEntry } from "../../../src/store/queries/transcripts/append.ts";
import type { House } from "../../gateway/kit.ts";
import { plainRedactor } from "../../kit/redactor.ts";
import { assistantMessage, userMessage } from "../../store/samples.ts";

export const MAIN = "agent:main:main";

/** Appends messages to the main session. Their ids and texts have their numbers, which begin at `from`. */
export async function append(house: House, from: number, count: number): Promise<void> {
  const { sessionId = "" } = await (await house.client()).request("chat.history", {
    sessionKey: MAIN,
    limit: 1,
  });
  await house.store.transaction(async (tx) => {
    for (let n = from; n < from + count; n += 1) {
      // Messages have different heights, so that no position is right by chance.
      const text = `message ${n}\n\n${"and another line of it\n".repeat((n * 7) % 5)}`;
      const entry = n % 2 === 0 ? userMessage(`m${n}`, text) : assistantMessage(`m${n}`, text);
      await appendEntry(
        tx,
        {
          sessionKey: MAIN,
          sessionId,
          entry: { ...entry, timestamp: 1e12 + n * 60_000 },
        },
        plainRedactor,
      );
    }
  });
}
