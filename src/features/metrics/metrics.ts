// Adds metrics: counts of the work of this process, for Prometheus and for the page.

import { type Feature, type FeatureRoute, feature, type LoadedBy } from "../../feature.ts";
import { METRICS_METHODS } from "./contract.ts";

export const metrics = feature({
  name: "metrics",
  methods: METRICS_METHODS,
  handlers: async (): LoadedBy<"handlers"> => (await import("./service.ts")).metricsMethods,
  routes: {
    "/metrics": {
      shown: "GET /metrics",
      needsToken: true,
      load: (): ReturnType<FeatureRoute["load"]> => import("./door.ts"),
    },
  },
  service: { load: (): ReturnType<Required<Feature>["service"]["load"]> => import("./service.ts") },
});
