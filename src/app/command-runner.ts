// Runs commands of this program for the gateway in processes of their own, so that their work does not delay
// the gateway's event loop. A process is killed with its child processes at its time limit, and when its
// caller disconnects.

import { existsSync } from "node:fs";
import type { FeatureDeps } from "../gateway/call.ts";
import type { World } from "../world.ts";

interface RunnerParts {
  readonly world: World;
  /** The command that starts this program. */
  readonly launcher: readonly string[];
  readonly configPath?: string | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Working directory of the processes. */
  readonly folder: string;
  gatewayUrl(): string;
}

export function commandRunner(parts: RunnerParts): NonNullable<FeatureDeps["runCommand"]> {
  const { world, launcher, configPath, environment, folder } = parts;
  return async (words, limits) => {
    const { runHostProgram } = await import("../sandbox/host-program.ts");
    const file = configPath !== undefined && existsSync(configPath) ? ["--config", configPath] : [];
    const argv = [...launcher, "--json", ...file, "--url", parts.gatewayUrl(), ...words];
    const env = Object.fromEntries(
      Object.entries(environment).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
    );
    return runHostProgram({ argv, cwd: folder, env, ...limits }, world);
  };
}
