// Asks the owner for permission during a run, and waits for the answer.
// PD1: in each of these cases a request is denied: no answer in time, a run that ends, a gateway that stops,
//      a store that fails.

import type { PermissionDecision, PermissionQuestion } from "../core/shapes/permission.ts";
import type { Engine } from "../engine/engine.ts";
import type { OutboxListener } from "../flows/delivery/outbox.ts";
import {
  closePermission,
  expirePermission,
  openPermission,
  type PermissionRequest,
} from "../flows/permission.ts";
import { decisionOf } from "../store/queries/permissions.ts";
import { pause } from "../world/pause.ts";
import type { Log, World } from "../world.ts";

/** A waiting agent reads its request at this interval, because an event may be lost. */
const LOOK_AGAIN_MS = 10_000;

export interface PermissionParts {
  readonly engine: Pick<Engine, "commit" | "store" | "bus" | "now">;
  readonly world: Pick<World, "clock">;
  /** Notified of a note to a chat. */
  readonly outbound: OutboxListener;
}

/**
 * Resolves with the decision, or with a denial when the request expires or is deleted, or when the wait is
 * aborted.
 */
async function decided(
  { engine, world }: PermissionParts,
  { id, expiresAt }: PermissionQuestion,
  signal: AbortSignal,
): Promise<PermissionDecision> {
  while (!signal.aborted) {
    const news = new AbortController();
    const stop = engine.bus.subscribe((event) => {
      if (event.kind === "permission" && event.id === id) news.abort();
    });
    try {
      const leftMs = expiresAt - engine.now();
      // If an answer is stored before this denial, the answer counts, because the owner gets a confirmation
      // of it.
      if (leftMs <= 0) await engine.commit((unit) => expirePermission(unit, id));
      const decision = await decisionOf(engine.store.db, id);
      if (decision === "gone") return "deny";
      if (decision !== undefined) return decision;
      await pause(world.clock, Math.min(leftMs, LOOK_AGAIN_MS), AbortSignal.any([signal, news.signal]));
    } finally {
      stop();
    }
  }
  return "deny";
}

/** Resolves with the owner's decision, or with a denial if the owner does not decide in time (PD1). */
export async function askPermission(
  parts: PermissionParts,
  asked: PermissionRequest,
  { signal, log }: { signal: AbortSignal; log: Log },
): Promise<PermissionDecision> {
  const { engine } = parts;
  if (signal.aborted) return "deny";
  try {
    const question = await engine.commit((unit) => openPermission(parts, unit, asked));
    if (question === undefined) return "deny";
    const { id, title: what } = question;
    log.warn({ permissionId: id, what }, "an agent asks for permission; answer with: parley permissions");
    const decision = await decided(parts, question, signal);
    // This write is not awaited, so that a stopped run ends without waiting for the store.
    const closed = engine.commit((unit) => closePermission(unit, question));
    closed.catch((error: unknown) => log.debug({ err: error }, "a permission request could not be deleted"));
    return decision;
  } catch (error) {
    log.error({ err: error }, "a permission request failed and counts as denied");
    return "deny";
  }
}
