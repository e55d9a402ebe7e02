// Benchmarks appends to transcripts. Each append is a transaction, which resolves once the entry is on disk.
// Measures appends one after the other and in many sessions at once, at several sizes of the store.

import { insertSession } from "../src/store/queries/sessions/sessions.ts";
import { appendEntry } from "../src/store/queries/transcripts/append.ts";
import { plainRedactor } from "../tests/kit/redactor.ts";
import { withFilling } from "./engine-alone.ts";
import { placeOf, SENTENCE, sessionIdOf, sessionKeyOf } from "./filling.ts";
import { sessionRow } from "./instant.ts";
import { type Row, sampleFor, sizeText } from "./measure.ts";

const SESSIONS = 64;
const ROUND = 256;
const ROUNDS = 10;
/** Number of messages in the largest store: enough to show growth, and few enough to fill it quickly. */
const MESSAGES_MAX = 100_000;

export async function appends({ sizes }: { readonly sizes: readonly number[] }): Promise<Row[]> {
  return withFilling(async ({ store, filling }) => {
    const rows: Row[] = [];
    let written = 0;
    const append = async (session: number): Promise<void> => {
      written += 1;
      const content = [{ type: "text" as const, text: `${written} ${SENTENCE}` }];
      const entry = { id: `entry-${written}`, role: "user" as const, content, timestamp: written };
      const { sessionKey, sessionId } = placeOf(session);
      await store.transaction((tx) => appendEntry(tx, { sessionKey, sessionId, entry }, plainRedactor));
    };
    const together = async (sessions: number): Promise<number> => {
      const from = performance.now();
      await Promise.all(Array.from({ length: ROUND }, (_, at) => append(at % sessions)));
      return ROUND / ((performance.now() - from) / 1_000);
    };
    await store.transaction(async (tx) => {
      for (let at = 0; at < SESSIONS; at += 1) {
        await insertSession(tx, { ...sessionRow(sessionKeyOf(at), at), sessionId: sessionIdOf(at) });
      }
    });
    let filled = 0;
    for (const size of sizes.filter((one) => one <= MESSAGES_MAX)) {
      filling.messages(filled, size, (at) => ({ ...placeOf(at % SESSIONS), text: `${at} ${SENTENCE}` }));
      filled = size;
      filling.settle();
      const of = { size: sizeText(size, "messages") };
      const growth = { at: size, of: "messages in the store" };
      const latency = "append of one entry, on disk";
      const samples = await sampleFor(() => append(0), { timesMax: 500 });
      const line = { plot: latency, line: "one session" };
      rows.push({ ...of, name: latency, unit: "ms", samples, growth: { ...growth, ...line } });
      for (const sessions of [1, SESSIONS]) {
        const rates: number[] = [];
        for (let round = 0; round < ROUNDS; round += 1) rates.push(await together(sessions));
        const name = `appends, ${sessions === 1 ? "one session" : `${SESSIONS} sessions at once`}`;
        const rate = { plot: "appends a second", line: name };
        rows.push({ ...of, name, unit: "/s", samples: rates, growth: { ...growth, ...rate } });
      }
    }
    return rows;
  });
}
