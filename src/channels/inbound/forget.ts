// Deletes old inbound messages, which are kept for deduplication, and old notices to strangers.

import type { Commit } from "../../engine/unit.ts";
import { notePrefix } from "../../flows/delivery/outbox.ts";
import { forgetSettled } from "../../store/queries/channels/deliveries.ts";
import { pruneInbound } from "../../store/queries/channels/inbound.ts";
import type { World } from "../../world.ts";
import { sweep } from "../sweep.ts";

const DAY_MS = 24 * 3_600_000;
const MESSAGES_KEPT_MS = 14 * DAY_MS;
/**
 * Interval between deletions. It is short enough for a busy deployment, although each deletes at most a few
 * thousand rows.
 */
const EVERY_MS = 600_000;

/** Deletes old rows periodically. The returned function stops it. */
export function forgetInbound(commit: Commit, world: World): () => Promise<void> {
  const failed = "old messages from channels could not be deleted";
  return sweep({ commit, world, everyMs: EVERY_MS, failed }, async (unit) => {
    await pruneInbound(unit.tx, unit.now - MESSAGES_KEPT_MS);
    await forgetSettled(unit.tx, notePrefix("pairing"), unit.now - DAY_MS);
  });
}
