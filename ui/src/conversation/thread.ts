// Owns what of a transcript is held in the page: a window of its messages, the runs that wrote them, and what
// the session is now. Pure: reading and showing are elsewhere.
// TH1: the window holds at most WINDOW_MAX messages, in order, each once, without a gap.
// TH2: what is let go at one end can be read again: `nextBefore` and `nextAfter` say from where.

import type { PayloadOf } from "../../../src/gateway/client/web.ts";

export type Page = PayloadOf<"chat.history">;
export type Message = Page["messages"][number];
export type Runs = NonNullable<Page["runs"]>;
export type Run = Runs[string];
export type Now = NonNullable<Page["now"]>;

/** Messages in the document at most. */
export const WINDOW_MAX = 300;

export interface Thread {
  readonly sessionKey: string;
  /** Another one after a reset; absent before the first message to a free name. */
  readonly sessionId: string | undefined;
  readonly thinkingLevel: string;
  /** Oldest first. */
  readonly messages: readonly Message[];
  readonly runs: Runs;
  /** Messages before which the model reads a summary, and since when. */
  readonly compactions?: Page["compactions"] | undefined;
  readonly nextBefore?: string | undefined;
  /** Set while the window does not reach the newest message. */
  readonly nextAfter?: string | undefined;
  readonly now?: Now | undefined;
}

export function threadOf(page: Page): Thread {
  const { sessionKey, sessionId, thinkingLevel, messages, runs = {}, compactions, now } = page;
  const { nextBefore, nextAfter } = page;
  return { sessionKey, sessionId, thinkingLevel, messages, runs, compactions, nextBefore, nextAfter, now };
}

/** The runs that the window still needs: those of its messages, and those that have not ended. */
function neededRuns(messages: readonly Message[], runs: Runs): Runs {
  const ids = new Set(messages.map(({ runId }) => runId));
  return Object.fromEntries(
    Object.entries(runs).filter(([id, { endedAt }]) => ids.has(id) || endedAt === undefined),
  );
}

/**
 * What is known of the runs, with what a page tells. A run that is told of as before stays the same object:
 * it is not drawn again. The newest page tells of every run that has not ended: others have.
 */
function newerRuns(before: Runs, page: Page): Runs {
  const { runs: told = {}, now } = page;
  const left = Object.entries(before).filter(
    ([id, { endedAt }]) => now === undefined || endedAt !== undefined || id in told,
  );
  const changed = Object.entries(told).filter(
    ([id, run]) => JSON.stringify(before[id]) !== JSON.stringify(run),
  );
  return { ...Object.fromEntries(left), ...Object.fromEntries(changed) };
}

/** What a page tells beside its messages. */
export function withNow(thread: Thread, page: Page): Thread {
  const runs = newerRuns(thread.runs, page);
  const compactions = { ...thread.compactions, ...page.compactions };
  return { ...thread, runs, compactions, thinkingLevel: page.thinkingLevel, now: page.now ?? thread.now };
}

/** The window with the page before it in front. The other end is let go where it is too long. */
export function withOlder(thread: Thread, page: Page): Thread {
  const known = new Set(thread.messages.map(({ id }) => id));
  const all = [...page.messages.filter(({ id }) => !known.has(id)), ...thread.messages];
  const messages = all.slice(0, WINDOW_MAX);
  const runs = neededRuns(messages, newerRuns(thread.runs, page));
  const cut = messages.length < all.length;
  return {
    ...{ ...thread, messages, runs, nextBefore: page.nextBefore },
    compactions: { ...page.compactions, ...thread.compactions },
    nextAfter: cut ? messages.at(-1)?.id : thread.nextAfter,
  };
}

/** The window with the page behind it at its end. `keep`: which end stays where it is too long. */
export function withNewer(thread: Thread, page: Page, keep: "oldest" | "newest"): Thread {
  const known = new Set(thread.messages.map(({ id }) => id));
  const fresh = page.messages.filter(({ id }) => !known.has(id));
  const all = fresh.length === 0 ? thread.messages : [...thread.messages, ...fresh];
  const over = all.length > WINDOW_MAX;
  const messages = !over ? all : keep === "oldest" ? all.slice(0, WINDOW_MAX) : all.slice(-WINDOW_MAX);
  const told = withNow(thread, page);
  return {
    ...{ ...told, messages, runs: neededRuns(messages, told.runs) },
    nextBefore: over && keep === "newest" ? messages[0]?.id : thread.nextBefore,
    nextAfter: over && keep === "oldest" ? messages.at(-1)?.id : page.nextAfter,
  };
}

/** The run that holds the session's lane, as far as this page knows. */
export function currentRun(thread: Thread): [string, Run] | undefined {
  return Object.entries(thread.runs).find(([, { state }]) => state === "running" || state === "waiting");
}

/** The chain of the newest run. */
export function lastChain(thread: Thread): string | undefined {
  const runs = Object.values(thread.runs);
  return runs.toSorted((a, b) => b.acceptedAt - a.acceptedAt)[0]?.chainId;
}
