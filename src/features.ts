// Lists the features. A feature is left out by removing its folder and its line here.

import type { Platform } from "./channels/platform.ts";
import type { Feature, OutboxCode } from "./feature.ts";
import { a2a } from "./features/a2a/a2a.ts";
import { acp } from "./features/acp/acp.ts";
import { cron } from "./features/cron/cron.ts";
import { discord } from "./features/discord/discord.ts";
import { doctor } from "./features/doctor/doctor.ts";
import { hooks } from "./features/hooks/hooks.ts";
import { imessage } from "./features/imessage/imessage.ts";
import { importFeature } from "./features/import/import.ts";
import { init } from "./features/init/init.ts";
import { join } from "./features/join/join.ts";
import { mcpServer } from "./features/mcp-server/mcp-server.ts";
import { metrics } from "./features/metrics/metrics.ts";
import { nodes } from "./features/nodes/nodes.ts";
import { openai } from "./features/openai/openai.ts";
import { push } from "./features/push/push.ts";
import { replay } from "./features/replay/replay.ts";
import { service } from "./features/service/service.ts";
import { signal } from "./features/signal/signal.ts";
import { telegram } from "./features/telegram/telegram.ts";
import { upgrade } from "./features/upgrade/upgrade.ts";
import { whatsapp } from "./features/whatsapp/whatsapp.ts";

const LIST = [
  a2a,
  acp,
  cron,
  doctor,
  hooks,
  importFeature,
  init,
  join,
  mcpServer,
  metrics,
  nodes,
  openai,
  push,
  replay,
  service,
  upgrade,
  // People see the platforms in this order.
  telegram,
  discord,
  whatsapp,
  signal,
  imessage,
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
    | "runtimes"
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

/** The chat platforms, by the names of their channels. */
export const PLATFORMS: Readonly<Record<string, Platform>> = Object.fromEntries(
  FEATURES.flatMap(({ name, channel }) => (channel ? [[name, channel]] : [])),
);

/** Their names, like "telegram, discord or signal". */
export const PLATFORM_NAMES = Object.keys(PLATFORMS)
  .join(", ")
  .replace(/, (\w+)$/, " or $1");
