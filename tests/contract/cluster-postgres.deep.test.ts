// Runs the cluster contract (several processes on one store) with PostgreSQL.

import { postgresGround } from "../kit/engine/cluster.ts";
import { clusterContract } from "./cluster.ts";

clusterContract("several engines over one PostgreSQL", () => postgresGround());
