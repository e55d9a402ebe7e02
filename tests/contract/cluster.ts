// What several gateway processes over one store must do together, whatever database it is: work that is
// accepted by one is waited for, seen, stopped and taken over by any other.

import { describe } from "vitest";
import type { OpenGround } from "../kit/cluster.ts";
import { cronContract } from "./cluster-cron.ts";
import { jobsContract } from "./cluster-jobs.ts";
import { sharingContract } from "./cluster-sharing.ts";
import { sightContract } from "./cluster-sight.ts";
import { takeoverContract } from "./cluster-takeover.ts";

export function clusterContract(name: string, openGround: OpenGround): void {
  describe(name, () => {
    describe("work seen from everywhere", () => sightContract(openGround));
    describe("work of the dead", () => takeoverContract(openGround));
    describe("lanes, slots and waits", () => sharingContract(openGround));
    describe("waits for sub-agents", () => jobsContract(openGround));
    describe("scheduled jobs", () => cronContract(openGround));
  });
}
