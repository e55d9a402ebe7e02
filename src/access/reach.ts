// Decides how a restart with other settings would change the way a caller reaches the gateway, so that nobody
// is locked out by mistake.

import { type Settings, storeName, type TokenSettings } from "../core/shapes/settings/settings.ts";
import type { TokenRights } from "./token.ts";

interface Callers {
  readonly now: TokenRights;
  /**
   * The settings of the caller's token after the restart. Undefined if the token would no longer be valid.
   */
  readonly next: Pick<TokenSettings, "role" | "scopes" | "sessions"> | undefined;
}

function explainToken({ now, next }: Callers): string[] {
  if (next === undefined)
    return ["The token that you use is not valid after a restart. Sign in with another one."];
  const keeps =
    next.scopes.includes("operator.admin") && next.role === now.role && next.sessions === undefined;
  return keeps ? [] : ["After a restart, the token that you use has fewer rights, and can't edit this file."];
}

/** Returns a sentence for each change that the caller would notice when it connects again. */
export function reachChanges(running: Settings, next: Settings, callers: Callers): string[] {
  const [before, after] = [running.gateway, next.gateway];
  const changes = explainToken(callers);
  if (before.host !== after.host || before.port !== after.port)
    changes.push(`The gateway listens on ${after.host}:${after.port} after a restart.`);
  for (const name of ["allowedHosts", "allowedOrigins"] as const) {
    const gone = before[name].filter((one) => !after[name].includes(one)).join(", ");
    if (gone !== "") changes.push(`The gateway refuses ${gone} after a restart (gateway.${name}).`);
  }
  const moved = running.store.dir !== next.store.dir || running.store.postgresUrl !== next.store.postgresUrl;
  if (moved)
    changes.push(
      `The gateway uses another store after a restart, with other sessions: ${storeName(next.store)}.`,
    );
  return changes;
}
