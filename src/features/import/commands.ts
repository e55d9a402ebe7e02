// The command `parley import`.

import { type Commands, flag, option, program } from "../../cli/row.ts";

export const IMPORT: Commands = {
  import: program({
    summary: "Import an OpenClaw or Clawdbot state directory, without changing it",
    args: { "<dir>": "" },
    options: {
      dryRun: flag("Show what would be imported, and change nothing"),
      accept: option(
        "<name...>",
        "Also import these settings or groups of them, which affect security (all: every group)",
      ),
      link: flag("Let agents use the accepted workspaces where they are, instead of copies"),
    },
    load: async () => (await import("./command.ts")).runImport,
  }),
};
