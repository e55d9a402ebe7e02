// Builds the outboxes, and the parts that tell programs what happened: the recorder of events, and the
// channels that send them.

import type { Channel } from "../channels/channel.ts";
import { OutboxWorker } from "../channels/outbound.ts";
import { createPushes, createWebhooks } from "../channels/webhook.ts";
import { optional } from "../core/optional.ts";
import { accountOf } from "../core/shapes/settings/channels.ts";
import type { Settings } from "../core/shapes/settings/settings.ts";
import type { Engine } from "../engine/engine.ts";
import type { Recorder } from "../engine/unit.ts";
import { createHookRecorder } from "../flows/delivery/outgoing-hooks.ts";
import { bothRecorders, createPushRecorder } from "../flows/delivery/push.ts";
import { hurryCleanup } from "../flows/job/archive.ts";
import { taskReaders } from "../gateway/a2a/readers.ts";
import { tokensOf } from "../gateway/auth.ts";
import type { Metrics } from "../gateway/metrics/metrics.ts";
import type { Store } from "../store/sql.ts";
import type { World } from "../world.ts";

/** Returns the recorder of what programs are told: events of web hooks, and ends of A2A tasks. */
export function recorderOf(settings: Settings, metrics: Pick<Metrics, "hookEventDropped">): Recorder {
  const hooks = createHookRecorder(settings, { onDropped: metrics.hookEventDropped });
  return bothRecorders(hooks, createPushRecorder());
}

/** Returns the channels to programs. `token`: the gateway's own. */
function newsChannels(settings: Settings, { db }: Store, world: World, token: string): Map<string, Channel> {
  const mayRead = taskReaders({ settings, db, clock: world.clock, tokens: tokensOf(settings, token) });
  const channels = [createWebhooks(settings, world), createPushes({ settings, db, world, mayRead })];
  return new Map(channels.map((channel) => [channel.id, channel]));
}

/**
 * Attaches the outboxes to the engine. That for texts is separate, so that slow receivers of web hooks do not
 * delay texts. `channels`: those to people. `token`: the gateway's own.
 */
export function openOutboxes(parts: {
  engine: Engine;
  settings: Settings;
  world: World;
  channels: ReadonlyMap<string, Channel>;
  token: string;
}): void {
  const { engine, settings, world, channels, token } = parts;
  const { commit, store, watchLease, processId: owner } = engine;
  const lookAtDates = (): void => engine.lookAtDates();
  const common = { owner, ...optional({ watchLease }), db: store.db, commit, world, lookAtDates };
  const texts = new OutboxWorker({
    ...common,
    channels,
    of: "texts",
    isConfigured: (route) => accountOf(settings.channels, route) !== undefined,
    onSettled: (unit, delivery) => hurryCleanup(unit, delivery),
  });
  const told = newsChannels(settings, store, world, token);
  const news = new OutboxWorker({ ...common, channels: told, of: "hooks" });
  for (const worker of [texts, news]) engine.attach(worker);
}
