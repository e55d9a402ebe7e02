// Decides which instruction files and skills the model of a session is given.
// G1: a sandboxed session gets only files of its workspace, because it may not read others.

import type { Settings } from "../../shapes/settings/settings.ts";
import { isSandboxed, type SpawnChain } from "../sandbox-policy.ts";

export interface GuidanceReach {
  /** Whether folders above the workspace, and skills in the home folder, are used. */
  readonly outside: boolean;
}

export function guidanceReach(chain: SpawnChain, settings: Settings): GuidanceReach {
  return { outside: !isSandboxed(chain, settings) };
}
