// Adds the metrics to the status tab.

import { coversAll, has } from "../../gateway.ts";
import { lazy } from "../../parts/lazy.tsx";

const Figures = lazy(async () => (await import("./section.tsx")).Figures);

export const MetricsSection = () => (coversAll() && has("metrics.history") ? <Figures /> : null);
