// Adds the gateway as a service of this user, under systemd or launchd.

import { feature, type LoadedBy } from "../../feature.ts";

export const service = feature({
  name: "service",
  commands: async (): LoadedBy<"commands"> => (await import("./rows.ts")).SERVICE,
  commandWords: { "service install": "enable autostart boot background" },
});
