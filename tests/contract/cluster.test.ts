// Runs the cluster contract (several processes on one store) with the embedded store.

import { share } from "../kit/deep.ts";
import { embeddedGround } from "../kit/engine/cluster.ts";
import { clusterContract, PART_NAMES } from "./cluster.ts";

// Tests of dead processes wait until a lease expires.
const parts = share(
  PART_NAMES.filter((part) => part !== "work of dead processes"),
  ["work of dead processes"],
);
clusterContract("several engines over one embedded store", embeddedGround, parts);
