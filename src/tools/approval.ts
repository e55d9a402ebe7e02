// Asks an owner before a command runs, if the settings require it.
// AP1: a command runs only after its request was deleted, in a transaction that checks the lane. So a request
//      that is stored shows that its command has not begun, and a resumed run may continue the call. If the
//      answer of the transaction is late, the command waits for the lease, or does not run.
// AP2: an approval counts for one command in one folder, and for the files of the workspace that the command
//      names, as they were when the owner was asked. A request for another command is replaced. If a file has
//      changed, the owner is asked again.
// AP3: the wait can be long, so the command runs with the rights that the session has after it (I13).
// A session never answers its own request: only methods for operators and commands of owners answer.

import { createHash } from "node:crypto";
import { readFile, realpath, stat } from "node:fs/promises";
import { relative, resolve } from "node:path";
import { findChange, hasPlainNames, type NamedFiles, readNames } from "../core/rules/approval/named-files.ts";
import { readApproval } from "../core/rules/approval/policy.ts";
import { decideTool, filtersFor } from "../core/rules/tool-policy.ts";
import { type Failure, fail, ok, type Result } from "../core/shapes/errors.ts";
import type { PermissionAnswered, PermissionQuestion, PermissionScope } from "../core/shapes/permission.ts";
import type { Run } from "../core/shapes/run.ts";
import type { ToolCallRequest } from "../core/shapes/tool.ts";
import { quoted } from "../core/text/cut.ts";
import type { Engine } from "../engine/engine.ts";
import type { RunWait } from "../engine/lanes/waits.ts";
import type { Unit } from "../engine/unit.ts";
import { closePermission, openPermission } from "../flows/permission.ts";
import { allowedFiles } from "../store/queries/permission-rules.ts";
import { deletePermissionOfCall, permissionOfCall } from "../store/queries/permissions.ts";
import { isInside } from "../world/folders.ts";
import { whyNotFree } from "./free-line.ts";
import type { CallerContext, RunContext, WritingContext } from "./tool.ts";

export interface ApprovalContext
  extends Pick<CallerContext, "agent" | "chain">,
    Pick<WritingContext, "settings">,
    RunContext {
  readonly engine: Pick<Engine, "commit" | "now">;
}

/** The context of a call whose rights may change while the call waits. */
export interface Renewable<Context> {
  /** Returns the context with the rights of now, or a failure. Absent: the rights do not change. */
  readonly renewed?: () => Promise<Result<Context>>;
}

/** A command that waits for approval. */
interface Asked {
  readonly run: Run;
  readonly wait: RunWait;
  readonly command: string;
  readonly reason: string;
  /** The files that the command names, as they are now. */
  readonly files: NamedFiles;
  /** The tool call, if it continues after a crash. The calls of an ACP program end with it. */
  readonly callId: string | undefined;
}

const DO_NOT_REPEAT = "Don't retry the same command. Continue without it, or say what you need and why.";

function refuseCommand(error: string, hint = DO_NOT_REPEAT): Failure {
  return fail("approval_denied", `${error}; the command was not run`, { hint });
}

const LOST = fail("run_aborted", "the calling run has ended; the command was not run");

/** Writes the request, in which the owner sees the whole command. */
async function ask(ctx: ApprovalContext, unit: Unit, asked: Asked): Promise<Result<Question>> {
  const { agent, settings, chain } = ctx;
  const { run, command, reason, files, callId } = asked;
  const opened = await openPermission(unit, {
    sessionKey: run.sessionKey,
    agentId: agent.id,
    runId: run.runId,
    attempt: run.attempt,
    title: command,
    kind: "exec",
    rawInput: reason,
    askMs: settings.tools.exec.askSeconds * 1000,
    scopes: scopesFor(command, chain),
    about: { callId, folder: agent.workspace, files },
  });
  return opened.ok ? ok({ question: opened.value, files }) : refuseCommand(opened.error, opened.hint);
}

/** Returns how long a command may be allowed: once, if the files that it reads can't be found. */
function scopesFor(command: string, chain: ApprovalContext["chain"]): readonly PermissionScope[] {
  if (!hasPlainNames(command)) return ["once"];
  return ofOneAgent(chain) ? ["once", "session", "always"] : ["once", "session"];
}

/** A request, and the files that its command named when the owner was asked. */
interface Question {
  readonly question: PermissionQuestion;
  readonly files: NamedFiles;
}

/** A rule of an agent does not serve another agent, by whose order the session works. */
export const ofOneAgent = (chain: ApprovalContext["chain"]): boolean =>
  chain.every(({ agentId }) => agentId === chain[0].agentId);

const whyChanged = (path: string): string => `${quoted(path, 200)} has changed since the command was allowed`;

/**
 * Returns the open or decided request of this call, or `run` if no approval is needed. `outdated`: a request
 * whose answer does not count any more, because of the reason in `asked`.
 */
async function requestOf(
  ctx: ApprovalContext,
  asked: Asked,
  outdated?: PermissionQuestion,
): Promise<Result<Question | "run">> {
  const { wait, command, files, callId } = asked;
  const { agentId, sessionKey } = asked.run;
  const folder = ctx.agent.workspace;
  return ctx.engine.commit(async (unit) => {
    if (!(await wait.holds(unit))) return LOST;
    if (outdated !== undefined) await closePermission(unit, outdated);
    const known = callId === undefined ? undefined : await permissionOfCall(unit.tx, callId);
    const ruled = { agentId, sessionKey, command, folder, ofAgent: ofOneAgent(ctx.chain) };
    const changes = (await allowedFiles(unit.tx, ruled)).map((before) => findChange(before, files));
    const isAllowed = changes.includes(undefined);
    if (known?.command === command && known.folder === folder && !isAllowed) return ok(known);
    if (callId !== undefined) await deletePermissionOfCall(unit.tx, callId);
    if (isAllowed) return ok("run");
    const [changed] = changes;
    return ask(ctx, unit, changed === undefined ? asked : { ...asked, reason: whyChanged(changed) });
  });
}

/** Begins an allowed command, once (AP1), or says why it does not run. */
async function settle(
  { engine, settings }: ApprovalContext,
  { wait, callId }: Asked,
  question: PermissionQuestion,
  { decision, by }: PermissionAnswered,
): Promise<Result<void>> {
  if (decision === "allow") {
    const begins = await engine.commit(
      async (unit) => (await wait.holds(unit)) && (await closePermission(unit, question)),
    );
    return begins ? ok(undefined) : LOST;
  }
  // The request of a call stays at least until the run ends, so that a resumed run finds the denial.
  if (callId === undefined) await engine.commit((unit) => closePermission(unit, question));
  const late = `nobody approved the command within ${settings.tools.exec.askSeconds} seconds`;
  return refuseCommand(by === "" ? late : "denied by the owner");
}

/** Waits for the approval of a run's command, if it needs one. Returns the line to run. */
async function awaitApproval(
  ctx: ApprovalContext,
  { run, wait }: Pick<Asked, "run" | "wait">,
  command: string,
  call: ToolCallRequest,
): Promise<Result<string>> {
  const { agent, chain, settings, signal } = ctx;
  const folder = agent.workspace;
  const callId = agent.runtime === undefined ? call.callId : undefined;
  const reading = readApproval(chain, settings, { command, folder });
  let reason = reading.kind === "asks" ? reading.why : undefined;
  if (reading.kind === "free") reason = await whyNotFree(folder, reading);
  if (reason === undefined) {
    // An earlier attempt may have asked under other settings (AP1).
    // Deletes the request of an earlier attempt, unless another process has the run.
    const begins =
      run.attempt === 1
        ? ok(undefined)
        : await ctx.engine.commit(async (unit) => {
            if (!(await wait.holds(unit))) return LOST;
            await deletePermissionOfCall(unit.tx, call.callId);
            return ok(undefined);
          });
    return begins.ok ? ok(reading.kind === "free" ? reading.line : command) : begins;
  }
  for (let outdated: PermissionQuestion | undefined; ; ) {
    const files = await readNamedFiles(folder, command);
    const asked: Asked = { run, wait, command, reason, files, callId };
    const request = await requestOf(ctx, asked, outdated);
    if (!request.ok) return request;
    if (request.value === "run") return ok(command);
    const { question, files: before } = request.value;
    const answered = await wait.waitForDecision(question, signal);
    if (answered === undefined) return LOST;
    const changed =
      answered.decision === "allow" ? findChange(before, await readNamedFiles(folder, command)) : undefined;
    if (changed === undefined) {
      const settled = await settle(ctx, asked, question, answered);
      return settled.ok ? ok(command) : settled;
    }
    reason = whyChanged(changed);
    outdated = question;
  }
}

/** Returns the context with the rights of now, or a failure if the session has lost the tool (AP3). */
async function renew<C extends ApprovalContext & Renewable<C>>(ctx: C, tool: string): Promise<Result<C>> {
  const now = (await ctx.renewed?.()) ?? ok(ctx);
  if (!now.ok) return now;
  const verdict = decideTool(tool, filtersFor(now.value.chain, now.value.settings));
  return verdict.allowed ? now : fail("tool_denied", verdict.error);
}

/**
 * Waits until the command may run, and returns the context and the line to run. Fails if an owner denies it,
 * or nobody answers in time. An operator who calls the tool needs no approval.
 */
export async function approve<C extends ApprovalContext & Renewable<C>>(
  ctx: C,
  command: string,
  call: ToolCallRequest,
): Promise<Result<{ readonly ctx: C; readonly line: string }>> {
  const { run, wait, signal } = ctx;
  if (run === undefined || wait === undefined) return ok({ ctx, line: command });
  const result = await awaitApproval(ctx, { run, wait }, command, call);
  if (!result.ok) return result;
  const now = await renew(ctx, call.name);
  // Another process may have the run by now, if a commit was answered late.
  if (!now.ok) return now;
  return (await wait.mayAct(signal)) ? ok({ ctx: now.value, line: result.value }) : LOST;
}

/** Number of bytes that are read. Files beyond it count by their size, inode and time of change. */
const READ_MAX_BYTES = 20_000_000;
/** Number of folders, named in the command, in which names are looked up besides the workspace. */
const FOLDERS_MAX = 5;

/**
 * Returns the files that the command names, with the digests of their content, to find out later whether they
 * have changed. A process that runs at that time can still change a file between this check and the command.
 */
async function readNamedFiles(workspace: string, command: string): Promise<NamedFiles> {
  const root = await realpath(workspace).catch(() => workspace);
  const names = readNames(command);
  const folders = [root];
  const files = new Map<string, string>();
  let bytesLeft = READ_MAX_BYTES;
  for (const folder of folders) {
    for (const name of names) {
      const path = await realpath(resolve(folder, name)).catch(() => "");
      const found = path === "" ? undefined : await stat(path).catch(() => undefined);
      const isFolder = found?.isDirectory() === true && isInside(root, path);
      if (isFolder && folders.length <= FOLDERS_MAX && !folders.includes(path)) folders.push(path);
      if (found?.isFile() !== true || files.has(path)) continue;
      const { size, ino, ctimeMs } = found;
      const content = size > bytesLeft ? undefined : await readFile(path).catch(() => undefined);
      bytesLeft -= content?.length ?? 0;
      const digest = content && createHash("sha256").update(content).digest("hex");
      files.set(path, digest ?? `${size} ${ino} ${ctimeMs}`);
    }
  }
  return [...files].map(([path, content]) => [relative(root, path), content]);
}
