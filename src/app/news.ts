// Builds the parts that tell programs what happened: the recorder of events, and the channels that send them.

import type { Channel } from "../channels/channel.ts";
import { createPushes } from "../channels/push.ts";
import { createWebhooks } from "../channels/webhook.ts";
import type { Settings } from "../core/shapes/settings/settings.ts";
import type { Recorder } from "../engine/unit.ts";
import type { OutboxListener } from "../flows/delivery/outbox.ts";
import { createHookRecorder } from "../flows/delivery/outgoing-hooks.ts";
import { bothRecorders, createPushRecorder } from "../flows/delivery/push.ts";
import { taskReaders } from "../gateway/a2a/readers.ts";
import { tokensOf } from "../gateway/auth.ts";
import type { Metrics } from "../gateway/metrics/metrics.ts";
import type { Store } from "../store/sql.ts";
import type { World } from "../world.ts";

/** Returns the recorder of what programs are told: events of web hooks, and ends of A2A tasks. */
export function recorderOf(
  settings: Settings,
  told: OutboxListener,
  metrics: Pick<Metrics, "hookEventDropped">,
): Recorder {
  const hooks = createHookRecorder(settings, told, { dropped: metrics.hookEventDropped });
  return bothRecorders(hooks, createPushRecorder(told));
}

/** Returns the channels to programs. `token`: the gateway's own. */
export function newsChannels(
  settings: Settings,
  { db }: Store,
  world: World,
  token: string,
): Map<string, Channel> {
  const mayRead = taskReaders({ settings, db, clock: world.clock, tokens: tokensOf(settings, token) });
  const channels = [createWebhooks(settings, world), createPushes({ settings, db, world, mayRead })];
  return new Map(channels.map((channel) => [channel.id, channel]));
}
