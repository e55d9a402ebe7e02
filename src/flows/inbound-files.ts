// Owns the stored dates of what came in at channels: when messages of one person are joined, and how long
// files are kept that people sent to a session.
// FI1: the date is a row, written by the transaction that keeps the message: a crash before it leaves a
//      folder that the next start removes, a crash after it none.
// FI2: the files go with their session, or after a month.

import type { Settings } from "../core/settings.ts";
import type { DeadlineHandler } from "../engine/deadlines.ts";
import type { Acceptor } from "../engine/finish.ts";
import type { Unit } from "../engine/unit.ts";
import { deadlineKeysWith, hasDeadlineOf } from "../store/deadlines.ts";
import type { Db } from "../store/sql.ts";
import { attachmentDir } from "./attachments.ts";

/** The kind of the stored deadline at which messages of one person are joined to a run. */
export const INBOUND_DEADLINE = "inbound";

/** The kind of the stored deadline at which a folder of files that people sent is removed. */
export const INBOUND_FILES_DEADLINE = "inbound_files";

const KEPT_MS = 30 * 24 * 3_600_000;
const PREFIX = "in-";
/** Of the name of a folder: its beginning and a UUID. */
const FOLDER_CHARS = PREFIX.length + 36;
/** A date's key is the folder, a space, and the session. Counted from 1, as databases do. */
const SESSION_AT = FOLDER_CHARS + 2;

type Dates = Pick<Acceptor, "setDeadline">;

/** The name of a folder for what comes with one message. */
export function inboundFolder(uuid: string): string {
  return `${PREFIX}${uuid}`;
}

/** Whether a folder of attachments holds what people sent. */
export function isInboundFolder(id: string): boolean {
  return id.startsWith(PREFIX);
}

/** Whether somebody still needs such a folder. */
export function hasInboundFiles(db: Db, id: string): Promise<boolean> {
  return hasDeadlineOf(db, INBOUND_FILES_DEADLINE, id);
}

/** The folder is kept for this session. */
export async function keepInboundFiles(
  dates: Dates,
  unit: Unit,
  id: string,
  sessionKey: string,
): Promise<void> {
  const key = `${id} ${sessionKey}`;
  await dates.setDeadline(unit, { kind: INBOUND_FILES_DEADLINE, key, dueAt: unit.now + KEPT_MS });
}

/** The session goes, and what people sent to it. */
export async function dropInboundFiles(dates: Dates, unit: Unit, sessionKey: string): Promise<void> {
  const keys = await deadlineKeysWith(unit.tx, INBOUND_FILES_DEADLINE, SESSION_AT, sessionKey);
  for (const key of keys) {
    await dates.setDeadline(unit, { kind: INBOUND_FILES_DEADLINE, key, dueAt: unit.now });
  }
}

/** Removes folders whose date has come. `remove` is called after the commit; what is gone already is fine. */
export function createFilesCleanup(
  settings: Settings,
  remove: (workspace: string, dir: string) => void,
): DeadlineHandler {
  const workspaces = [...new Set(settings.agents.map(({ workspace }) => workspace))];
  return async (unit, key) => {
    const dir = attachmentDir(key.slice(0, FOLDER_CHARS));
    unit.after(() => {
      for (const workspace of workspaces) remove(workspace, dir);
    });
    return "done";
  };
}
