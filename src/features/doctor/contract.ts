// Defines the method that examines an installation.

import { ADMIN, type MethodSpec } from "../../contract/methods/parts.ts";
import { flag, list, named, number, type Of, object, oneOf, text } from "../../contract/schema.ts";

const DOCTOR_FINDING = named(
  "DoctorFinding",
  "A finding of the doctor.",
  object(
    { name: text("Part that was checked."), level: oneOf("ok", "warning", "problem"), text: text() },
    { mend: text("How to fix it.") },
  ),
);
export type DoctorFinding = Of<typeof DOCTOR_FINDING>;

const DOCTOR_REPORT = named(
  "DoctorReport",
  "The result of the doctor.",
  object({
    ok: flag("False if there is a problem."),
    ts: number(),
    durationMs: number(),
    findings: list(DOCTOR_FINDING, "In the order of the checks."),
  }),
);
export type DoctorReport = Of<typeof DOCTOR_REPORT>;

export const DOCTOR_METHODS = {
  doctor: {
    scope: ADMIN,
    everySession: true,
    takesLong: true,
    summary: `Runs \`npx parley-gateway doctor\` on the gateway's machine, one at a time.`,
    params: object(
      {},
      {
        offline: flag(
          "Contacts no models (each call costs a few tokens), channels or MCP servers. Default false.",
        ),
      },
    ),
    result: DOCTOR_REPORT,
    errors: ["exec_failed", "exec_timeout", "unknown_method"],
  },
} as const satisfies Record<string, MethodSpec>;
