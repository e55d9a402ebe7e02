// The contract of several gateway processes on one store, for any database: each process can wait for,
// observe, stop and take over the work of another one.

import { describe } from "vitest";
import type { OpenGround } from "../kit/engine/cluster.ts";
import { jobsContract } from "./cluster-jobs.ts";
import { sharingContract } from "./cluster-sharing.ts";
import { sightContract } from "./cluster-sight.ts";
import { takeoverContract } from "./cluster-takeover.ts";

interface FeatureContract {
  clusterContract(openGround: OpenGround): void;
}
const FEATURES = import.meta.glob<FeatureContract>("../features/*/cluster-contract.ts", { eager: true });

function featuresContract(openGround: OpenGround): void {
  for (const { clusterContract: part } of Object.values(FEATURES)) part(openGround);
}

const PARTS = {
  "work seen from every process": sightContract,
  "work of dead processes": takeoverContract,
  "lanes, slots and waits": sharingContract,
  "waits for sub-agents": jobsContract,
  ...(Object.keys(FEATURES).length > 0 && { "what features share": featuresContract }),
} as const;
type Part = keyof typeof PARTS;

/** The parts of the contract. */
export const PART_NAMES = Object.keys(PARTS) as readonly Part[];

/** Registers the tests of these parts. Default: of all parts. */
export function clusterContract(name: string, openGround: OpenGround, parts = PART_NAMES): void {
  describe(name, () => {
    for (const part of parts) describe(part, () => PARTS[part]?.(openGround));
  });
}
