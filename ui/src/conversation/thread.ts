// Owns the part of a transcript that the page has loaded: a window of messages, their runs, and the session's
// current state. Pure functions.
// TH1: the window holds at most WINDOW_MAX messages, in order, each once, without a gap.
// TH2: messages dropped at one end can be read again, from `nextBefore` or `nextAfter`.

import type { PayloadOf } from "../../../src/contract/client/web.ts";

export type Page = PayloadOf<"chat.history">;
export type Message = Page["messages"][number];
export type Runs = NonNullable<Page["runs"]>;
export type Run = Runs[string];
export type Now = NonNullable<Page["now"]>;

export const WINDOW_MAX = 300;

export interface Thread {
  readonly sessionKey: string;
  /** Id of the transcript. A reset of the session changes it. Undefined if the session was never used. */
  readonly sessionId: string | undefined;
  readonly thinkingLevel: string;
  /** Oldest first. */
  readonly messages: readonly Message[];
  readonly runs: Runs;
  /** For each compaction, its time, by the id of the first message that was not summarized. */
  readonly compactions?: Page["compactions"] | undefined;
  /** Labels that messages brought into the session, by message. */
  readonly labels?: Page["labels"] | undefined;
  readonly nextBefore?: string | undefined;
  /** Present as long as there are newer messages than the window contains. */
  readonly nextAfter?: string | undefined;
  readonly now?: Now | undefined;
}

export function threadOf(page: Page): Thread {
  return { ...page, sessionId: page.sessionId, runs: page.runs ?? {} };
}

/** Returns the runs of the window's messages, and those that have not ended. */
function neededRuns(messages: readonly Message[], runs: Runs): Runs {
  const ids = new Set(messages.map(({ runId }) => runId));
  return Object.fromEntries(
    Object.entries(runs).filter(([id, { endedAt }]) => ids.has(id) || endedAt === undefined),
  );
}

/**
 * Merges the runs of a page into the known ones. An unchanged run stays the same object, so it is not drawn
 * again. A page with `now` lists every unfinished run. So a known run that it does not list has ended, and is
 * dropped.
 */
function newerRuns(before: Runs, { runs = {}, now }: Page): Runs {
  const left = Object.entries(before).filter(
    ([id, { endedAt }]) => now === undefined || endedAt !== undefined || id in runs,
  );
  const changed = Object.entries(runs).filter(
    ([id, run]) => JSON.stringify(before[id]) !== JSON.stringify(run),
  );
  return Object.fromEntries([...left, ...changed]);
}

/** Applies the runs and the state of a page, but not its messages. */
export function withNow(thread: Thread, page: Page): Thread {
  const runs = newerRuns(thread.runs, page);
  const compactions = { ...thread.compactions, ...page.compactions };
  const labels = { ...thread.labels, ...page.labels };
  const { thinkingLevel, now = thread.now } = page;
  return { ...thread, runs, compactions, labels, thinkingLevel, now };
}

/** Adds the page before or after the window. `keep`: which messages stay if the window is then too long. */
function addPage(thread: Thread, page: Page, side: "before" | "after", keep: "oldest" | "newest"): Thread {
  const known = new Set(thread.messages.map(({ id }) => id));
  const fresh = page.messages.filter(({ id }) => !known.has(id));
  const sides = side === "before" ? [fresh, thread.messages] : [thread.messages, fresh];
  const all = fresh.length === 0 ? thread.messages : sides.flat();
  const over = all.length > WINDOW_MAX;
  const messages = !over ? all : keep === "oldest" ? all.slice(0, WINDOW_MAX) : all.slice(-WINDOW_MAX);
  const next = withNow(thread, page);
  const { nextBefore } = side === "before" ? page : thread;
  const { nextAfter } = side === "after" ? page : thread;
  return {
    ...next,
    messages,
    runs: neededRuns(messages, next.runs),
    nextBefore: over && keep === "newest" ? messages[0]?.id : nextBefore,
    nextAfter: over && keep === "oldest" ? messages.at(-1)?.id : nextAfter,
  };
}

export const withOlder = (thread: Thread, page: Page): Thread => addPage(thread, page, "before", "oldest");

export const withNewer = (thread: Thread, page: Page, keep: "oldest" | "newest"): Thread =>
  addPage(thread, page, "after", keep);

export function currentRun(thread: Thread): [string, Run] | undefined {
  return Object.entries(thread.runs).find(([, { state }]) => state === "running" || state === "waiting");
}

export function lastChain(thread: Thread): string | undefined {
  const runs = Object.values(thread.runs);
  return runs.toSorted((a, b) => b.acceptedAt - a.acceptedAt)[0]?.chainId;
}
