// Decides whether the client of a task may still read it. The client's address is told of the task's end only
// then (PU2 of push.ts).
// The key of a task's session contains a hash of its client's token, so this check needs no run, which may
// have been deleted with its session.

import { createGate } from "../../access/token.ts";
import { a2aContext } from "../../core/shapes/session-key.ts";
import type { Settings, TokenSettings } from "../../core/shapes/settings/settings.ts";
import { contextOwner } from "../../flows/session/client-session.ts";
import { listAccessTokens } from "../../store/queries/access-tokens.ts";
import type { Db } from "../../store/sql.ts";
import type { Clock } from "../../world.ts";
import { currentRights } from "../auth.ts";

interface ReaderParts {
  readonly settings: Settings;
  readonly db: Db;
  readonly clock: Pick<Clock, "now">;
  /** The gateway's own token and those of the configuration. */
  readonly tokens: readonly TokenSettings[];
}

/** Returns the check of the client to which the session of a task belongs. */
export function taskReaders({ settings, db, clock, tokens }: ReaderParts) {
  return async (sessionKey: string): Promise<boolean> => {
    const rows = await listAccessTokens(db, clock.now());
    const reader = currentRights(tokens, rows).find(
      ({ id }) => a2aContext(sessionKey, contextOwner(id)) !== undefined,
    );
    return reader !== undefined && createGate(settings, reader, "read")(sessionKey);
  };
}
