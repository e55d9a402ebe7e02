// Gives first words to the sessions that have none although somebody wrote in them: sessions of an earlier
// version, of another process that still runs it, and restored ones. Runs after each start, next to other
// work.

import type { Redactor } from "../core/text/redact/redact.ts";
import { pause } from "../world/pause.ts";
import type { World } from "../world.ts";
import { StoreConflict, StoreProblem } from "./problems.ts";
import { findFirstWords, untitledSessions } from "./queries/transcripts/first-texts.ts";
import type { Store } from "./sql.ts";

/** Default number of rows that a query reads. */
const ROWS_MAX = 500;
/** Maximum number of sessions that a transaction changes. */
const SESSIONS_MAX = 50;
/** Pause before the next try, after the store refused one. */
const RETRY_MS = 500;

interface FillOptions {
  readonly world: Pick<World, "clock" | "log" | "redactor">;
  /** Ends the work after the current transaction. */
  readonly signal?: AbortSignal;
  /** Number of rows that a query reads. Default 500. */
  readonly rowsMax?: number;
}

/**
 * Stores the first words of all sessions that have none, the newest sessions first. While the store refuses,
 * tries again.
 */
export async function fillFirstWords(
  store: Pick<Store, "db" | "transaction">,
  { world: { clock, log, redactor }, signal, rowsMax = ROWS_MAX }: FillOptions,
): Promise<void> {
  let before: number | undefined = Number.MAX_SAFE_INTEGER;
  while (before !== undefined && signal?.aborted !== true) {
    let wait = 0;
    try {
      before = await fillPage(store, redactor, { before, rowsMax }, signal);
    } catch (error) {
      if (!(error instanceof StoreProblem)) throw error;
      log.warn({ err: error }, "could not store the first words of sessions; it will be retried");
      wait = RETRY_MS;
    }
    // Lets other work run between the pages.
    await pause(clock, wait, signal);
  }
}

/** Stores the first words of a page of sessions. Returns the position of the next page, if there is one. */
async function fillPage(
  store: Pick<Store, "db" | "transaction">,
  redactor: Redactor,
  { before, rowsMax }: Record<"before" | "rowsMax", number>,
  signal: AbortSignal | undefined,
): Promise<number | undefined> {
  const page = await untitledSessions(store.db, before, rowsMax);
  for (let at = 0; at < page.sessionIds.length; at += SESSIONS_MAX) {
    if (signal?.aborted === true) return undefined;
    const some = page.sessionIds.slice(at, at + SESSIONS_MAX);
    try {
      await store.transaction((tx) => findFirstWords(tx, some, redactor));
    } catch (error) {
      // A session that is in use gets its words after the next start.
      if (!(error instanceof StoreConflict)) throw error;
    }
  }
  return page.before;
}
