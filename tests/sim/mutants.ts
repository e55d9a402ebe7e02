// The list of mutants: broken variants of the source. The simulation must find each of them
// (mutants.deep.test.ts).

import { CLUSTER_MUTANTS } from "./mutants/cluster.ts";
import { COMMIT_MUTANTS } from "./mutants/commits.ts";
import { DOOR_MUTANTS } from "./mutants/doors.ts";
import { ENGINE_MUTANTS } from "./mutants/engine.ts";
import { FLOW_MUTANTS } from "./mutants/flows.ts";
import type { Mutant } from "./mutants/mutant.ts";
import { STORE_MUTANTS } from "./mutants/store.ts";

export const MUTANTS: readonly Mutant[] = [
  ...ENGINE_MUTANTS,
  ...STORE_MUTANTS,
  ...FLOW_MUTANTS,
  ...DOOR_MUTANTS,
  ...COMMIT_MUTANTS,
];

/** Mutants that only stories of several processes can find. */
export { CLUSTER_MUTANTS };
