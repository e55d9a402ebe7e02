// The contract of several gateway processes on one store, for any database: each process can wait for,
// observe, stop and take over the work of another one.

import { describe } from "vitest";
import type { OpenGround } from "../kit/engine/cluster.ts";
import { cronContract } from "./cluster-cron.ts";
import { jobsContract } from "./cluster-jobs.ts";
import { sharingContract } from "./cluster-sharing.ts";
import { sightContract } from "./cluster-sight.ts";
import { takeoverContract } from "./cluster-takeover.ts";

export function clusterContract(name: string, openGround: OpenGround): void {
  describe(name, () => {
    describe("work seen from every process", () => sightContract(openGround));
    describe("work of dead processes", () => takeoverContract(openGround));
    describe("lanes, slots and waits", () => sharingContract(openGround));
    describe("waits for sub-agents", () => jobsContract(openGround));
    describe("scheduled jobs", () => cronContract(openGround));
  });
}
