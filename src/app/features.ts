// Connects the features to the engine: their timers, the ends of their runs, and their checks at a start.

import { once } from "../core/once.ts";
import type { Run } from "../core/shapes/run.ts";
import type { Settings } from "../core/shapes/settings/settings.ts";
import type { DeadlineHandler } from "../engine/deadlines.ts";
import type { Engine } from "../engine/engine.ts";
import type { Unit } from "../engine/unit.ts";
import type {
  FeatureParts,
  FeatureRuntime,
  FeatureTimer,
  OutsideRuntime,
  RuntimeParts,
  Service,
  ServiceParts,
  Services,
  Watch,
} from "../feature.ts";
import { added, FEATURES } from "../features.ts";
import type { Db } from "../store/sql.ts";

const TIMERS: ReadonlyMap<string, FeatureTimer> = new Map(Object.entries(added("timers")));

/** The kinds of deadlines of features. Their owners compute them again after the clock was set back. */
export const FEATURE_DEADLINES: readonly string[] = [...TIMERS.keys()];

/** Returns the handlers of the timers, by their kind. */
export function featureTimers(parts: FeatureParts): ReadonlyMap<string, DeadlineHandler> {
  const handlers = new Map<string, DeadlineHandler>();
  for (const [kind, { load }] of TIMERS) {
    let handler: DeadlineHandler | undefined;
    handlers.set(kind, async (unit, key) => {
      handler ??= (await load()).createHandler(parts);
      return handler(unit, key);
    });
  }
  return handlers;
}

/** Returns whether this gateway handles deadlines of this kind. */
export const isTimerOn = (kind: string, settings: Settings): boolean =>
  TIMERS.get(kind)?.isOn?.(settings) ?? true;

/** Lets the features compute their dates again after the clock was set back. */
export async function planFeaturesAgain(engine: Engine, settings: Settings): Promise<void> {
  for (const [kind, { load }] of TIMERS)
    if (isTimerOn(kind, settings)) await (await load()).planAgain?.(engine);
}

/** Tells the feature that started a run that it has ended. */
export async function featureRunEnded(unit: Unit, run: Run): Promise<void> {
  for (const { runEnded } of FEATURES)
    if (runEnded?.isOwn(run)) await (await runEnded.load()).runEnded(unit, run);
}

/** Loads the code that the engine calls in its transactions, so that a start fails and not a due job. */
export async function loadFeatures(settings: Settings): Promise<void> {
  for (const [kind, { load }] of TIMERS) if (isTimerOn(kind, settings)) await load();
  for (const { runEnded } of FEATURES) await runEnded?.load();
}

/** Returns what the features warn of at a start. */
export async function featureWarnings(
  db: Db,
  settings: Settings,
  show: (text: string) => string,
): Promise<string[]> {
  const warnings: string[] = [];
  for (const { checks } of FEATURES)
    warnings.push(...((await (await checks?.())?.warnings(db, settings, show)) ?? []));
  return warnings;
}

/** Returns the runtimes of agents outside, each of which opens when it is first needed. */
export function openRuntimes(parts: RuntimeParts) {
  const opening: Promise<OutsideRuntime>[] = [];
  const opened: OutsideRuntime[] = [];
  const runtimes = Object.entries<FeatureRuntime>(added("runtimes")).map(([type, { load }]) => {
    const open = once(() => {
      const runtime = load().then(({ openRuntime }) => {
        const one = openRuntime(parts);
        opened.push(one);
        return one;
      });
      opening.push(runtime);
      return runtime;
    });
    return [type, open] as const;
  });
  return {
    runtimes: new Map(runtimes),
    /** Returns the sessions whose programs are running. */
    programs: (): string[] => opened.flatMap((one) => one.programs?.() ?? []),
    close: async () => {
      await Promise.allSettled(opening);
      await Promise.all(opened.map((one) => one.close?.()));
    },
  };
}

/** Returns a watch that tells all services of the work of this process. */
export function createWatch(services: Services): Watch {
  const each = (tell: (service: Service) => void): void => {
    for (const service of services.values()) tell(service);
  };
  return {
    committed: (ms) => each((one) => one.committed?.(ms)),
    modelCalled: (call) => each((one) => one.modelCalled?.(call)),
    toolAnswered: (name, result) => each((one) => one.toolAnswered?.(name, result)),
    eventDropped: (program) => each((one) => one.eventDropped?.(program)),
  };
}

/** Starts what features run as long as the gateway. */
export async function startServices(parts: ServiceParts, services: Map<string, Service>): Promise<void> {
  for (const { name, service } of FEATURES)
    if (service !== undefined && (service.isOn?.(parts.settings) ?? true))
      services.set(name, (await service.load()).start(parts));
}
