// Adds the doctor, which finds problems of an installation.

import { flag, program } from "../../cli/row.ts";
import { type Feature, feature } from "../../feature.ts";
import { DOCTOR_METHODS } from "./contract.ts";

export const doctor = feature({
  name: "doctor",
  methods: DOCTOR_METHODS,
  handlers: async (): ReturnType<Required<Feature>["handlers"]> =>
    (await import("./methods.ts")).doctorMethods,
  commands: {
    doctor: program({
      summary: "Find problems of this installation and explain how to fix them",
      meanings: "check diagnose debug fix repair troubleshoot",
      options: {
        offline: flag("Do not contact models (each call costs a few tokens), channels or MCP servers"),
      },
      load: async () => (await import("./command.ts")).runDoctor,
    }),
  },
});
