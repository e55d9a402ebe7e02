// The command of the doctor.

import { type Commands, flag, program } from "../../cli/row.ts";

export const DOCTOR: Commands = {
  doctor: program({
    summary: "Find problems of this installation and explain how to fix them",
    options: {
      offline: flag("Do not contact models (each call costs a few tokens), channels or MCP servers"),
    },
    load: async () => (await import("./command.ts")).runDoctor,
  }),
};
