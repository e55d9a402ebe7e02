// The command of the upgrade.

import { type Commands, flag, program } from "../../cli/row.ts";

export const UPGRADE: Commands = {
  upgrade: program({
    summary: "Say what this version changes for your configuration and store",
    options: { check: flag("Check, print the commands of the upgrade, and change nothing") },
    load: async () => (await import("./command.ts")).runUpgrade,
  }),
};
