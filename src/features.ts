// Lists the features. A feature is left out by removing its folder and its line here.

import type { Feature, OutboxCode } from "./feature.ts";
import { cron } from "./features/cron/cron.ts";
import { doctor } from "./features/doctor/doctor.ts";
import { hooks } from "./features/hooks/hooks.ts";
import { importFeature } from "./features/import/import.ts";
import { init } from "./features/init/init.ts";
import { join } from "./features/join/join.ts";
import { metrics } from "./features/metrics/metrics.ts";
import { nodes } from "./features/nodes/nodes.ts";
import { openai } from "./features/openai/openai.ts";
import { replay } from "./features/replay/replay.ts";
import { service } from "./features/service/service.ts";

const LIST = [
  cron,
  doctor,
  hooks,
  importFeature,
  init,
  join,
  metrics,
  nodes,
  openai,
  replay,
  service,
] as const;

export const FEATURES: readonly Feature[] = LIST;

type Together<U> = (U extends unknown ? (one: U) => void : never) extends (all: infer I) => void ? I : never;
type Given<K extends keyof Feature> = (typeof LIST)[number] extends infer F
  ? F extends { readonly [P in K]: infer V }
    ? V
    : never
  : never;

/** Loads the code that sends events to programs. */
export const loadOutboxes = (): Promise<OutboxCode[]> =>
  Promise.all(FEATURES.flatMap(({ outbox }) => outbox?.() ?? []));

/** Everything that the features add of one kind, by name. */
export type Added<K extends keyof Feature> = [Given<K>] extends [never]
  ? Readonly<Record<never, never>>
  : Together<Given<K>>;

/** Returns everything that the features add of one kind, by name. */
export const added = <
  K extends
    | "settings"
    | "tables"
    | "methods"
    | "events"
    | "tools"
    | "bodies"
    | "commandWords"
    | "commandFor"
    | "routes"
    | "timers"
    | "grants",
>(
  kind: K,
): Added<K> => {
  const all = FEATURES.flatMap((one) => Object.entries(one[kind] ?? {}));
  const names = all.map(([name]) => name);
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) throw new Error(`two features have the ${kind} "${twice}"`);
  return Object.fromEntries(all) as Added<K>;
};
