// Adds web hooks: programs start runs over HTTP, and programs are told of events.

import { type Feature, type FeatureRoute, feature, type LoadedBy } from "../../feature.ts";
import { HOOK_BODIES } from "./contract.ts";
import { hookProblems } from "./problems.ts";
import { HOOK_SETTINGS } from "./settings.ts";

export const hooks = feature({
  name: "hooks",
  settings: { hooks: HOOK_SETTINGS },
  problems: hookProblems,
  bodies: HOOK_BODIES,
  routes: {
    "/hooks/*": {
      shown: "POST /hooks/",
      needsToken: false,
      load: (): ReturnType<FeatureRoute["load"]> => import("./door.ts"),
    },
  },
  outbox: (): LoadedBy<"outbox"> => import("./outbox.ts"),
  doctor: {
    isOutside: false,
    subjects: ({ hooks: { enabled } }): string[] => (enabled ? ["hooks"] : []),
    load: (): ReturnType<Required<Feature>["doctor"]["load"]> => import("./doctor.ts"),
  },
});
