// Handles sends and spawns that a rule refused. Hides the sessions of a wait cycle that the caller may not
// see. Records the refusals of a run, to show them in the chain: this is called for every failed tool call of
// a run. If recording fails, the failure is logged and the caller still gets its answer.
// RU2: a run that has lost its lane records nothing (I1); the same call is recorded once.

import { type AccessContext, keyRulesOf, visibleAmong } from "../access/access.ts";
import { resolveSession } from "../access/resolve.ts";
import { trimmedOf } from "../core/json.ts";
import { optional } from "../core/optional.ts";
import { NOT_VISIBLE, type Viewer } from "../core/rules/visibility.ts";
import { type Code, describeCycle, type Failure, type Result } from "../core/shapes/errors.ts";
import type { Run } from "../core/shapes/run.ts";
import type { Session } from "../core/shapes/session.ts";
import { canonicalKey } from "../core/shapes/session-key.ts";
import type { Settings } from "../core/shapes/settings/settings.ts";
import type { ToolCallRequest } from "../core/shapes/tool.ts";
import type { Engine } from "../engine/engine.ts";
import type { RunWait } from "../engine/lanes/waits.ts";
import type { Unit } from "../engine/unit.ts";
import { noteChainRefused } from "../store/queries/chains/chains.ts";
import { addRefusal, forgetRefusals, type Refusal } from "../store/queries/chains/refusals.ts";
import type { Db } from "../store/sql.ts";

interface RefusedParts {
  readonly engine: Engine;
  readonly settings: Settings;
  readonly db: Db;
  readonly viewer: Viewer;
  readonly session: Session;
  readonly run: Run;
  readonly wait?: RunWait;
}

/** Failures caused by a rule. Other failures are mistakes in the call, or temporary. */
const REFUSALS: readonly Code[] = [
  "wait_cycle",
  "chain_limit",
  "open_flow",
  "queue_full",
  "send_denied",
  "agent_to_agent",
  "not_visible",
  "spawn_denied",
  "too_many_children",
  "tool_denied",
];
const TOOLS = ["sessions_send", "sessions_spawn"];
const NAMED_CHARS_MAX = 200;
const ERROR_CHARS_MAX = 1_000;
const CYCLE_MAX = 20;
const KEPT_MS = 7 * 24 * 3_600_000;

/** Returns an answer without the names of sessions in a wait cycle that its reader may not see (I9). */
export async function shownAnswer<T>(
  ctx: AccessContext & { readonly viewer: Viewer },
  answer: Result<T>,
): Promise<Result<T>> {
  if (answer.ok || answer.code !== "wait_cycle" || !Array.isArray(answer.details?.cycle)) return answer;
  const cycle = answer.details.cycle.map(String);
  const sees = await visibleAmong(ctx, ctx.viewer, "list", cycle);
  return { ...answer, ...describeCycle(cycle.map((key) => (sees(key) ? key : NOT_VISIBLE))) };
}

type Arguments = ToolCallRequest["arguments"];

/** Returns the target of a send: the name in the call, and the session that has this name. */
async function meant(parts: RefusedParts, args: Arguments): Promise<Pick<Refusal, "named" | "toKey">> {
  const sessionKey = trimmedOf(args.sessionKey, NAMED_CHARS_MAX);
  const label = trimmedOf(args.label, NAMED_CHARS_MAX);
  const agentId = label === undefined ? undefined : trimmedOf(args.agentId, NAMED_CHARS_MAX);
  const named = sessionKey ?? label;
  if (named === undefined) return {};
  const target = {
    ...(sessionKey === undefined ? { label: named } : { sessionKey }),
    ...optional({ agentId }),
  };
  const found = await resolveSession(parts, parts.viewer, "send", target);
  if (found.ok) return { named, toKey: found.value.key };
  const who = { agentId: parts.session.agentId };
  const key =
    sessionKey === undefined ? undefined : canonicalKey(sessionKey, who, keyRulesOf(parts.settings));
  return key?.ok === true ? { named, toKey: key.value } : { named };
}

async function write(parts: RefusedParts, unit: Unit, refusal: Omit<Refusal, "at">): Promise<void> {
  if (parts.wait !== undefined && !(await parts.wait.holds(unit))) return;
  if (!(await addRefusal(unit.tx, { ...refusal, at: unit.now }))) return;
  await noteChainRefused(unit.tx, refusal.chainId, unit.now);
  await forgetRefusals(unit.tx, unit.now - KEPT_MS);
  unit.publish({
    kind: "flow",
    sessionKey: refusal.fromKey,
    runId: refusal.runId,
    flowId: refusal.callId,
    step: "refused",
    from: refusal.fromKey,
    to: refusal.toKey ?? refusal.named ?? "",
    turn: 1,
    turnsMax: 0,
    text: "",
    reason: refusal.code,
    atMs: unit.now,
  });
}

/** Records a failed tool call of a run if a rule refused it. Never fails. */
export async function noteRefusal(
  parts: RefusedParts,
  call: ToolCallRequest,
  failure: Failure,
): Promise<void> {
  if (!TOOLS.includes(call.name) || !REFUSALS.includes(failure.code)) return;
  const { runId, sessionKey, chainId } = parts.run;
  const about = { part: "flows", runId, sessionKey, chainId };
  try {
    const { run, session } = parts;
    const args = (typeof call.arguments === "object" ? call.arguments : undefined) ?? {};
    const agentId = trimmedOf(args.agentId, NAMED_CHARS_MAX) ?? session.agentId;
    const to = call.name === "sessions_spawn" ? { named: agentId } : await meant(parts, args);
    const cycle = failure.details?.cycle;
    const refusal: Omit<Refusal, "at"> = {
      callId: call.callId,
      chainId: run.chainId,
      runId: run.runId,
      fromKey: session.key,
      ...to,
      tool: call.name,
      code: failure.code,
      error: trimmedOf(failure.error, ERROR_CHARS_MAX) ?? "",
      ...(Array.isArray(cycle) ? { cycle: cycle.slice(0, CYCLE_MAX).map(String) } : {}),
      hop: run.hop,
    };
    await parts.engine.commit((unit) => write(parts, unit, refusal));
    const { callId, tool, code } = refusal;
    parts.engine.log.info({ ...about, callId, tool, code }, "a send or spawn was refused");
  } catch (error) {
    parts.engine.log.warn({ ...about, err: error }, "the refusal of a step could not be recorded");
  }
}
