// Mutants of the code that lets several processes share a store: leases, heartbeats, and the decision that a
// process is dead.

import type { Mutant } from "./mutant.ts";

const LEASE = "src/engine/cluster/lease.ts";

export const CLUSTER_MUTANTS: readonly Mutant[] = [
  {
    name: "beat-behind-the-clock-question",
    breaks: "CS2: the beat waits for the database's time",
    file: LEASE,
    from: "      const [isAlive, all] = await shared.urgently((tx) =>",
    to: "      await shared.syncClock();\n      const [isAlive, all] = await shared.urgently((tx) =>",
  },
  {
    name: "judged-at-once-after-an-outage",
    breaks: "CS2: the quickest after an outage takes the others for dead",
    file: LEASE,
    from: "now - this.#answeredAt > GAP_MS ? new Map<string, never>() : this.#others;",
    to: "this.#others;",
  },
  {
    name: "judged-by-the-database-clock",
    breaks: "CS2: a clock that jumps forward takes processes for dead",
    file: LEASE,
    from: "filter((other) => now - other.since >= LEASE_MS)",
    to: "filter((other) => now > 0 && this.#parts.world.clock.now() - other.beatAt >= LEASE_MS)",
  },
  {
    name: "beat-without-fence",
    breaks: "CS4: a process that was taken for dead goes on",
    file: LEASE,
    from: "      if (isAlive) this.#renew(sentAt, all);\n      else await this.#lose();",
    to: "      if (isAlive || all.length >= 0) this.#renew(sentAt, all);\n      else await this.#lose();",
  },
  {
    name: "failed-beat-keeps-authority",
    breaks: "CS1: a beat that failed changes nothing until the lease is over",
    file: LEASE,
    from: "      this.#until = Number.NEGATIVE_INFINITY;\n      this.#failedAt",
    to: "      this.#failedAt",
  },
  {
    name: "authority-without-end",
    breaks: "CS1: a beat without an answer never ends the authority",
    file: LEASE,
    from: "this.#until = sentAt + LEASE_MS - MARGIN_MS;",
    to: "this.#until = Number.POSITIVE_INFINITY;",
  },
  {
    name: "authority-counted-from-the-answer",
    breaks: "CS1: a beat that is answered late counts as one that was sent late",
    file: LEASE,
    from: "this.#until = sentAt + LEASE_MS - MARGIN_MS;",
    to: "this.#until = now + LEASE_MS - MARGIN_MS;",
  },
  {
    name: "tool-call-without-authority",
    breaks: "CS1: a tool call begins, whoever may have the run by now",
    file: "src/engine/run/execution.ts",
    from: "duringCall: (work) => confirm().then(() => keeper.duringCall(work)),",
    to: "duringCall: keeper.duringCall,",
  },
  {
    name: "model-call-without-authority",
    breaks: "CS1: a model call begins, whoever may have the run by now",
    file: "src/engine/run/execution.ts",
    from: "    confirm,\n",
    to: "    confirm: async () => {},\n",
  },
  {
    name: "write-without-authority",
    breaks: "CS1: an entry is written, whoever may have the run by now",
    file: "src/engine/run/transcript-writer.ts",
    from: "        await confirm();\n",
    to: "",
  },
  {
    name: "accepted-run-on-an-old-lease",
    breaks: "CS3: a run is started by a process whose lease is nearly over",
    file: "src/engine/lanes/scheduler.ts",
    from: "lease?.isFresh() !== false && ",
    to: "",
  },
  {
    name: "woken-run-on-an-old-lease",
    breaks: "CS3: a lane is taken up by a process whose lease is nearly over",
    file: "src/engine/lanes/scheduler.ts",
    from: "      if (lease !== undefined && !(await lease.ensureFresh())) return;\n",
    to: "",
  },
  {
    name: "late-claim-on-an-old-lease",
    breaks: "CS3: a run starts although the answer to its claim came when the lease was nearly over",
    file: LEASE,
    from: "losses === this.#losses && this.isFresh()",
    to: "losses === this.#losses",
  },
  {
    name: "late-claim-of-a-lost-run",
    breaks: "CS6: a run starts although other processes took it before the claim was answered",
    file: LEASE,
    from: "losses === this.#losses && this.isFresh()",
    to: "this.isFresh()",
  },
];
