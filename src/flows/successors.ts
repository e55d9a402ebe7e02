// Connects the engine to the flows: finds the flow of an ended run and creates the runs that follow it.

import type { Provenance } from "../core/shapes/message.ts";
import type { Run } from "../core/shapes/run.ts";
import { isSubagentKey } from "../core/shapes/session-key.ts";
import type { Acceptor, Successors } from "../engine/run/finish.ts";
import type { Unit } from "../engine/unit.ts";
import { getChain } from "../store/queries/chains/chains.ts";
import { getFlow, holdFlow, openFlowsOfRun } from "../store/queries/chains/flows.ts";
import { getSession } from "../store/queries/sessions/sessions.ts";
import { directRunEnded } from "./conversation/direct.ts";
import { sessionMayBeIdle } from "./conversation/idle.ts";
import { endUnanswered } from "./conversation/inbox-receipts.ts";
import { conversationAnswerLost, conversationRunEnded } from "./conversation/reply-back.ts";
import { replyRunEnded } from "./delivery/replies.ts";
import { cancelConversation, cancelJobs } from "./job/cancel.ts";
import {
  type Ending,
  type JobParts,
  jobMayHaveEnded,
  jobRunEnded,
  jobStopped,
  lookAbove,
  planChildCleanup,
  wakeRunEnded,
} from "./job/end.ts";
import { planArchiving } from "./session/client-session.ts";

interface SuccessorParts extends JobParts {
  /** Is called last in the transaction that ends a run. */
  readonly runEnded?: (unit: Unit, run: Run) => Promise<void>;
}

/** Lets the flows create the successors of ended runs. */
export function createSuccessors(parts: SuccessorParts): Successors {
  return {
    async runEnded(acceptor, unit, run, answered) {
      const ending: Ending = { ...parts, acceptor, unit };
      if (run.state !== "ok") await endQuestions(acceptor, unit, run);
      await wakeRunEnded(ending, run);
      const flow = run.flow === undefined ? undefined : await holdFlow(unit.tx, run.flow.flowId);
      if (flow?.kind === "send") await conversationRunEnded({ ...ending, flow, run }, answered);
      if (flow?.kind === "spawn") await jobRunEnded(ending, run, flow);
      await directRunEnded(parts, unit, run);
      await replyRunEnded(parts, acceptor, unit, run);
      await parts.runEnded?.(unit, run);
      await sessionMayBeIdle(ending, run.sessionKey);
      // A job that was cancelled is over before its runs.
      if (flow?.kind === "spawn") await sessionMayBeIdle(ending, flow.requesterKey);
      await planArchiving(unit, run);
      await postponeCleanup(unit, run, flow?.open === true && flow.kind === "spawn");
    },
    async answerLost(acceptor, unit, run) {
      const flow = run.flow === undefined ? undefined : await getFlow(unit.tx, run.flow.flowId);
      if (flow?.kind === "send") await conversationAnswerLost({ ...parts, acceptor, unit, flow, run });
    },
    async cancelBelow(acceptor, unit, aborted) {
      const ending: Ending = { ...parts, acceptor, unit };
      const session = await getSession(unit.tx, aborted.sessionKey);
      // Ends the job of this session before the jobs below it, so that no outcome from below is reported to
      // it.
      if (session !== undefined && aborted.runId === undefined) await jobStopped(ending, session);
      const ended = await cancelJobs(acceptor, unit, aborted);
      if (session === undefined) return ended;
      // A sub-agent that only waited for cancelled work has nothing left to wait for.
      await jobMayHaveEnded(ending, session);
      await lookAbove(ending, session);
      await sessionMayBeIdle(ending, session.key);
      return ended;
    },
    async budgetUsedUp(acceptor, unit, refused, error) {
      const { rootSessionKey } = await getChain(unit.tx, refused.chainId);
      const root = rootSessionKey === undefined ? undefined : await getSession(unit.tx, rootSessionKey);
      if (root === undefined) return;
      const { sessionKey: sourceSessionKey, chainId, hop } = refused;
      const provenance: Provenance = { kind: "notice", sourceSessionKey, chainId, hop };
      const reason = error.replace(/\.$/, "");
      const text = `Notice from the gateway: ${reason}. No further run of this conversation starts.`;
      await acceptor.acceptIn(unit, {
        sessionKey: root.key,
        kind: "append",
        input: { text, provenance },
        successor: true,
      });
    },
  };
}

/**
 * Ends the conversations that a run began and that cannot continue without it: all of an aborted run, whose
 * messages get no answer, else those in which it waited for the answer of an external session.
 */
async function endQuestions(acceptor: Acceptor, unit: Unit, run: Run): Promise<void> {
  const { runId, code } = run;
  const reason = code === "session_reset" || code === "session_deleted" ? code : "run_aborted";
  for (const flow of await openFlowsOfRun(unit.tx, runId)) {
    if (flow.kind !== "send") continue;
    if (run.state === "aborted") await cancelConversation(acceptor, unit, flow, reason);
    else if ((await getSession(unit.tx, flow.targetKey))?.external)
      await endUnanswered(unit, { runId, flow });
  }
}

/** Postpones archiving when a child works after its job, for example on a person's question. */
async function postponeCleanup(unit: Unit, run: Run, inJob: boolean): Promise<void> {
  if (inJob || !isSubagentKey(run.sessionKey)) return;
  const session = await getSession(unit.tx, run.sessionKey);
  if (session?.spawn === undefined) return;
  const job = await getFlow(unit.tx, session.spawn.flowId);
  if (job !== undefined && !job.open) await planChildCleanup(unit, session);
}
