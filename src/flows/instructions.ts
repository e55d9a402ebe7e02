// Keeps the texts of instruction files that an owner has confirmed, while runs with outside content may
// change the files, and lets owners answer about changes (core/rules/prompt/confirmed.ts).
// IN1: before such a run may write, the texts of all files below the place are stored as confirmed, in the
//      transaction that stores the call. So they count after a crash, too.
// IN2: files are read while the transaction holds the lock, so that of two calls at once each is compared
//      with the files as the other left them.
// IN3: an answer is about one text of one file. If the file has changed since, the answer finds nothing.
// IN4: a call that may have left a program running (`lasts`) stays stored: no answer ends it, because nothing
//      shows that the program has ended.

import { createHash } from "node:crypto";
import { optional } from "../core/optional.ts";
import { countedText } from "../core/rules/prompt/confirmed.ts";
import { fail, ok, type Result } from "../core/shapes/errors.ts";
import type {
  AnsweredPermission,
  InstructionChange,
  PermissionDecision,
  PermissionQuestion,
} from "../core/shapes/permission.ts";
import type { Settings } from "../core/shapes/settings/settings.ts";
import { unifiedDiff } from "../core/text/line-diff.ts";
import { safeText } from "../core/text/safe-text.ts";
import type { Unit } from "../engine/unit.ts";
import { takeAdvisoryLock } from "../store/locks.ts";
import { holdMemory, memoryRowId, readMemory, writeMemory } from "../store/queries/agent-memory.ts";
import {
  deleteInstructionRows,
  type InstructionRows,
  type KeptText,
  type OpenCall,
  pendingTexts,
  putInstructionRow,
  readInstructionRows,
} from "../store/queries/instruction-contents.ts";
import { getRun } from "../store/queries/runs/runs.ts";
import type { Db } from "../store/sql.ts";
import { isInside } from "../world/folders.ts";
import { type AnswerRights, answerPermission, type PermissionAnswer } from "./permission.ts";

/** A file that may be part of a prompt, as it is now. */
export interface PromptFile {
  readonly path: string;
  /** Where its text is, if a link leads there. */
  readonly real: string;
  /** Its beginning, as a prompt would have it. Absent: the file can't be used. */
  readonly text?: string;
  readonly bytes?: number;
}

/** Reads and restores the files that may be part of a prompt. */
export interface PromptFiles {
  readAll(settings: Settings): Promise<readonly PromptFile[]>;
  /** Writes a file, or deletes it if there is no text. A link is replaced, not followed. */
  restore(path: string, text: string | undefined, temporaryId: string): Promise<Result<void>>;
}

export interface InstructionParts {
  readonly settings: Settings;
  readonly guidance: PromptFiles;
}

/** Like `InstructionParts`, where it is possible that no text of a file enters a prompt. */
export interface InstructionDeps extends Pick<InstructionParts, "settings"> {
  readonly guidance?: PromptFiles | undefined;
}

/** Time after which a call that belongs to no run counts as ended. */
const CALL_MAX_MS = 3_600_000;

const mayWrite = ({ path }: OpenCall, file: Pick<PromptFile, "path" | "real">): boolean =>
  isInside(path, file.path) || isInside(path, file.real);

/** Returns whether a run with outside content may have written the file. */
export function isGuarded({ calls, kept }: InstructionRows, file: PromptFile): boolean {
  return kept.get(file.path)?.state === "pending" || calls.some((call) => mayWrite(call, file));
}

/** Stores a call that may write below a folder, and the texts that count below it (IN1). */
export async function beginWriting(unit: Unit, parts: InstructionParts, call: OpenCall): Promise<void> {
  await takeAdvisoryLock(unit.tx, "instructions");
  const rows = await readInstructionRows(unit.tx);
  if (rows.calls.some(({ id }) => id === call.id)) return;
  const { state: _, lasts: __, ...fields } = call;
  for (const file of await parts.guidance.readAll(parts.settings)) {
    if (file.text === undefined || !mayWrite(call, file)) continue;
    if (rows.kept.has(file.path) || isGuarded(rows, file)) continue;
    const { path, text, bytes } = file;
    const row = { ...fields, id: path, path, text, ...optional({ bytes }) };
    await putInstructionRow(unit.tx, { ...row, state: "confirmed" });
  }
  await putInstructionRow(unit.tx, call);
}

/** Returns whether a call can no longer write. */
async function hasEnded(unit: Unit, { lasts, runId, at }: OpenCall): Promise<boolean> {
  if (lasts) return false;
  if (runId === undefined) return at < unit.now - CALL_MAX_MS;
  const run = await getRun(unit.tx, runId);
  return run === undefined || run.endedAt !== undefined;
}

/**
 * Forgets calls that have ended, `ending` among them, and stores which of the files that they could write
 * wait for an owner. Returns the paths of those that newly do.
 */
export async function settleInstructions(
  unit: Unit,
  parts: InstructionParts,
  ending?: string,
): Promise<readonly string[]> {
  await takeAdvisoryLock(unit.tx, "instructions");
  const rows = await readInstructionRows(unit.tx);
  const ended = new Set<string>();
  for (const call of rows.calls)
    if ((call.id === ending && !call.lasts) || (await hasEnded(unit, call))) ended.add(call.id);
  const changed: string[] = [];
  const settled: string[] = [...ended];
  const files = await parts.guidance.readAll(parts.settings);
  const known = new Set(files.map(({ path }) => path));
  // Files about which the store knows something, but that no longer exist.
  const gone = [...rows.kept.keys()].filter((id) => id.startsWith("/") && !known.has(id));
  for (const file of [...files, ...gone.map((path): PromptFile => ({ path, real: path }))]) {
    const row = rows.kept.get(file.path);
    const calls = rows.calls.filter((call) => mayWrite(call, file));
    const cause = row ?? calls[0];
    if (cause === undefined) continue;
    const { waits } = countedText({ current: file.text, confirmed: row?.text, guarded: true });
    if (waits && row?.state !== "pending") {
      const { source, sessionKey, runId } = calls.find(({ id }) => id === ending) ?? calls[0] ?? cause;
      const who = { source, sessionKey, ...optional({ runId }) };
      const text = optional({ text: row?.text, bytes: row?.bytes });
      const { path } = file;
      await putInstructionRow(unit.tx, { id: path, state: "pending", path, at: unit.now, ...who, ...text });
      unit.publish({ kind: "session", sessionKey, change: "state" });
      changed.push(path);
    } else if (!waits && row !== undefined) {
      const isOpen = calls.some(({ id }) => !ended.has(id));
      if (!isOpen) settled.push(row.id);
      else if (row.state === "pending") await putInstructionRow(unit.tx, { ...row, state: "confirmed" });
    }
  }
  await deleteInstructionRows(unit.tx, settled);
  return changed;
}

function agentOfMemory(id: string): string | undefined {
  const prefix = memoryRowId("");
  return id.startsWith(prefix) ? id.slice(prefix.length) : undefined;
}

interface Pending {
  readonly row: KeptText;
  readonly now: Pick<PromptFile, "text" | "bytes">;
  readonly change: InstructionChange;
}

async function listPending(db: Db, { settings, guidance }: InstructionParts): Promise<Pending[]> {
  const rows = await pendingTexts(db);
  if (rows.length === 0) return [];
  const files = await guidance.readAll(settings);
  const all = rows.map(async (row): Promise<Pending> => {
    const { path, source, sessionKey, at: since, text: before } = row;
    const agentId = agentOfMemory(row.id);
    const now: Pending["now"] =
      agentId === undefined
        ? (files.find((file) => file.path === path) ?? {})
        : { text: (await readMemory(db, agentId)).text };
    const { text } = now;
    const kind = text === undefined ? "deleted" : before === undefined ? "new" : "changed";
    const diff = safeText(unifiedDiff(before ?? "", text ?? "").join("\n"));
    // The id begins with a letter that no id of a permission request has, so no answer reaches the other.
    const digest = createHash("sha256").update(JSON.stringify([path, text ?? null]));
    return {
      row,
      now,
      change: { id: `i${digest.digest("hex").slice(0, 31)}`, path, kind, source, sessionKey, since, diff },
    };
  });
  // An owner may have restored a text by hand.
  return (await Promise.all(all)).filter(({ row, now }) => row.text !== now.text);
}

/** Returns the changes that wait for an owner, the oldest first. */
export async function listInstructionChanges(
  db: Db,
  { settings, guidance }: InstructionDeps,
): Promise<InstructionChange[]> {
  if (guidance === undefined) return [];
  return (await listPending(db, { settings, guidance })).map(({ change }) => change);
}

/** Restores the text that an owner has confirmed. */
async function restore(unit: Unit, { guidance }: InstructionParts, { row }: Pending): Promise<Result<void>> {
  const agentId = agentOfMemory(row.id);
  if (agentId !== undefined) {
    const { revision, calls } = await holdMemory(unit.tx, agentId, unit.now);
    const memory = { text: row.text ?? "", revision: revision + 1, calls };
    await writeMemory(unit.tx, agentId, memory, unit.now);
    return ok(undefined);
  }
  if (row.text !== undefined && Buffer.byteLength(row.text) !== row.bytes) {
    return fail("file_problem", `only the beginning of ${row.path} is known, so it can't be restored`, {
      hint: "The beginning that was confirmed still counts. Restore the file by hand.",
    });
  }
  return guidance.restore(row.path, row.text, unit.newId());
}

/**
 * Answers about a change (IN3): from now on the new text counts, or the confirmed one is restored. `id`: the
 * id of the change, or its first 4 or more characters.
 */
async function answerChange(
  unit: Unit,
  parts: InstructionParts,
  { id, decision }: { readonly id: string; readonly decision: PermissionDecision },
): Promise<Result<InstructionChange>> {
  await takeAdvisoryLock(unit.tx, "instructions");
  const all = await listPending(unit.tx, parts);
  const [found, ...others] = all.filter(({ change }) => id.length >= 4 && change.id.startsWith(id));
  if (found === undefined || others.length > 0) {
    const error = `there is no waiting change ${JSON.stringify(id)} of an instruction file`;
    return fail("permission_not_found", error, {
      hint: "It may have been answered, or the file has changed since: list the changes again.",
    });
  }
  if (decision === "deny") {
    const restored = await restore(unit, parts, found);
    if (!restored.ok) return restored;
  }
  const { row, change } = found;
  const { calls } = await readInstructionRows(unit.tx);
  const { text, bytes } = decision === "allow" ? found.now : row;
  // The call may change the file again, and that change asks again.
  if (text !== undefined && calls.some((call) => isInside(call.path, row.path)))
    await putInstructionRow(unit.tx, { ...row, state: "confirmed", text, ...optional({ bytes }) });
  else await deleteInstructionRows(unit.tx, [row.id]);
  unit.publish({ kind: "session", sessionKey: change.sessionKey, change: "state" });
  return ok(change);
}

export type Answered = Pick<PermissionQuestion, "id" | "title"> &
  Partial<Pick<AnsweredPermission, "agentId" | "ruleId">>;

/** Answers a permission request, or else about a change. */
export async function answerRequest(
  unit: Unit,
  { settings, guidance }: InstructionDeps,
  answer: PermissionAnswer,
  rights: AnswerRights,
): Promise<Result<Answered>> {
  const answered = await answerPermission(unit, answer, rights);
  const isOther = answered.ok || answered.code !== "permission_not_found";
  if (isOther || guidance === undefined || !rights.everySession || answer.scope !== "once") return answered;
  const changed = await answerChange(unit, { settings, guidance }, answer);
  if (changed.ok) return ok({ id: changed.value.id, title: changed.value.path });
  return changed.code === "permission_not_found" ? answered : changed;
}
