// Benchmarks reading a long transcript: its newest page, with `sessions_history` and directly from the store,
// and a page from the middle.

import { insertSession } from "../src/store/queries/sessions/sessions.ts";
import { readHistory } from "../src/store/queries/transcripts/transcripts.ts";
import { withFilling } from "./engine-alone.ts";
import { placeOf, SENTENCE, sessionIdOf, sessionKeyOf } from "./filling.ts";
import { sessionRow } from "./instant.ts";
import { type Row, sampleFor, sizeText } from "./measure.ts";
import { callerOf } from "./session-caller.ts";

/** Length of the longest transcript in messages: more than any real transcript has. */
const MESSAGES_MAX = 100_000;

export async function histories({ sizes }: { readonly sizes: readonly number[] }): Promise<Row[]> {
  return withFilling(async ({ store, engine, settings, filling }) => {
    const rows: Row[] = [];
    const talker = { ...sessionRow(sessionKeyOf(0), 1), sessionId: sessionIdOf(0) };
    await store.transaction((tx) => insertSession(tx, talker));
    const call = callerOf({ store, engine, settings }, talker, "self");
    let filled = 0;
    for (const size of sizes.filter((one) => one <= MESSAGES_MAX)) {
      filling.messages(filled, size, (at) => ({ ...placeOf(0), text: `${at} ${SENTENCE}` }));
      filled = size;
      filling.settle();
      const { sessionKey, sessionId } = placeOf(0);
      const before = `message-${Math.floor(size / 2)}`;
      const page = { sessionId, limit: 50, includeTools: true };
      const reads = {
        "sessions_history, last 50": () => call("sessions_history", { sessionKey, limit: 50 }),
        "store, last 50": () => readHistory(store.db, page),
        "store, 50 from the middle": () => readHistory(store.db, { ...page, before }),
      };
      for (const [line, read] of Object.entries(reads)) {
        rows.push({
          name: `history: ${line}`,
          size: sizeText(size, "messages in the session"),
          unit: "ms",
          samples: await sampleFor(read),
          target: "< 3",
          growth: { plot: "history of one session", line, at: size, of: "messages in the session" },
        });
      }
    }
    return rows;
  });
}
