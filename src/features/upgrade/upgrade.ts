// Adds the command that says what an upgrade changes.

import { feature, type LoadedBy } from "../../feature.ts";

export const upgrade = feature({
  name: "upgrade",
  needs: ["doctor"],
  commands: async (): LoadedBy<"commands"> => (await import("./rows.ts")).UPGRADE,
  commandWords: { upgrade: "update version convert downgrade migrate rollback" },
});
