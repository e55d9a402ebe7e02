// Owns the methods for the upkeep of an installation: the doctor, backups.
// UK1: they are about the whole installation, so they need a token that covers every session (I9). Secrets
//      are redacted in every text (I14); `wireError` redacts those of failures.

import type { DoctorFinding, UPKEEP_METHODS } from "../../contract/methods/upkeep.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { Backups } from "../../store/transfer/backups.ts";
import type { BasicDeps, Methods } from "../call.ts";

export interface UpkeepDeps extends BasicDeps {
  readonly backups: Pick<Backups, "list" | "begin">;
  /** Runs the doctor. Fails if a doctor is already running. Absent if it is unavailable. */
  readonly doctor?: (offline: boolean, signal: AbortSignal) => Promise<Result<readonly DoctorFinding[]>>;
}

const NO_DOCTOR = fail("unknown_method", "this gateway has no doctor");

export const upkeepMethods: Methods<keyof typeof UPKEEP_METHODS, UpkeepDeps> = {
  doctor: {
    async handle({ deps, signal }, { offline = false }) {
      const { clock, redactor } = deps.world;
      const begun = clock.monotonic();
      const found = (await deps.doctor?.(offline, signal)) ?? NO_DOCTOR;
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
  "store.backups": {
    async handle({ deps }) {
      const { clock, redactor } = deps.world;
      const found = await deps.backups.list();
      return found.ok ? ok({ ts: clock.now(), ...redactor.all(found.value) }) : found;
    },
  },
  "store.backup": {
    async handle({ deps }) {
      const begun = await deps.backups.begin();
      if (!begun.ok) return begun;
      const { name, startedAtMs } = begun.value;
      return ok({ ok: true, name, startedAtMs });
    },
  },
};
