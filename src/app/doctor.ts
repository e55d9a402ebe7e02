// Runs `parley doctor` for the gateway in a process of its own: its checks read the whole store, start
// programs and call models, which must not delay the gateway's event loop.
// DR1: at most one doctor runs. It is killed with its child processes at its time limit, and when its caller
//      disconnects.

import { existsSync } from "node:fs";
import type { DoctorFinding } from "../contract/methods/upkeep.ts";
import { isObject } from "../core/json.ts";
import { optional } from "../core/optional.ts";
import { fail, ok, type Result } from "../core/shapes/errors.ts";
import type { HostProgramEnd } from "../core/shapes/host-program.ts";
import type { UpkeepDeps } from "../gateway/methods/upkeep.ts";
import type { World } from "../world.ts";

const DOCTOR_MAX_MS = 180_000;
const OUTPUT_MAX_BYTES = 1024 * 1024;
const LEVELS: readonly unknown[] = ["ok", "warning", "problem"] satisfies DoctorFinding["level"][];

interface DoctorParts {
  readonly world: World;
  /** The command that starts this program. */
  readonly launcher: readonly string[];
  readonly configPath?: string | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Working directory of the process. */
  readonly folder: string;
  gatewayUrl(): string;
}

function findingOf(value: unknown): DoctorFinding | undefined {
  if (!isObject(value)) return undefined;
  const { name, level, text, mend } = value;
  if (typeof name !== "string" || typeof text !== "string" || !LEVELS.includes(level)) return undefined;
  const advice = typeof mend === "string" ? mend : undefined;
  return { name, level: level as DoctorFinding["level"], text, ...optional({ mend: advice }) };
}

function findingsIn(output: string): DoctorFinding[] | undefined {
  try {
    const report: unknown = JSON.parse(output);
    if (!isObject(report) || !Array.isArray(report.findings)) return undefined;
    return report.findings.flatMap((one) => findingOf(one) ?? []);
  } catch {
    return undefined;
  }
}

function resultOf({ ending, stdout, stderr }: HostProgramEnd): Result<DoctorFinding[]> {
  if (ending === "aborted") return fail("cancelled", "the doctor was stopped");
  if (ending === "timeout")
    return fail("exec_timeout", `the doctor was stopped after ${DOCTOR_MAX_MS / 1_000} s`, {
      hint: "Run npx parley-gateway doctor in a terminal: it shows how far it gets.",
    });
  const findings = findingsIn(stdout);
  if (findings !== undefined) return ok(findings);
  const words = stderr.trim().split("\n").at(-1) ?? "";
  return fail("exec_failed", `the doctor gave no result${words === "" ? "" : `: ${words}`}`);
}

/** Returns a function that runs the doctor. */
export function doctorOf(parts: DoctorParts): NonNullable<UpkeepDeps["doctor"]> {
  const { world, launcher, configPath, environment, folder } = parts;
  let busy = false;
  return async (offline, signal) => {
    if (busy) return fail("rate_limited", "the doctor is already running; wait for its result");
    busy = true;
    try {
      const { runHostProgram } = await import("../sandbox/host-program.ts");
      const file = configPath !== undefined && existsSync(configPath) ? ["--config", configPath] : [];
      const asked = ["--json", ...file, "--url", parts.gatewayUrl(), "doctor"];
      const argv = [...launcher, ...asked, ...(offline ? ["--offline"] : [])];
      const env = Object.fromEntries(
        Object.entries(environment).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
      );
      const limits = { outputMaxBytes: OUTPUT_MAX_BYTES, timeoutMs: DOCTOR_MAX_MS, signal };
      return resultOf(await runHostProgram({ argv, cwd: folder, env, ...limits }, world));
    } catch (error) {
      return fail("exec_failed", `the doctor could not be started: ${(error as Error).message}`);
    } finally {
      busy = false;
    }
  };
}
