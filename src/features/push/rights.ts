// Decides what the owner of a device may see and answer now: as much as the token with which the device was
// added (I13). ntfy is a setting, so its reader may answer everything.

import { createGate, type TokenRights } from "../../access/token.ts";
import { mayAnswerPermissions } from "../../core/rules/scopes.ts";
import type { Settings, TokenSettings } from "../../core/shapes/settings/settings.ts";
import { currentRights } from "../../gateway/auth.ts";
import { listAccessTokens } from "../../store/queries/access-tokens.ts";
import type { Db } from "../../store/sql.ts";
import { getDevice, type PushDevice } from "./store.ts";

/** The place in routes and buttons that stands for the ntfy topic of the settings. */
export const NTFY = "ntfy";

export interface Reader {
  readonly device?: PushDevice;
  /** Id of the token that counts as the person who decides. */
  readonly by: string;
  /** Whether the token covers every session. */
  readonly everySession: boolean;
  sees(sessionKey: string): boolean;
  mayAnswer(sessionKey: string): boolean;
}

interface ReaderParts {
  readonly db: Db;
  readonly settings: Settings;
  readonly tokens: readonly TokenSettings[];
  readonly now: number;
}

/** Returns the reader at a place, or undefined if the device was removed, or its token was. */
export async function readerAt(to: string, parts: ReaderParts): Promise<Reader | undefined> {
  const { db, settings, tokens, now } = parts;
  if (to === NTFY) {
    const all = (): boolean => true;
    return settings.push.ntfy && { by: NTFY, everySession: true, sees: all, mayAnswer: all };
  }
  const device = await getDevice(db, to);
  if (device === undefined) return undefined;
  const rows = await listAccessTokens(db, now);
  const rights: TokenRights | undefined = currentRights(tokens, rows).find(
    ({ id }) => id === device.createdBy,
  );
  if (rights === undefined) return undefined;
  const sends = createGate(settings, rights, "send");
  return {
    device,
    by: device.createdBy,
    everySession: rights.patterns === undefined,
    sees: createGate(settings, rights, "list"),
    mayAnswer: (sessionKey) => mayAnswerPermissions(rights) && sends(sessionKey),
  };
}
