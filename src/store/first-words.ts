// Gives first words to the sessions that have none although somebody wrote in them: sessions of an earlier
// version, of another process that still runs it, and restored ones. Runs after each start, next to other
// work.

import type { Redactor } from "../core/text/redact/redact.ts";
import { pause } from "../world/pause.ts";
import type { Clock } from "../world/plain.ts";
import { StoreConflict } from "./problems.ts";
import { findFirstWords, untitledSessions } from "./queries/transcripts/first-texts.ts";
import type { Store } from "./sql.ts";

/** Default number of rows that a query reads. */
const ROWS_MAX = 500;
/** Maximum number of sessions that a transaction changes. */
const SESSIONS_MAX = 50;

interface FillOptions {
  readonly redactor: Redactor;
  readonly clock: Clock;
  /** Ends the work after the current transaction. */
  readonly signal?: AbortSignal;
  /** Number of rows that a query reads. Default 500. */
  readonly rowsMax?: number;
}

/** Stores the first words of all sessions that have none, the newest sessions first. */
export async function fillFirstWords(
  store: Pick<Store, "db" | "transaction">,
  { redactor, clock, signal, rowsMax = ROWS_MAX }: FillOptions,
): Promise<void> {
  const isStopped = (): boolean => signal?.aborted === true;
  for (let before: number | undefined = Number.MAX_SAFE_INTEGER; before !== undefined; ) {
    if (isStopped()) return;
    const page = await untitledSessions(store.db, before, rowsMax);
    for (let at = 0; at < page.sessionIds.length; at += SESSIONS_MAX) {
      if (isStopped()) return;
      const some = page.sessionIds.slice(at, at + SESSIONS_MAX);
      try {
        await store.transaction((tx) => findFirstWords(tx, some, redactor));
      } catch (error) {
        // A session that is in use gets its words after the next start.
        if (!(error instanceof StoreConflict)) throw error;
      }
    }
    // Lets other work run between the pages.
    await pause(clock, 0, signal);
    before = page.before;
  }
}
