// Owns two stored deadlines for channel messages: joining consecutive messages of one person, and removing
// files that people sent.
// FI1: the transaction that stores the message also stores the deadline. If a crash prevents this
//      transaction, the next start removes the folder of the files.
// FI2: the files are removed with their session, or after a month.

import type { Settings } from "../../core/shapes/settings/settings.ts";
import type { DeadlineHandler } from "../../engine/deadlines.ts";
import type { Unit } from "../../engine/unit.ts";
import { deadlineKeysWith, hasDeadlineOf } from "../../store/queries/deadlines.ts";
import type { Db } from "../../store/sql.ts";
import { attachmentDir } from "../job/attachments.ts";

/** The kind of the stored deadline at which messages of one person are joined into a run. */
export const INBOUND_DEADLINE = "inbound";

/** The kind of the stored deadline at which a folder of files that people sent is removed. */
export const INBOUND_FILES_DEADLINE = "inbound_files";

const KEPT_MS = 30 * 24 * 3_600_000;
const PREFIX = "in-";
/** Length of a folder's name: the prefix and a UUID. */
const FOLDER_CHARS = PREFIX.length + 36;
/**
 * Position of the session in a deadline's key, counted from 1 as in SQL. The key is the folder, a space and
 * the session.
 */
const SESSION_AT = FOLDER_CHARS + 2;

/** Returns the name of the folder for the files of one message. */
export function inboundFolder(uuid: string): string {
  return `${PREFIX}${uuid}`;
}

/** Returns whether a folder of attachments holds files that people sent. */
export function isInboundFolder(id: string): boolean {
  return id.startsWith(PREFIX);
}

/** Returns whether the folder is still needed. */
export function hasInboundFiles(db: Db, id: string): Promise<boolean> {
  return hasDeadlineOf(db, INBOUND_FILES_DEADLINE, id);
}

/** Stores that the folder belongs to this session, and when it is removed. */
export async function keepInboundFiles(unit: Unit, id: string, sessionKey: string): Promise<void> {
  const key = `${id} ${sessionKey}`;
  await unit.setDeadline({ kind: INBOUND_FILES_DEADLINE, key, dueAt: unit.now + KEPT_MS });
}

/** Makes the files that people sent to a deleted session due for removal. */
export async function dropInboundFiles(unit: Unit, sessionKey: string): Promise<void> {
  const keys = await deadlineKeysWith(unit.tx, INBOUND_FILES_DEADLINE, SESSION_AT, sessionKey);
  for (const key of keys) {
    await unit.setDeadline({ kind: INBOUND_FILES_DEADLINE, key, dueAt: unit.now });
  }
}

/** Removes folders whose date has passed. Calls `remove` after the commit; a missing folder is fine. */
export function createFilesCleanup(
  settings: Settings,
  remove: (workspace: string, dir: string) => void,
): DeadlineHandler {
  return async (unit, key) => {
    const workspaces = new Set(settings.agents.map(({ workspace }) => workspace));
    const dir = attachmentDir(key.slice(0, FOLDER_CHARS));
    unit.after(() => {
      for (const workspace of workspaces) remove(workspace, dir);
    });
    return "done";
  };
}
