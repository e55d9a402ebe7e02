// Runs the contract of several processes on one PostgreSQL.

import { postgresGround } from "../kit/engine/cluster.ts";
import { clusterContract } from "./cluster.ts";

clusterContract("several engines over one PostgreSQL", () => postgresGround());
