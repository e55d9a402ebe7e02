// Asks an owner before a command runs, if the settings require it.
// AP1: a command runs only after its request was deleted, in a transaction that checks the lane. So a request
//      that is stored shows that its command has not begun, and a resumed run may continue the call. If the
//      answer of the transaction is late, the command waits for the lease, or does not run.
// AP2: an approval counts for one command in one folder. A request for another command is replaced.
// AP3: the wait can be long, so the command runs with the rights that the session has after it (I13).
// A session never answers its own request: only methods for operators and commands of owners answer.

import { whyApprove } from "../core/rules/approval/policy.ts";
import { decideTool, filtersFor } from "../core/rules/tool-policy.ts";
import { type Failure, fail, ok, type Result } from "../core/shapes/errors.ts";
import type { PermissionAnswered, PermissionQuestion } from "../core/shapes/permission.ts";
import type { Run } from "../core/shapes/run.ts";
import type { ToolCallRequest } from "../core/shapes/tool.ts";
import type { Engine } from "../engine/engine.ts";
import type { RunWait } from "../engine/lanes/waits.ts";
import type { Unit } from "../engine/unit.ts";
import type { OutboxListener } from "../flows/delivery/outbox.ts";
import { closePermission, openPermission } from "../flows/permission.ts";
import { digestOfCommand, hasRule } from "../store/queries/permission-rules.ts";
import { deletePermissionOfCall, permissionOfCall } from "../store/queries/permissions.ts";
import type { CallerContext, RunContext, WritingContext } from "./tool.ts";

/** Maximum length of a command that is asked about, because owners have to see all of it. */
const COMMAND_MAX_CHARS = 3_000;
/** Maximum length of a command that is shown in the title of its request. */
const TITLE_MAX_CHARS = 300;

export interface ApprovalContext
  extends Pick<CallerContext, "agent" | "chain">,
    Pick<WritingContext, "settings">,
    RunContext {
  readonly engine: Pick<Engine, "commit" | "now">;
  readonly outbound?: OutboxListener | undefined;
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
  readonly digest: string;
  /** The tool call, if it continues after a crash. The calls of an ACP program end with it. */
  readonly callId: string | undefined;
}

const DO_NOT_REPEAT = "Don't retry the same command. Continue without it, or say what you need and why.";

function denied(error: string, hint = DO_NOT_REPEAT): Failure {
  return fail("approval_denied", `${error}; the command was not run`, { hint });
}

const LOST = fail("run_aborted", "the calling run has ended; the command was not run");

/** Writes the request, in which the owner sees the whole command. */
async function ask(ctx: ApprovalContext, unit: Unit, asked: Asked): Promise<PermissionQuestion | undefined> {
  const { agent, settings, chain, outbound = { deliveryQueued: () => {} } } = ctx;
  const { run, command, reason, digest, callId } = asked;
  const folder = agent.workspace;
  const isLong = command.length > TITLE_MAX_CHARS || command.includes("\n");
  return openPermission({ outbound }, unit, {
    sessionKey: run.sessionKey,
    agentId: agent.id,
    runId: run.runId,
    attempt: run.attempt,
    title: command,
    kind: "exec",
    rawInput: { ...(isLong ? { command } : {}), folder, reason },
    askMs: settings.tools.exec.askSeconds * 1000,
    scopes: ofOneAgent(chain) ? ["once", "session", "always"] : ["once", "session"],
    about: { callId, digest, folder },
  });
}

/** A rule of an agent does not serve another agent, by whose order the session works. */
const ofOneAgent = (chain: ApprovalContext["chain"]): boolean =>
  chain.every(({ agentId }) => agentId === chain[0].agentId);

/** Returns the open or decided request of this call, or `run` if no approval is needed. */
async function requestOf(ctx: ApprovalContext, asked: Asked): Promise<Result<PermissionQuestion | "run">> {
  const { wait, digest, callId } = asked;
  const { agentId, sessionKey } = asked.run;
  return ctx.engine.commit(async (unit) => {
    if (!(await wait.holds(unit))) return LOST;
    const known = callId === undefined ? undefined : await permissionOfCall(unit.tx, callId);
    const ruled = { agentId, sessionKey, digest, ofAgent: ofOneAgent(ctx.chain) };
    const isAllowed = await hasRule(unit.tx, ruled);
    if (known?.digest === digest && !isAllowed) return ok(known.question);
    if (callId !== undefined) await deletePermissionOfCall(unit.tx, callId);
    if (isAllowed) return ok("run");
    const question = await ask(ctx, unit, asked);
    return question === undefined ? denied("too many permission requests are open") : ok(question);
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
  // The request of a call stays until the run ends, so that a resumed run finds the denial.
  if (callId === undefined) await engine.commit((unit) => closePermission(unit, question));
  const late = `nobody approved the command within ${settings.tools.exec.askSeconds} seconds`;
  return denied(by === "" ? late : "denied by the owner");
}

/** Deletes the request of a command that needs none now. Fails if another process has the run. */
async function withoutRequest(
  { engine }: ApprovalContext,
  wait: RunWait,
  { callId }: ToolCallRequest,
): Promise<Result<void>> {
  return engine.commit(async (unit) => {
    if (!(await wait.holds(unit))) return LOST;
    await deletePermissionOfCall(unit.tx, callId);
    return ok(undefined);
  });
}

/** Waits for the approval of a run's command, if it needs one. */
async function approved(
  ctx: ApprovalContext,
  { run, wait }: Pick<Asked, "run" | "wait">,
  command: string,
  call: ToolCallRequest,
): Promise<Result<void>> {
  const { agent, chain, settings, signal } = ctx;
  const folder = agent.workspace;
  const callId = agent.runtime === undefined ? call.callId : undefined;
  const reason = whyApprove(chain, settings, { command, folder });
  if (reason === undefined) {
    // An earlier attempt may have asked under other settings (AP1).
    return run.attempt === 1 ? ok(undefined) : withoutRequest(ctx, wait, call);
  }
  if (JSON.stringify(command).length > COMMAND_MAX_CHARS) {
    const hint = "Write it to a file with write, then run the file.";
    return denied(
      `an owner has to see the whole command, and it has over ${COMMAND_MAX_CHARS} characters`,
      hint,
    );
  }
  const asked = { run, wait, command, reason, digest: digestOfCommand(folder, command), callId };
  const request = await requestOf(ctx, asked);
  if (!request.ok) return request;
  if (request.value === "run") return ok(undefined);
  const answered = await wait.decided(request.value, signal);
  if (answered === undefined) return LOST;
  return settle(ctx, asked, request.value, answered);
}

/** Returns the context with the rights of now, or a failure if the session has lost the tool (AP3). */
async function renewed<C extends ApprovalContext & Renewable<C>>(ctx: C, tool: string): Promise<Result<C>> {
  const now = (await ctx.renewed?.()) ?? ok(ctx);
  if (!now.ok) return now;
  const verdict = decideTool(tool, filtersFor(now.value.chain, now.value.settings));
  return verdict.allowed ? now : fail("tool_denied", verdict.error);
}

/**
 * Waits until the command may run, and returns the context in which it runs. Fails if an owner denies it, or
 * nobody answers in time. An operator who calls the tool needs no approval.
 */
export async function approve<C extends ApprovalContext & Renewable<C>>(
  ctx: C,
  command: string,
  call: ToolCallRequest,
): Promise<Result<C>> {
  const { run, wait, signal } = ctx;
  if (run === undefined || wait === undefined) return ok(ctx);
  const result = await approved(ctx, { run, wait }, command, call);
  if (!result.ok) return result;
  const now = await renewed(ctx, call.name);
  // Another process may have the run by now, if a commit was answered late.
  return now.ok && !(await wait.mayAct(signal)) ? LOST : now;
}
