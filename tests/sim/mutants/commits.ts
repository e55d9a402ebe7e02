// Mutants that have an effect only if the answer to a commit is lost, or if waiting for a shared commit
// fails.

import type { Mutant } from "./mutant.ts";

export const COMMIT_MUTANTS: readonly Mutant[] = [
  {
    name: "lost-answer-told-as-a-failure",
    breaks: "I4: a client is told that its request failed, and it took place",
    file: "src/engine/run/until-stored.ts",
    from: "    if (!isInDoubt(error)) throw error;\n    return untilStored(world, signal, ask, CLIENT_TRIES_MAX);\n",
    to: "    throw error;\n",
  },
  {
    name: "claim-of-a-lost-commit-forgotten",
    breaks: "I2: a run is claimed, and nobody executes it",
    file: "src/engine/run/reconcile.ts",
    from: "const isSettled = await executions.compare();",
    to: "const isSettled = true;",
  },
  {
    name: "failed-gathering-holds-up-the-store",
    breaks: "SG4: no transaction begins any more, once the wait for others has failed",
    file: "src/store/sqlite/groups.ts",
    from: "await parts.gather?.().catch(() => {});",
    to: "await parts.gather?.();",
  },
];
