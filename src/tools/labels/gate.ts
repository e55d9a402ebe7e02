// Lets a call of a run that is outside and private have its effect only with the consent of an owner (I16).
// LG1: the call waits without a slot, and continues after a crash with the same question.
// LG2: an owner sees the destination, everything that would leave, and the sources.
// LG3: if nobody can be asked, the call is refused. An operator's own call has the rights of the operator.

import { optional } from "../../core/optional.ts";
import {
  decideSink,
  describeSink,
  hasAllSources,
  labelModeFor,
  labelRule,
  type SinkVerdict,
  shownLabels,
  sourcesOf,
} from "../../core/rules/labels/labels.ts";
import { openToStrangers } from "../../core/rules/prompt/memory.ts";
import { type Failure, fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { LabelDecision, Sink } from "../../core/shapes/labels.ts";
import {
  type PermissionAnswered,
  type PermissionQuestion,
  type PermissionScope,
  SOURCES_NAME,
} from "../../core/shapes/permission.ts";
import type { Run } from "../../core/shapes/run.ts";
import type { ToolCallRequest } from "../../core/shapes/tool.ts";
import { cut } from "../../core/text/cut.ts";
import type { RunWait } from "../../engine/lanes/waits.ts";
import type { Unit } from "../../engine/unit.ts";
import { closePermission, openPermission } from "../../flows/permission.ts";
import { listDecisions, noteDecision } from "../../store/queries/labels.ts";
import { labelRules } from "../../store/queries/permission-rules.ts";
import { deletePermissionOfCall, LABELS_KIND, requestOfCall } from "../../store/queries/permissions.ts";
import { ofOneAgent } from "../approval.ts";
import { type GuardContext, labelsOfCaller } from "../guidance/guard.ts";
import type { Tool } from "../tool.ts";

const PAYLOAD_KEPT_CHARS = 2_000;
/** Earlier decisions of a chain that are looked at. */
const DECISIONS_MAX = 200;
const NOBODY = "nobody";

const HINT =
  "Do not try another way. Say what you wanted to send and why. An owner can allow it with labels.trust, " +
  "labels.public or labels.sinks.";

const BOTH = "content from outside and private content";

const LOST = fail("run_aborted", "the calling run has ended; nothing was sent");

/** A call that needs consent. */
interface Asked {
  readonly ctx: GuardContext;
  readonly call: ToolCallRequest;
  readonly sink: Sink;
  readonly verdict: SinkVerdict;
}

/** Names no source: strangers may read what the model says about its error. */
function refuse({ sink, verdict }: Asked, why: string): Failure {
  const read = verdict.labels.private === undefined ? "content from outside" : BOTH;
  const error = `this conversation has read ${read}, so it may not ${describeSink(sink)}: ${why}`;
  return fail("label_denied", error, { hint: HINT });
}

function note(
  unit: Unit,
  { ctx, sink, verdict }: Asked,
  { decision, by }: Pick<LabelDecision, "decision" | "by">,
): Promise<void> {
  const { session, run, agent } = ctx;
  return noteDecision(unit.tx, {
    id: unit.newOrderedId(),
    at: unit.now,
    sessionKey: session.key,
    agentId: agent.id,
    sink: sink.kind,
    destination: unit.redactor.mask(sink.to),
    payload: unit.redactor.mask(cut(sink.payload, PAYLOAD_KEPT_CHARS)),
    labels: verdict.labels,
    decision,
    by,
    ...optional({ runId: run?.runId, chainId: run?.chainId }),
  });
}

/** Returns the open or decided request of this call. */
function requestFor(asked: Asked, run: Run, wait: RunWait): Promise<Result<PermissionQuestion>> {
  const { ctx, call, sink, verdict } = asked;
  const { agent, chain, settings } = ctx;
  // The calls of an ACP program end with it.
  const callId = agent.runtime === undefined ? call.callId : undefined;
  const rule = labelRule(sink.kind, verdict.labels);
  const lasting: readonly PermissionScope[] = ofOneAgent(chain) ? ["chain", "always"] : ["chain"];
  return ctx.engine.commit(async (unit) => {
    if (!(await wait.holds(unit))) return LOST;
    const known = callId === undefined ? undefined : await requestOfCall(unit.tx, callId);
    if (known?.rule === rule) return ok(known);
    if (known !== undefined && callId !== undefined) await deletePermissionOfCall(unit.tx, callId);
    const { outside, private: hidden } = verdict.labels;
    return openPermission(unit, {
      sessionKey: run.sessionKey,
      agentId: agent.id,
      runId: run.runId,
      attempt: run.attempt,
      title: describeSink(sink),
      kind: LABELS_KIND,
      rawInput: {
        sends: sink.payload,
        [SOURCES_NAME]: sourcesOf(outside),
        ...optional({ private: hidden && sourcesOf(hidden) }),
      },
      askMs: settings.tools.exec.askSeconds * 1000,
      scopes: ["once", ...(hasAllSources(verdict.labels) ? lasting : [])],
      isHidden: openToStrangers(chain, settings) !== undefined,
      about: { callId, rule, labels: shownLabels(verdict.labels, () => true) },
    });
  });
}

/** Stores the answer, and lets the call begin once if it was allowed. */
async function settle(
  asked: Asked,
  { wait, question }: { readonly wait: RunWait; readonly question: PermissionQuestion },
  { decision, by }: PermissionAnswered,
): Promise<Result<void>> {
  const { ctx, call } = asked;
  const isAllowed = decision === "allow";
  const begins = await ctx.engine.commit(async (unit) => {
    if (!(await wait.holds(unit))) return false;
    const mark = {
      decision: isAllowed ? "allowed" : by === "" ? "refused" : "denied",
      by: by || NOBODY,
    } as const;
    await note(unit, asked, mark);
    // The request of a call stays at least until the run ends, so that a resumed run finds the denial.
    return isAllowed || ctx.agent.runtime !== undefined || call.callId === ""
      ? closePermission(unit, question)
      : true;
  });
  if (!begins) return LOST;
  if (isAllowed) return (await wait.mayAct(ctx.signal)) ? ok(undefined) : LOST;
  const late = `nobody allowed it within ${ctx.settings.tools.exec.askSeconds} seconds`;
  return refuse(asked, by === "" ? late : "an owner denied it");
}

/** Returns whether an owner was asked the same before, and did not allow it. */
const isSameNo = ({ sink, destination, decision, by }: LabelDecision, { kind, to }: Sink): boolean =>
  sink === kind && destination === to && (decision === "denied" || by === NOBODY);

async function askOwner(asked: Asked): Promise<Result<void>> {
  const { ctx } = asked;
  const { run, wait } = ctx;
  if (run === undefined || wait === undefined) return decline(asked, "no owner can be asked here");
  const before = await listDecisions(ctx.db, { chainId: run.chainId, limit: DECISIONS_MAX });
  if (before.some((one) => isSameNo(one, asked.sink)))
    return refuse(asked, "an owner did not allow it before");
  const question = await requestFor(asked, run, wait);
  if (!question.ok) return question === LOST ? LOST : decline(asked, question.error);
  const answered = await wait.waitForDecision(question.value, ctx.signal);
  if (answered === undefined) return LOST;
  return settle(asked, { wait, question: question.value }, answered);
}

async function decline(asked: Asked, why: string): Promise<Failure> {
  await asked.ctx.engine.commit((unit) => note(unit, asked, { decision: "refused", by: why }));
  return refuse(asked, why);
}

/** Lets a call pass, after an owner has allowed it if it needs that (LA1). `waited`: an owner was asked. */
export async function passGate<C extends GuardContext>(
  ctx: C,
  call: ToolCallRequest,
  tool: Pick<Tool<C>, "sink">,
  args: Readonly<Record<string, unknown>>,
): Promise<Result<{ readonly waited: boolean }>> {
  const { db, settings, chain, session, run, engine } = ctx;
  const free = ok({ waited: false });
  if (tool.sink === undefined || (run === undefined && !session.external)) return free;
  if (labelModeFor(chain, settings) === "off") return free;
  const labels = await labelsOfCaller(ctx);
  const sink = labels.outside && (await tool.sink(ctx, args, call));
  if (sink === undefined) return free;
  const { agentId, key: sessionKey } = session;
  const ofChain = optional({ chainId: run?.chainId });
  const rules = await labelRules(db, { agentId, sessionKey, ofAgent: ofOneAgent(chain), ...ofChain });
  const verdict = decideSink({ settings, chain, labels, sink, rules });
  const asked = { ctx, call, sink, verdict };
  switch (verdict.kind) {
    case "free":
      return free;
    case "watch":
      await engine.commit((unit) => note(unit, asked, { decision: "watched", by: verdict.why }));
      return free;
    case "deny":
      return decline(asked, verdict.why);
    case "ask": {
      const allowed = await askOwner(asked);
      return allowed.ok ? ok({ waited: true }) : allowed;
    }
  }
}
