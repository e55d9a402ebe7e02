// Owns the methods for the upkeep of an installation: backups.
// UK1: they are about the whole installation, so they need a token that covers every session (I9). Secrets
//      are redacted in every text (I14); `wireError` redacts those of failures.

import type { UPKEEP_METHODS } from "../../contract/methods/upkeep.ts";
import { ok } from "../../core/shapes/errors.ts";
import type { Backups } from "../../store/transfer/backups.ts";
import type { BasicDeps, Methods } from "../call.ts";

export interface UpkeepDeps extends BasicDeps {
  readonly backups: Pick<Backups, "list" | "begin">;
}

export const upkeepMethods: Methods<keyof typeof UPKEEP_METHODS, UpkeepDeps> = {
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
