// Updates the readable copies of transcripts after each commit. Part of the composition root.

import type { LiveEvent } from "../core/shapes/event.ts";
import type { Settings } from "../core/shapes/settings/settings.ts";
import type { Engine } from "../engine/engine.ts";
import { getSession } from "../store/queries/sessions/sessions.ts";
import type { Store } from "../store/sql.ts";
import { type JsonlCopies, openJsonlCopies } from "../store/sqlite/jsonl-copies.ts";
import type { Log, World } from "../world.ts";

/** Returns the copies for a store of one machine. A cluster has none. */
export function jsonlCopiesOf(of: { settings: Settings; world: World }, store: Store): JsonlCopies {
  const { settings, world } = of;
  if (store.shared === undefined) {
    const { dir } = settings.store;
    return openJsonlCopies({ dir, log: world.log, clock: world.clock, db: store.db });
  }
  return { note: () => {}, flush: async () => {}, remove: async () => {} };
}

/** Updates the readable copies of transcripts after each commit. */
export function followTranscripts(engine: Engine, store: Store, jsonlCopies: JsonlCopies, log: Log): void {
  const noteSession = async (key: string): Promise<void> => {
    try {
      const session = await getSession(store.db, key);
      if (session !== undefined) jsonlCopies.note(session.sessionId);
    } catch (error) {
      // The store may already be closed at a stop. The next start writes the copy.
      log.warn({ err: error, sessionKey: key }, "could not start a transcript's readable copy");
    }
  };
  engine.bus.subscribe((event: LiveEvent) => {
    if (event.kind === "message") jsonlCopies.note(event.sessionId);
    // If the database's answer to a commit was lost, the run's messages are not published, but its end is. So
    // the copy is updated at the end, too.
    if (event.kind === "run_ended" && event.sessionId !== undefined) jsonlCopies.note(event.sessionId);
    if (event.kind === "session" && (event.change === "created" || event.change === "reset")) {
      void noteSession(event.sessionKey);
    }
  });
}
