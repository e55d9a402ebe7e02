// Owns how long is remembered what came in: messages, so that none is taken twice, and what strangers were
// told.

import type { Commit } from "../../engine/unit.ts";
import { notePrefix } from "../../flows/outbox.ts";
import { forgetSettled } from "../../store/deliveries.ts";
import { pruneInbound } from "../../store/inbound.ts";
import type { World } from "../../world.ts";
import { sweep } from "../sweep.ts";

const DAY_MS = 24 * 3_600_000;
const MESSAGES_KEPT_MS = 14 * DAY_MS;
/** Often enough for a busy deployment: a sweep takes some thousands at most. */
const EVERY_MS = 600_000;

/** Removes what is too old, now and then, until the returned function is called. */
export function forgetInbound(commit: Commit, world: World): () => Promise<void> {
  const failed = "old messages from channels were not forgotten";
  return sweep({ commit, world, everyMs: EVERY_MS, failed }, async (unit) => {
    await pruneInbound(unit.tx, unit.now - MESSAGES_KEPT_MS);
    await forgetSettled(unit.tx, notePrefix("pairing"), unit.now - DAY_MS);
  });
}
