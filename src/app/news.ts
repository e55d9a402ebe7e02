// Builds the outboxes: that for texts to people, and that for what programs are told.

import type { Channel } from "../channels/channel.ts";
import { OutboxWorker } from "../channels/outbound.ts";
import { optional } from "../core/optional.ts";
import { accountOf } from "../core/shapes/settings/channels.ts";
import type { Settings } from "../core/shapes/settings/settings.ts";
import type { Engine } from "../engine/engine.ts";
import type { Recorder } from "../engine/unit.ts";
import type { Watch } from "../feature.ts";
import { loadOutboxes } from "../features.ts";
import { hurryCleanup } from "../flows/job/archive.ts";
import { tokensOf } from "../gateway/auth.ts";
import type { World } from "../world.ts";

/** Returns the recorder of the events that programs are told. */
export async function recorderOf(settings: Settings, drop: Watch["eventDropped"]): Promise<Recorder> {
  const recorders = (await loadOutboxes()).flatMap((one) => one.createRecorder?.(settings, drop) ?? []);
  return async (...args) => {
    for (const record of recorders) await record(...args);
  };
}

/**
 * Attaches the outboxes to the engine. That for texts is separate, so that slow receivers of web hooks do not
 * delay texts. `channels`: those to people. `token`: the gateway's own.
 */
export async function openOutboxes(parts: {
  engine: Engine;
  settings: Settings;
  world: World;
  channels: ReadonlyMap<string, Channel>;
  token: string;
}): Promise<void> {
  const { engine, settings, world, channels, token } = parts;
  const { commit, watchLease, processId: owner } = engine;
  const { db } = engine.store;
  const lookAtDates = (): void => engine.lookAtDates();
  const common = { owner, ...optional({ watchLease }), db, commit, world, lookAtDates };
  const texts = new OutboxWorker({
    ...common,
    channels,
    of: "texts",
    isConfigured: (route) => accountOf(settings.channels, route) !== undefined,
    onSettled: (unit, delivery) => hurryCleanup(unit, delivery),
  });
  const tokens = tokensOf(settings, token);
  const outboxParts = { settings, db, commit, world, tokens };
  const programs = (await loadOutboxes()).map((one) => one.createChannel(outboxParts));
  const toPrograms = new Map(programs.map((channel) => [channel.id, channel]));
  const news = new OutboxWorker({ ...common, channels: toPrograms, of: "hooks" });
  for (const worker of [texts, news]) engine.attach(worker);
}
