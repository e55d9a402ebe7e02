// Adds notifications of what needs a person: by Web Push to browsers, and by ntfy.

import { type FeatureRoute, feature, type LoadedBy } from "../../feature.ts";
import { PUSH_BODIES, PUSH_METHODS } from "./contract.ts";
import { PUSH_SETTINGS } from "./settings.ts";
import { PUSH_TABLES } from "./tables.ts";

export const push = feature({
  name: "push",
  settings: { push: PUSH_SETTINGS },
  tables: PUSH_TABLES,
  grants: {
    push: {
      summary: "devices that are notified and may answer, and the key that seals their answers",
      tables: ["push_devices", "push_keys"],
      line: "name",
    },
  },
  methods: PUSH_METHODS,
  handlers: async (): LoadedBy<"handlers"> => (await import("./methods.ts")).pushMethods,
  commands: async (): LoadedBy<"commands"> => (await import("./rows.ts")).PUSH,
  commandWords: { push: "notify notification notifications phone ntfy" },
  bodies: PUSH_BODIES,
  routes: {
    "/push/answer": {
      shown: "POST /push/answer",
      // The button of a notification proves who sends the request.
      needsToken: false,
      load: (): ReturnType<FeatureRoute["load"]> => import("./door.ts"),
    },
  },
  outbox: (): LoadedBy<"outbox"> => import("./outbox.ts"),
});
