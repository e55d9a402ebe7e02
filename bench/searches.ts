// Benchmarks full-text search at several numbers of messages: a rare word, a frequent word, and the pause of
// the event loop during a search. The pause is the longest gap between two ticks of a 1 ms timer: the search
// delays other work of the process by up to this time. Other load on the machine makes it longer.

import { optional } from "../src/core/optional.ts";
import { insertSession } from "../src/store/queries/sessions/sessions.ts";
import { withFilling } from "./engine-alone.ts";
import { placeOf, sessionIdOf, sessionKeyOf } from "./filling.ts";
import { sessionRow } from "./instant.ts";
import { type Row, sampleFor, sizeText } from "./measure.ts";
import { callerOf } from "./session-caller.ts";

/** Number of sessions that hold the messages. */
const SESSIONS = 1_000;
/** One in this many messages contains the rare word. */
const RARE_EVERY = 50_000;
const WORDS =
  "the gateway keeps what it was told and says so before anybody has to ask for it again of people";
const VOCABULARY = 20_000;

const QUESTIONS: Readonly<Record<string, { readonly query: string; readonly target?: string }>> = {
  "rare word": { query: "zyzzyva", target: "< 50" },
  "no such word": { query: "qwertzuiop", target: "< 50" },
  "rare and frequent word": { query: "zyzzyva gateway", target: "< 50" },
  "frequent word": { query: "gateway" },
  "beginning of many words": { query: "word" },
};

/** Returns a text with words of a large vocabulary. One in `RARE_EVERY` texts contains the rare word. */
function textOf(at: number): string {
  const some = [7, 131, 1_789, 40_009].map((step) => `word${(at * step) % VOCABULARY}`).join(" ");
  return `${at} ${WORDS} ${some}${at % RARE_EVERY === 77 ? " zyzzyva" : ""}`;
}

/** Returns the longest gap between two ticks during `work`, in ms. */
async function longestPause(work: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  let last = performance.now();
  const tick = (): void => {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
  };
  const timer = setInterval(tick, 1);
  try {
    await work();
    tick();
  } finally {
    clearInterval(timer);
  }
  return longest;
}

export async function searches({ sizes }: { readonly sizes: readonly number[] }): Promise<Row[]> {
  return withFilling(async ({ store, engine, settings, filling }) => {
    const rows: Row[] = [];
    filling.sessions(0, SESSIONS);
    const viewer = { ...sessionRow(sessionKeyOf(-10), SESSIONS), sessionId: sessionIdOf(-10) };
    await store.transaction((tx) => insertSession(tx, viewer));
    let filled = 0;
    for (const size of sizes) {
      filling.messages(filled, size, (at) => ({ ...placeOf(at % SESSIONS), text: textOf(at) }));
      filled = size;
      filling.settle();
      for (const mode of ["all", "agent"] as const) {
        const call = callerOf({ store, engine, settings }, viewer, mode);
        for (const [line, { query, target }] of Object.entries(QUESTIONS)) {
          const search = () => call("sessions_search", { query });
          const of = { size: sizeText(size, "messages"), unit: "ms" } as const;
          const growth = { line, at: size, of: "messages" };
          const plot = `sessions_search, sees ${mode}`;
          rows.push({
            ...of,
            name: `${plot}: ${line}`,
            samples: await sampleFor(search),
            growth: { ...growth, plot },
            ...optional({ target }),
          });
          if (mode === "agent") continue;
          const pauses: number[] = [];
          await sampleFor(async () => pauses.push(await longestPause(search)), { timesMax: 50 });
          const paused = "event loop's longest pause in a search";
          rows.push({
            ...of,
            name: `${paused}: ${line}`,
            samples: pauses,
            target: "p95 < 10",
            growth: { ...growth, plot: paused },
          });
        }
      }
    }
    return rows;
  });
}
