// Owns the revocations of the tokens of joined windows. A revocation covers all tokens of one window, which
// share a `series`. It is stored as a deadline: when the deadline passes, every token of the series has
// expired, and the revocation is deleted. The ended connections of MCP clients are revoked in the same way.

import type { DEVICE_METHODS } from "../contract/methods/devices.ts";
import { SESSION_TOKEN_MS } from "../contract/session-token.ts";
import { ok } from "../core/shapes/errors.ts";
import type { Unit } from "../engine/unit.ts";
import { hasDeadline } from "../store/queries/deadlines.ts";
import type { Db } from "../store/sql.ts";
import { commitAnswer, type Methods } from "./call.ts";

/** Kind of the deadlines at which revocations are forgotten. The key is the series. */
export const REVOKED_DEADLINE = "session_token";

/** Revokes a series for a time. */
export const revoke = (unit: Unit, series: string, ms: number): Promise<void> =>
  unit.setDeadline({ kind: REVOKED_DEADLINE, key: series, dueAt: unit.now + ms });

export const isRevoked = (db: Db, series: string): Promise<boolean> =>
  hasDeadline(db, REVOKED_DEADLINE, series);

export const sessionTokenMethods: Methods<Extract<keyof typeof DEVICE_METHODS, `session.${string}`>> = {
  "session.token.revoke": {
    handle: (ctx, { series }) =>
      commitAnswer(ctx, async (unit) => {
        await revoke(unit, series, SESSION_TOKEN_MS);
        return ok({ ok: true, series, revokedAtMs: unit.now });
      }),
  },
};
