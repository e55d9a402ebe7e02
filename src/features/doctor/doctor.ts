// Adds the doctor, which finds problems of an installation.

import { feature, type LoadedBy } from "../../feature.ts";
import { DOCTOR_METHODS } from "./contract.ts";

export const doctor = feature({
  name: "doctor",
  methods: DOCTOR_METHODS,
  handlers: async (): LoadedBy<"handlers"> => (await import("./methods.ts")).doctorMethods,
  commands: async (): LoadedBy<"commands"> => (await import("./rows.ts")).DOCTOR,
  commandWords: { doctor: "check diagnose debug fix repair troubleshoot" },
});
