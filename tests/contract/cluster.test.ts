// Runs the contract of several processes on one store, on both stores.

import { embeddedGround, postgresGround } from "../kit/cluster.ts";
import { clusterContract } from "./cluster.ts";

clusterContract("several engines over one embedded store", embeddedGround);
clusterContract("several engines over one PostgreSQL", () => postgresGround());
