// Adds the Agent Client Protocol: agents that are outside programs, and sessions in editors.

import { type Feature, type FeatureRuntime, feature, type LoadedBy } from "../../feature.ts";
import { checkRuntime, RUNTIME } from "./settings.ts";

export const acp = feature({
  name: "acp",
  needs: ["init"],
  commands: async (): LoadedBy<"commands"> => (await import("./rows.ts")).ACP,
  runtimes: {
    acp: {
      settings: {
        summary: "acp: an outside program that speaks the Agent Client Protocol.",
        fields: RUNTIME,
        check: checkRuntime,
        model: "set it in runtime.command or env",
      },
      load: (): ReturnType<FeatureRuntime["load"]> => import("./run.ts"),
    },
  },
  doctor: {
    subjects: ({ agents }): string[] =>
      agents.flatMap(({ id, runtime }) => (runtime?.type === "acp" ? [`agent ${id}`] : [])),
    isOutside: false,
    load: (): ReturnType<Required<Feature>["doctor"]["load"]> => import("./doctor.ts"),
  },
});
