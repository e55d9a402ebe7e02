// Owns the methods about the gateway itself: health, status, agents, models.
// Counts of work are returned only to callers whose token covers every session (I9).

import { agentsFor, seesEverything } from "../../access/token.ts";
import { accountName } from "../../channels/accounts.ts";
import type { PresenceEntry } from "../../contract/frames.ts";
import type { Health, ModelRow, OVERVIEW_METHODS } from "../../contract/methods/operations.ts";
import { PROTOCOL_VERSIONS } from "../../contract/protocol.ts";
import { optional } from "../../core/optional.ts";
import { ok } from "../../core/shapes/errors.ts";
import { WEBCHAT } from "../../core/shapes/route.ts";
import { defaultAgent } from "../../core/shapes/settings/settings.ts";
import { countDeliveries } from "../../store/queries/channels/deliveries.ts";
import { countDropped } from "../../store/queries/channels/hook-backlog.ts";
import { listProcesses } from "../../store/queries/processes.ts";
import type { Caller } from "../auth.ts";
import type { BasicDeps, CallContext, Methods } from "../call.ts";
import type { Demo } from "../demo.ts";
import type { IgnoredParams } from "../version-4/params.ts";
import type { ChannelDeps } from "./channels.ts";
import type { ConfigDeps } from "./configuration.ts";

type HealthDeps = BasicDeps &
  Pick<ChannelDeps, "channelStatuses"> & {
    readonly version: string;
    readonly startedAt: number;
  };

export type SystemDeps = HealthDeps &
  Pick<ConfigDeps, "checkConfig"> & {
    models(): readonly ModelRow[];
    /** Returns the number of connections that have completed `connect`. */
    connected(): number;
    /** Returns the connected clients that the caller may see. */
    presence(caller: Caller): PresenceEntry[];
    readonly ignoredParams: IgnoredParams;
    /** Absent if demos are unavailable. */
    readonly demo?: Pick<Demo, "running">;
  };

/**
 * Returns the problem of the store, or undefined if it answers and takes writes. Every door that speaks of
 * the gateway's health asks here: the probes, `health`, `status` and the attention list.
 */
export async function storeTrouble({
  engine: { store },
  world,
}: BasicDeps): Promise<StoreTrouble | undefined> {
  try {
    await store.db.selectFrom("sessions").select("key").limit(1).execute();
  } catch (error) {
    world.log.error({ err: error }, "the store does not answer");
    return { answers: false, reason: "the store does not answer" };
  }
  const refusal = await store.refusal?.();
  return refusal === undefined ? undefined : { answers: true, reason: `the store ${refusal}` };
}

interface StoreTrouble {
  /** Whether the store can be read. */
  readonly answers: boolean;
  readonly reason: string;
}

async function workOf(deps: BasicDeps) {
  const { db } = deps.engine.store;
  const [lanes, deliveries, dropped] = await Promise.all([
    deps.engine.load(),
    countDeliveries(db),
    countDropped(db),
  ]);
  return { lanes, deliveries: { ...deliveries, ...(dropped === 0 ? {} : { dropped }) } };
}

/** Returns the health of each channel. A channel works if one of its accounts does. */
function channelHealth({ settings, channelStatuses }: HealthDeps): Health["channels"] {
  const states = channelStatuses?.() ?? [];
  const accounts = settings.channels.map(({ channel, accountId }) => {
    const own = states.find(({ account }) => account === accountName(channel, accountId));
    return { channel, ok: own?.state !== "retrying", linked: own?.state === "ready" };
  });
  const rows = accounts.map(({ channel }): [string, Health["channels"][string]] => {
    const own = accounts.filter((one) => one.channel === channel);
    const ok = own.some((one) => one.ok);
    return [channel, { ok, configured: true, linked: own.some((one) => one.linked) }];
  });
  return { [WEBCHAT]: { ok: true, configured: true }, ...Object.fromEntries(rows) };
}

export async function health(deps: HealthDeps, caller: Caller): Promise<Health> {
  const { settings, world, version } = deps;
  const ts = world.clock.now();
  const begun = world.clock.monotonic();
  const trouble = await storeTrouble(deps);
  const accepting = deps.engine.accepting().ok;
  const { kind } = deps.engine.store;
  return {
    ok: trouble === undefined && accepting,
    ts,
    version,
    uptimeMs: ts - deps.startedAt,
    store: { kind, ok: trouble === undefined, ...optional({ reason: trouble?.reason }) },
    accepting,
    // The protocol's clients show a channel by `configured` and `linked`.
    channels: channelHealth(deps),
    defaultAgentId: defaultAgent(settings).id,
    ...(trouble?.answers !== false && seesEverything(caller) ? await workOf(deps) : {}),
    durationMs: Math.round(world.clock.monotonic() - begun),
  };
}

/** Returns the gateways that share the store, or nothing if this is the only one. */
async function processesOf({ engine, world }: BasicDeps) {
  const { store } = engine;
  if (store.shared === undefined) return {};
  return { processId: engine.processId, processes: await listProcesses(store.db, world.clock.now()) };
}

/** Returns whether no session has any message yet. */
async function isUnused({ engine }: BasicDeps): Promise<boolean> {
  const said = await engine.store.db.selectFrom("messages").select("id").limit(1).executeTakeFirst();
  return said === undefined;
}

/** Compares the configuration file with the running settings. Returns nothing if there is no file. */
function configOf({ checkConfig }: SystemDeps) {
  if (checkConfig === undefined) return {};
  const { ok, differs, changed, restart } = checkConfig();
  return { config: { ok, differs, changed, restart } };
}

async function status({ deps, caller }: CallContext<SystemDeps>) {
  const all = seesEverything(caller)
    ? {
        connections: deps.connected(),
        ignoredParams: deps.ignoredParams.rows(),
        unused: await isUnused(deps),
        ...configOf(deps),
        ...(await processesOf(deps)),
      }
    : {};
  return {
    ...(await health(deps, caller)),
    ...all,
    ...(deps.demo === undefined ? {} : { demo: { running: deps.demo.running } }),
    protocol: PROTOCOL_VERSIONS,
    agents: agentsFor(deps.settings, caller).length,
    models: deps.models().length,
  };
}

export const systemMethods: Methods<keyof typeof OVERVIEW_METHODS, SystemDeps> = {
  health: {
    handle: async (ctx) => ok(await health(ctx.deps, ctx.caller)),
  },
  status: {
    handle: async (ctx) => ok(await status(ctx)),
  },
  "system-presence": {
    handle: async ({ deps, caller }) => ok(deps.presence(caller)),
  },
  "agents.list": {
    async handle({ deps: { settings }, caller }) {
      const agents = agentsFor(settings, caller).map(
        ({ id, name, color, icon, default: isDefault, model }) => ({
          id,
          ...optional({ name, color, icon }),
          default: isDefault,
          model,
        }),
      );
      const { mainKey, scope } = settings.session;
      return ok({ defaultId: defaultAgent(settings).id, mainKey, scope, agents });
    },
  },
  "models.list": {
    handle: async ({ deps }) => ok({ models: deps.models() }),
  },
};
