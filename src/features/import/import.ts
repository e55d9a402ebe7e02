// Adds the import of the state and the settings of OpenClaw and Clawdbot.

import { feature, type LoadedBy } from "../../feature.ts";

export const importFeature = feature({
  name: "import",
  needs: ["cron", "nodes"],
  commands: async (): LoadedBy<"commands"> => (await import("./commands.ts")).IMPORT,
});
