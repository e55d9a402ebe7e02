// Owns the method that runs `parley doctor` for the gateway in a process of its own: its checks read the
// whole store, start programs and call models. Secrets are redacted in its findings (I14).
// DR1: at most one doctor runs. It is killed with its child processes at its time limit, and when its caller
//      disconnects.

import { isObject } from "../../core/json.ts";
import { oneAtATime } from "../../core/one-at-a-time.ts";
import { optional } from "../../core/optional.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { HostProgramEnd } from "../../core/shapes/host-program.ts";
import type { FeatureDeps, Methods } from "../../gateway/call.ts";
import type { DOCTOR_METHODS, DoctorFinding } from "./contract.ts";

const DOCTOR_MAX_MS = 180_000;
const OUTPUT_MAX_BYTES = 1024 * 1024;
const LEVELS: readonly unknown[] = ["ok", "warning", "problem"] satisfies DoctorFinding["level"][];

type RunCommand = FeatureDeps["runCommand"];

const alone = oneAtATime(fail("rate_limited", "the doctor is already running; wait for its result"));

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

/** Runs the doctor of a gateway. Exported for tests. */
export function examine(
  runCommand: NonNullable<RunCommand>,
  offline: boolean,
  signal: AbortSignal,
): Promise<Result<DoctorFinding[]>> {
  return alone(runCommand, async () => {
    try {
      const limits = { outputMaxBytes: OUTPUT_MAX_BYTES, timeoutMs: DOCTOR_MAX_MS, signal };
      return resultOf(await runCommand(["doctor", ...(offline ? ["--offline"] : [])], limits));
    } catch (error) {
      return fail("exec_failed", `the doctor could not be started: ${(error as Error).message}`);
    }
  });
}

export const doctorMethods: Methods<keyof typeof DOCTOR_METHODS, FeatureDeps> = {
  doctor: {
    async handle({ deps, signal }, { offline = false }) {
      const { clock, redactor } = deps.world;
      if (deps.runCommand === undefined) return fail("unknown_method", "this gateway has no doctor");
      const begun = clock.monotonic();
      const found = await examine(deps.runCommand, offline, signal);
      if (!found.ok) return found;
      const findings = redactor.all(found.value);
      const durationMs = Math.round(clock.monotonic() - begun);
      return ok({
        ok: findings.every(({ level }) => level !== "problem"),
        ts: clock.now(),
        durationMs,
        findings,
      });
    },
  },
};
