// Runs the cluster contract (several processes on one store) with the embedded store.

import { embeddedGround } from "../kit/engine/cluster.ts";
import { clusterContract } from "./cluster.ts";

clusterContract("several engines over one embedded store", embeddedGround);
