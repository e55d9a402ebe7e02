// Builds the outboxes: that for texts to people, and that for what programs are told.

import type { Channel } from "../channels/channel.ts";
import { OutboxWorker } from "../channels/outbound.ts";
import { createWebhooks } from "../channels/webhook.ts";
import { optional } from "../core/optional.ts";
import { accountOf } from "../core/shapes/settings/channels.ts";
import type { Settings } from "../core/shapes/settings/settings.ts";
import type { Engine } from "../engine/engine.ts";
import { hurryCleanup } from "../flows/job/archive.ts";
import { tokensOf } from "../gateway/auth.ts";
import type { World } from "../world.ts";
import { featureChannels } from "./features.ts";

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
  const tokens = tokensOf(settings, token);
  const told = [
    createWebhooks(settings, world),
    ...featureChannels({ settings, db: store.db, world, tokens }),
  ];
  const toPrograms = new Map(told.map((channel) => [channel.id, channel]));
  const news = new OutboxWorker({ ...common, channels: toPrograms, of: "hooks" });
  for (const worker of [texts, news]) engine.attach(worker);
}
