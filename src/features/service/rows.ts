// The commands of the service.

import { type Commands, flag, program } from "../../cli/row.ts";

export const SERVICE: Commands = {
  service: {
    summary: "Run the gateway as a service of this user",
    commands: {
      install: program({
        summary: "Install the service, so that it starts with the machine and restarts after a failure",
        options: {
          print: flag("Print the service's file and change nothing"),
          noStart: flag("Write the service's file and print the commands that start the service"),
        },
        load: async () => (await import("./commands.ts")).installService,
      }),
      uninstall: program({
        summary: "Stop the service and remove its file, but keep the state",
        load: async () => (await import("./commands.ts")).uninstallService,
      }),
      status: program({
        summary: "Show whether the service is installed and running",
        isDefault: true,
        load: async () => (await import("./commands.ts")).serviceStatus,
      }),
    },
  },
};
