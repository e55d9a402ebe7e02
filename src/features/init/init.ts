// Adds the first setup: the command that writes the configuration file.

import { feature, type LoadedBy } from "../../feature.ts";

export const init = feature({
  name: "init",
  needs: ["service"],
  commands: async (): LoadedBy<"commands"> => (await import("./rows.ts")).INIT,
  commandWords: { init: "setup configure install wizard onboard" },
});
