// Adds the import of the state and the settings of OpenClaw and Clawdbot.

import { flag, option, program } from "../../cli/row.ts";
import { feature } from "../../feature.ts";

export const importFeature = feature({
  name: "import",
  needs: ["cron", "nodes"],
  commands: {
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
      load: async () => (await import("../../features/import/command.ts")).runImport,
    }),
  },
});
