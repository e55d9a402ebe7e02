// Notes which calls bring outside or private content into a session, and keeps what sessions with outside
// content write into instruction files from counting before an owner confirms it (flows/instructions.ts).

import { join } from "node:path";
import { optional } from "../../core/optional.ts";
import { approvalFor } from "../../core/rules/approval/policy.ts";
import {
  countedLabels,
  joinLabels,
  labelOfSession,
  labelsIn,
  sourcesOf,
} from "../../core/rules/labels/labels.ts";
import { writesIn } from "../../core/rules/labels/sources.ts";
import { isGuest } from "../../core/rules/prompt/memory.ts";
import { type Code, ok, type Result } from "../../core/shapes/errors.ts";
import type { Labels } from "../../core/shapes/labels.ts";
import { findAgent, programOf } from "../../core/shapes/settings/settings.ts";
import type { AttachmentReceipt } from "../../core/shapes/spawn.ts";
import type { ToolCallRequest } from "../../core/shapes/tool.ts";
import { beginWriting, type PromptFiles, settleInstructions } from "../../flows/instructions.ts";
import type { OutsideCaller } from "../../flows/memory.ts";
import type { OpenCall } from "../../store/queries/instruction-contents.ts";
import { addLabels, labelsOfChain, readLabels } from "../../store/queries/labels.ts";
import type { Containable } from "../containment.ts";
import { openWorkspace } from "../files/workspace.ts";
import { fileSource, noteWriting, noteWritten, outsideFileRead } from "../labels/files.ts";
import { readLabel } from "../labels/sinks.ts";
import type { CallerContext, Tool, ToolResult, WritingContext } from "../tool.ts";

export interface GuardContext extends CallerContext, WritingContext, Containable {
  /** Absent: no text of a file enters a prompt. */
  readonly guidance?: PromptFiles | undefined;
}

const ANYWHERE = "/";
/** Failures that have text of a program, a server or a page. */
const TELLING: ReadonlySet<Code> = new Set(["mcp_failed", "exec_failed", "exec_timeout", "fetch_failed"]);
/** The tools that write files of the workspace. */
const WRITERS: ReadonlySet<string> = new Set(["write", "edit", "exec"]);

/** Told to an agent whose change waits. */
export const WAITS_NOTE =
  "waits for an owner's answer, because this conversation has content from outside. Until then, later runs " +
  "do not read the change. Tell the person who asked for it.";

type Reader = Pick<GuardContext, "db" | "settings" | "session" | "run" | "wait">;

/** Returns the stored labels of a caller. Asks the store only if there may be outside content. */
export async function storedLabels(reader: Omit<Reader, "settings">): Promise<Labels | undefined> {
  const { db, session, run, wait } = reader;
  const { key, sessionId } = session;
  // The session of a caller without a run was read for this call.
  const known = run === undefined ? session : wait?.content();
  // An owner may have released the labels since.
  const isCurrent = known !== undefined && known.labels?.outside === undefined;
  return isCurrent ? known.labels : readLabels(db, { key, sessionId, chainId: run?.chainId });
}

/**
 * Returns the labels that count of a caller and of everything that it has read. Without outside content, the
 * private content of its last calls may be missing.
 */
export const labelsOfCaller = async (reader: Reader): Promise<Labels> =>
  countedLabels(
    reader.settings,
    joinLabels(await storedLabels(reader), labelOfSession(reader.settings, reader.session)),
  );

/** Returns the outside content that a call may follow, or undefined if there is none. */
export async function outsideCaller(
  ctx: Reader & Pick<GuardContext, "viewer">,
): Promise<OutsideCaller | undefined> {
  const { session, run, viewer } = ctx;
  const { outside } = await labelsOfCaller(ctx);
  const source = isGuest(viewer) ? "guest token for some sessions" : outside && sourcesOf(outside);
  return source === undefined
    ? undefined
    : { source, sessionKey: session.key, ...optional({ runId: run?.runId }) };
}

/** Notes the files that came with the task of a sub-agent. */
async function noteAttachments(
  ctx: GuardContext,
  { arguments: { agentId } }: ToolCallRequest,
  result: ToolResult | undefined,
): Promise<void> {
  const { dir } = (result?.attachments ?? {}) as Partial<AttachmentReceipt>;
  if (dir === undefined || (await outsideCaller(ctx)) === undefined) return;
  const agent = findAgent(ctx.settings, String(agentId)) ?? ctx.agent;
  await noteWritten({ agent, engine: ctx.engine }, join(agent.workspace, dir));
}

/** A call, with the tool and the arguments that were checked. */
interface CheckedCall {
  readonly call: ToolCallRequest;
  readonly tool: Pick<Tool<never>, "reads" | "readsFiles">;
  readonly args: Readonly<Record<string, unknown>>;
}

/**
 * Marks the session and the chain of a call whose result has labels, before the model reads it. `result`:
 * absent if it failed. `file`: source of outside content in the files that it has read.
 */
export async function noteContent(
  ctx: GuardContext,
  { call, tool, args }: CheckedCall,
  { result, file }: { readonly result: ToolResult | undefined; readonly file?: string | undefined },
): Promise<void> {
  if (ctx.run === undefined && !ctx.session.external) return;
  if (call.name === "sessions_spawn") await noteAttachments(ctx, call, result);
  const read = joinLabels(labelsIn(result), await tool.reads?.(ctx, args, result));
  if (tool.readsFiles !== true) return markRead(ctx, call.callId, read);
  const hidden = await fileSource(ctx.agent.workspace, args.path);
  const files = joinLabels(readLabel(ctx, "outside", file), readLabel(ctx, "private", hidden));
  return markRead(ctx, call.callId, joinLabels(read, files));
}

/** Marks the session and the chain of a caller that has read a text with these labels, by a call. */
export async function markRead(
  ctx: Reader & Pick<GuardContext, "agent" | "engine" | "guidance">,
  callId: string,
  added: Labels | undefined,
): Promise<void> {
  const { db, session, run, agent, engine, settings } = ctx;
  if (added === undefined) return;
  const { key, sessionId } = session;
  const chainId = run?.chainId;
  // The texts of a private session are private without a mark.
  const isPrivate = labelOfSession(settings, session) !== undefined;
  const { outside } = added;
  if (isPrivate && outside === undefined) return;
  const fresh: Labels = isPrivate && outside !== undefined ? { outside } : added;
  ctx.wait?.addLabels(fresh);
  const has = (known: Labels | undefined) => known !== undefined && joinLabels(known, fresh) === known;
  const isKnown = has(await readLabels(db, { key, sessionId }));
  if (isKnown && (chainId === undefined || has(await labelsOfChain(db, chainId)))) return;
  await engine.commit(async (unit) => {
    const arrival = { at: unit.now, callId, ...optional({ runId: run?.runId }) };
    await addLabels(unit.tx, { key, sessionId, chainId }, fresh, arrival);
    if (outside === undefined) return;
    // Its program may write from now on.
    const from = { source: sourcesOf(outside), sessionKey: key, ...optional({ runId: run?.runId }) };
    const { guidance } = ctx;
    if (programOf(agent) !== undefined && guidance !== undefined)
      await beginWriting(unit, { settings, guidance }, { ...lastingCall(from), at: unit.now });
  });
}

/** Returns the call of a program that nothing contains, and that may still write after the run. */
export const lastingCall = (outside: OutsideCaller): Omit<OpenCall, "at"> => ({
  ...{ id: `after:${ANYWHERE}`, state: "open", path: ANYWHERE, lasts: true },
  ...outside,
});

/** Does work that may write below a folder. Returns its result, and the files that wait for an owner now. */
export async function guardWriting<T>(
  { engine, settings, guidance }: Pick<GuardContext, "engine" | "settings"> & { guidance: PromptFiles },
  call: Omit<OpenCall, "at">,
  work: () => Promise<T>,
): Promise<{ readonly result: T; readonly waiting: readonly string[] }> {
  const parts = { settings, guidance };
  const settle = () => engine.commit((unit) => settleInstructions(unit, parts, call.id));
  await engine.commit((unit) => beginWriting(unit, parts, { ...call, at: unit.now }));
  const result = await work().catch(async (error: unknown) => {
    await settle();
    throw error;
  });
  return { result, waiting: await settle() };
}

/** Returns where a call of a run with outside content may write. */
async function openCall(
  ctx: GuardContext,
  call: ToolCallRequest,
  outside: OutsideCaller,
): Promise<Omit<OpenCall, "at">> {
  const { chain, settings, sandbox, agent } = ctx;
  const where = writesIn(call.name, sandbox !== undefined);
  // Without an approval, nobody has seen whether the command leaves a program running.
  const isUnseen = call.name === "exec" && approvalFor(chain, settings).mode === "never";
  if (where === "anywhere" && isUnseen) return lastingCall(outside);
  const workspace = where === "workspace" ? await openWorkspace(agent.workspace) : ok(ANYWHERE);
  const path = workspace.ok ? workspace.value : agent.workspace;
  return { id: call.callId, state: "open", path, lasts: false, ...outside };
}

/**
 * Runs a tool. Files that it writes after outside content are outside, too. If it changed instruction files,
 * its result says that they wait.
 */
export async function guarded(
  ctx: GuardContext,
  checked: CheckedCall,
  work: () => Promise<Result<ToolResult>>,
): Promise<Result<ToolResult>> {
  const isWriting = writesIn(checked.call.name, ctx.sandbox !== undefined) !== "nowhere";
  const before = await outsideFileOf(ctx, checked);
  const { answer, file } = isWriting
    ? await guardedWriting(ctx, checked, before, work)
    : { answer: await work(), file: before };
  if (answer.ok || TELLING.has(answer.code))
    await noteContent(ctx, checked, { result: answer.ok ? answer.value : undefined, file });
  return answer;
}

/** Returns the source of outside content in the files that a call reads, or undefined if they have none. */
const outsideFileOf = async (ctx: GuardContext, { call, tool }: CheckedCall): Promise<string | undefined> =>
  tool.readsFiles === true ? outsideFileRead(ctx.db, ctx, call) : undefined;

/** `before`: the outside file that the call was to read. It may have moved the file. */
async function guardedWriting(
  ctx: GuardContext,
  checked: CheckedCall,
  before: string | undefined,
  work: () => Promise<Result<ToolResult>>,
): Promise<{ readonly answer: Result<ToolResult>; readonly file: string | undefined }> {
  const { guidance, engine } = ctx;
  const { call, tool, args } = checked;
  const outside = await outsideCaller(ctx);
  const from = engine.now();
  const open = outside && guidance && (await openCall(ctx, call, outside));
  const { result, waiting } =
    guidance === undefined || open === undefined
      ? { result: await work(), waiting: [] }
      : await guardWriting({ ...ctx, guidance }, open, work);
  // Another run may have written the file while a command ran. The files of this call are not noted yet.
  const file = before ?? (await outsideFileOf(ctx, checked));
  if (WRITERS.has(call.name)) {
    // A command may copy an outside file or download one, and an edit changes a part of it.
    const read = await tool.reads?.(ctx, args, undefined);
    const isOutside = (outside ?? file ?? read?.outside) !== undefined;
    const mayBeNoted = ctx.wait?.content()?.hasOutsideFiles ?? true;
    if (isOutside || mayBeNoted) await noteWriting(ctx, call, { from, isOutside });
  }
  if (!result.ok || waiting.length === 0) return { answer: result, file };
  return { answer: ok({ ...result.value, waiting: `${waiting.join(", ")}: ${WAITS_NOTE}` }), file };
}
