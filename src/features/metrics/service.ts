// Measures this process as long as the gateway runs, and owns the method that returns the measurements.

import { ok } from "../../core/shapes/errors.ts";
import type { Engine } from "../../engine/engine.ts";
import type { Service, ServiceParts } from "../../feature.ts";
import type { FeatureDeps, Methods } from "../../gateway/call.ts";
import { countDeliveries } from "../../store/queries/channels/deliveries.ts";
import { laneFigures } from "../../store/queries/runs/runs.ts";
import { countOpenWaits } from "../../store/queries/runs/waits.ts";
import { watchProcess } from "../../world/process.ts";
import type { METRICS_METHODS } from "./contract.ts";
import { type GaugeReadings, Metrics } from "./counters.ts";
import { History } from "./history.ts";

interface MetricsService extends Service {
  readonly history: History;
  /** Returns the current metrics for Prometheus. */
  text(): Promise<string>;
}

/** Returns the service of this gateway, which always runs. */
export const serviceIn = ({ services }: Pick<FeatureDeps, "services">): MetricsService =>
  services?.get("metrics") as MetricsService;

/** Counts from the store, so every process that shares the store has the same ones. */
export type StoreReadings = Awaited<ReturnType<typeof readStore>>;

async function readStore(engine: Engine) {
  const { db } = engine.store;
  const [load, deliveries, openWaits, lanes] = await Promise.all([
    engine.load(),
    countDeliveries(db),
    countOpenWaits(db),
    laneFigures(db),
  ]);
  return { load, deliveries, openWaits, lanes };
}

export function start({ settings, world, version, engine, connections }: ServiceParts): MetricsService {
  const servers = settings.tools.mcp.servers.map(({ name }) => name);
  const { clock, redactor, log } = world;
  const metrics = new Metrics({ clock, redactor, process: watchProcess(), version, servers });
  const readings = async (): Promise<GaugeReadings> => {
    try {
      return { store: await readStore(engine()), connections: connections() };
    } catch (error) {
      // The part of the store is left out.
      log.warn({ err: error }, "could not count the store's rows");
      return { connections: connections() };
    }
  };
  const history = new History(world, metrics, readings);
  const unfollow = metrics.follow(engine().bus);
  history.start();
  return {
    ...metrics,
    history,
    text: async () => metrics.text(await readings()),
    async close() {
      history.stop();
      unfollow();
      metrics.close();
    },
  };
}

export const metricsMethods: Methods<keyof typeof METRICS_METHODS, FeatureDeps> = {
  "metrics.history": {
    handle: async ({ deps }, { since }) => ok(serviceIn(deps).history.after(since ?? 0)),
  },
};
