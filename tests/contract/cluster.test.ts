// Runs the contract of several processes on one embedded store.

import { embeddedGround } from "../kit/engine/cluster.ts";
import { clusterContract } from "./cluster.ts";

clusterContract("several engines over one embedded store", embeddedGround);
