// Mutants that make the program depend on something outside of a chain's record: the real clock, an order, a
// random id, a setting that is read late, a result that varies. A replay must name a difference
// (mutants.deep.test.ts).

import type { Mutant } from "../../sim/mutants/mutant.ts";

/** A mutant, and the name of the chain whose replay finds it. */
interface ReplayMutant extends Mutant {
  readonly chain: string;
}

export const REPLAY_MUTANTS: readonly ReplayMutant[] = [
  {
    name: "real-clock-in-a-deadline",
    chain: "send-in-vain",
    breaks: "the wait of a send ends by the clock of the machine",
    file: "src/flows/conversation/send.ts",
    from: "deadlineAt: acceptedAt + Math.round(",
    to: "deadlineAt: Date.now() + Math.round(",
  },
  {
    name: "real-clock-in-an-announcement",
    chain: "job",
    breaks: "the announced duration of a job ends at the time of the machine",
    file: "src/flows/job/end.ts",
    from: "begun.length === 0 ? 0 : ended - started",
    to: "begun.length === 0 ? 0 : Date.now() - started",
  },
  {
    name: "jobs-in-another-order",
    chain: "jobs",
    breaks: "a wait lists finished sub-agents in another order",
    file: "src/flows/job/wait.ts",
    from: "for (const row of ended) {",
    to: "for (const row of ended.toReversed()) {",
  },
  {
    name: "random-id-for-a-derived-one",
    chain: "send",
    breaks: "a sent message does not get the id of its run",
    file: "src/engine/run/begin.ts",
    from: "id: isSessionMessage(run) ? runId : unit.newOrderedId()",
    to: "id: isSessionMessage(run) && runId !== undefined ? crypto.randomUUID() : unit.newOrderedId()",
  },
  {
    name: "setting-read-late",
    chain: "reloaded",
    breaks: "a conversation has as many turns as the settings say now, not as they said when it began",
    file: "src/flows/conversation/reply-back.ts",
    from: "turn: run.flow?.turn ?? 1, turnsMax: flow.turnsMax, end: run",
    to: "turn: run.flow?.turn ?? 1, turnsMax: context.settings.session.agentToAgent.maxPingPongTurns, end: run",
  },
  {
    name: "result-that-varies",
    chain: "send",
    breaks: "the result of a send has a text that no record can give",
    file: "src/flows/conversation/send.ts",
    from: `isSilent(text) ? "" : await redactor.whole(text);`,
    to: `isSilent(text) ? "" : \`\${await redactor.whole(text)} \${process.hrtime.bigint()}\`;`,
  },
];
