// Owns the engine's port to the flows: which flow a run belongs to, and so what follows from its end.

import type { Provenance } from "../core/message.ts";
import type { Run } from "../core/run.ts";
import { isSubagentKey } from "../core/session-key.ts";
import type { Acceptor, Successors } from "../engine/finish.ts";
import type { Unit } from "../engine/unit.ts";
import { getChain } from "../store/chains.ts";
import { getFlow, holdFlow, openFlowsOfRun } from "../store/flows.ts";
import { getSession } from "../store/sessions.ts";
import { cancelConversation, cancelJobs } from "./cancel.ts";
import { planArchiving } from "./client-session.ts";
import { directRunEnded } from "./direct-reply.ts";
import { endUnanswered } from "./inbox-answer.ts";
import {
  type JobParts,
  jobMayHaveEnded,
  jobRunEnded,
  jobStopped,
  lookAbove,
  planChildCleanup,
  wakeRunEnded,
} from "./job.ts";
import { conversationAnswerLost, conversationRunEnded } from "./reply-back.ts";

/** What follows from the end of a run. */
export function createSuccessors(parts: JobParts): Successors {
  return {
    async runEnded(acceptor, unit, run, answered) {
      if (run.state === "aborted") {
        // What an aborted run asked of others is answered to nobody: the peers finish, and that is all.
        const reason =
          run.code === "session_reset" || run.code === "session_deleted" ? run.code : "run_aborted";
        for (const flow of await openFlowsOfRun(unit.tx, run.runId)) {
          if (flow.kind === "send") await cancelConversation(acceptor, unit, flow, reason);
        }
      }
      if (run.state === "error" || run.state === "timeout") await endItsUnanswered(unit, run);
      await wakeRunEnded(parts, acceptor, unit, run);
      const flow = run.flow === undefined ? undefined : await holdFlow(unit.tx, run.flow.flowId);
      if (flow?.kind === "send") await conversationRunEnded(parts, { acceptor, unit, flow, run, answered });
      if (flow?.kind === "spawn") await jobRunEnded(parts, acceptor, unit, run, flow);
      await directRunEnded(parts, unit, run);
      await planArchiving(acceptor, unit, run);
      await postponeCleanup(acceptor, unit, run, flow?.open === true && flow.kind === "spawn");
    },
    async answerLost(acceptor, unit, run) {
      const flow = run.flow === undefined ? undefined : await getFlow(unit.tx, run.flow.flowId);
      if (flow?.kind === "send") await conversationAnswerLost(parts, { acceptor, unit, flow, run });
    },
    async cancelBelow(acceptor, unit, aborted) {
      const session = await getSession(unit.tx, aborted.sessionKey);
      // Before those below: what becomes of them is asked for no more.
      if (session !== undefined && aborted.runId === undefined) {
        await jobStopped(parts, acceptor, unit, session);
      }
      const ended = await cancelJobs(acceptor, unit, aborted);
      if (session === undefined) return ended;
      // A sub-agent that only waited for what was cancelled has nothing left to wait for.
      await jobMayHaveEnded(parts, acceptor, unit, session);
      await lookAbove(parts, acceptor, unit, session);
      return ended;
    },
    async budgetUsedUp(acceptor, unit, refused, error) {
      const { rootSessionKey } = await getChain(unit.tx, refused.chainId);
      const root = rootSessionKey === undefined ? undefined : await getSession(unit.tx, rootSessionKey);
      if (root === undefined) return;
      const { sessionKey: sourceSessionKey, chainId, hop } = refused;
      const provenance: Provenance = { kind: "notice", sourceSessionKey, chainId, hop };
      const text = `Notice from the gateway: ${error}. No further run of this conversation starts.`;
      await acceptor.acceptIn(unit, {
        sessionKey: root.key,
        kind: "append",
        input: { text, provenance },
        successor: true,
      });
    },
  };
}

/** A run that failed while it waited for answers waits for none any more. */
async function endItsUnanswered(unit: Unit, run: Run): Promise<void> {
  for (const flow of await openFlowsOfRun(unit.tx, run.runId)) {
    const target = flow.kind === "send" ? await getSession(unit.tx, flow.targetKey) : undefined;
    if (target?.external === true) await endUnanswered(unit, { runId: run.runId, flow });
  }
}

/** Work in a child whose job is done, such as a person's question to it, postpones its archiving. */
async function postponeCleanup(acceptor: Acceptor, unit: Unit, run: Run, inJob: boolean): Promise<void> {
  if (inJob || !isSubagentKey(run.sessionKey)) return;
  const session = await getSession(unit.tx, run.sessionKey);
  if (session?.spawn === undefined) return;
  const job = await getFlow(unit.tx, session.spawn.flowId);
  if (job !== undefined && !job.open) await planChildCleanup(acceptor, unit, session);
}
