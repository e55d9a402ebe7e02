// Decides which instruction files and skills the model of a session is given.
// G1: a sandboxed session gets only files of its workspace, because it may not read others.
// G2: a session outside of a sandbox gets no file that a sandboxed session could have written, because it
//     would follow instructions from inside the sandbox.

import type { Settings } from "../../shapes/settings/settings.ts";
import { isSandboxed, type SpawnChain } from "../sandbox-policy.ts";

export interface GuidanceReach {
  /** Whether folders above the workspace, and skills in the home folder, are used. */
  readonly outside: boolean;
  /** Folders whose files are not used. */
  readonly untrusted: readonly string[];
}

export function guidanceReach(chain: SpawnChain, settings: Settings): GuidanceReach {
  if (isSandboxed(chain, settings)) return { outside: false, untrusted: [] };
  const sandboxing = settings.agents.filter(({ sandbox }) => sandbox.mode !== "off");
  return { outside: true, untrusted: sandboxing.map(({ workspace }) => workspace) };
}
