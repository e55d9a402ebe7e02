// Opens the monitoring of a gateway: its metrics and, if enabled, its traces.

import type { Settings } from "../core/shapes/settings/settings.ts";
import { type Metrics, openMetrics } from "../gateway/metrics/metrics.ts";
import type { Traces } from "../telemetry/traces.ts";
import { logging, type World } from "../world.ts";

export interface Watching {
  readonly metrics: Metrics;
  /** Absent if traces are disabled. */
  readonly traces: Traces | undefined;
  close(): Promise<void>;
}

/** `shared`: the world with the store's clock, which the dates of runs use. */
export async function openWatching(
  of: { settings: Settings; world: World; version: string },
  shared: World,
): Promise<Watching> {
  const { settings, version } = of;
  // Loaded only if enabled.
  const load = settings.traces && (await import("../telemetry/traces.ts")).openTraces;
  const traces = await load?.(settings, logging(shared, { part: "telemetry" }), version);
  const metrics = openMetrics({ ...of, world: logging(of.world, { part: "gateway" }) });
  const close = async (): Promise<void> => {
    metrics.close();
    await traces?.close();
  };
  return { metrics, traces, close };
}
