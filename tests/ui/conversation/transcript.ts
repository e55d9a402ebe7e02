// Messages in the transcript of main that no run has written.

import type { Message } from "../../../src/core/shapes/message.ts";
import { appendEntry } from "../../../src/store/queries/transcripts/append.ts";
import type { House } from "../../gateway/kit.ts";
import { plainRedactor } from "../../kit/redactor.ts";

const MAIN = "agent:main:main";

export async function hold(house: House, messages: readonly Message[]): Promise<void> {
  const { sessionId = "" } = await (await house.client()).request("chat.history", {
    sessionKey: MAIN,
    limit: 1,
  });
  await house.store.transaction(async (tx) => {
    for (const entry of messages)
      await appendEntry(tx, { sessionKey: MAIN, sessionId, entry }, plainRedactor);
  });
}
