// Owns how readable copies of transcripts follow what is committed. Part of the composition root.

import type { LiveEvent } from "../core/event.ts";
import type { Settings } from "../core/settings.ts";
import type { Engine } from "../engine/engine.ts";
import { type JsonlCopies, openJsonlCopies } from "../store/jsonl-copies.ts";
import { getSession } from "../store/sessions.ts";
import type { Store } from "../store/sql.ts";
import type { Log, World } from "../world.ts";

/** Readable copies of transcripts are for the store of one machine; a cluster has none. */
export function jsonlCopiesOf(of: { settings: Settings; world: World }, store: Store): JsonlCopies {
  const { settings, world } = of;
  if (store.shared === undefined)
    return openJsonlCopies({ dir: settings.store.dir, log: world.log, db: store.db });
  return { note: () => {}, flush: async () => {}, remove: async () => {}, close: async () => {} };
}

/** Keeps the readable copies of transcripts in step with what is committed. */
export function followTranscripts(engine: Engine, store: Store, jsonlCopies: JsonlCopies, log: Log): void {
  const noteSession = async (key: string): Promise<void> => {
    try {
      const session = await getSession(store.db, key);
      if (session !== undefined) jsonlCopies.note(session.sessionId);
    } catch (error) {
      // The copy is repaired at the next start: at a stop the store may be closed first.
      log.warn({ err: error, sessionKey: key }, "a transcript's readable copy was not begun");
    }
  };
  engine.bus.subscribe((event: LiveEvent) => {
    if (event.kind === "message") jsonlCopies.note(event.sessionId);
    // Messages of a commit whose answer was lost are told to nobody; its end is.
    if (event.kind === "run_ended" && event.sessionId !== undefined) jsonlCopies.note(event.sessionId);
    if (event.kind === "session" && (event.change === "created" || event.change === "reset")) {
      void noteSession(event.sessionKey);
    }
  });
}
