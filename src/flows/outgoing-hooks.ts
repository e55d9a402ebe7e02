// Owns what is written when programs outside are to be told: one outbox row for each hook and event, in the
// unit that caused the event.
// OH1: an event that is committed is in the outbox, and one that is not, is not: no crash comes in between.
// OH2: what waits for one hook is bounded. Over it nothing more is kept, and one failed row says how much was
//      not: operators see it, and may have it sent.

import { HOOK_VERSION, type HookEvent, hookEventOf } from "../core/hook-event.ts";
import { matchesAny } from "../core/pattern.ts";
import type { Route } from "../core/session.ts";
import type { OutgoingHook } from "../core/settings.ts";
import type { Recorder, Unit } from "../engine/unit.ts";
import { insertDelivery } from "../store/deliveries.ts";
import { BACKLOG_FULL, backlogRow, isBacklogFull, rewriteBacklogRow } from "../store/hook-backlog.ts";
import type { Outbound } from "./outbox.ts";

/** The channel of the outbox that calls hooks. */
export const WEBHOOK = "webhook";
/** News that waits for one hook. */
const PENDING_MAX = 1_000;

/** Where the outbox sends the news of a hook: its name, since its address may be a secret. */
export function hookRoute(hook: OutgoingHook): Route {
  return { channel: WEBHOOK, to: hook.name };
}

function wants(hook: OutgoingHook, { type, sessionKey }: HookEvent): boolean {
  if (!hook.events.includes(type)) return false;
  return hook.sessions === undefined || matchesAny(hook.sessions, sessionKey);
}

function bodyOf(id: string, type: string, atMs: number, data: Readonly<Record<string, unknown>>): string {
  return JSON.stringify({ version: HOOK_VERSION, id, type, timestamp: new Date(atMs).toISOString(), data });
}

async function queue(unit: Unit, hook: OutgoingHook, event: HookEvent): Promise<void> {
  const id = unit.newId();
  await insertDelivery(unit.tx, {
    id,
    sessionKey: event.sessionKey,
    kind: "hook",
    route: hookRoute(hook),
    text: bodyOf(id, event.type, unit.now, event.data),
    state: "pending",
    createdAt: unit.now,
  });
}

/** One more that is not kept. */
async function countLost(
  unit: Unit,
  hook: OutgoingHook,
  { sessionKey }: HookEvent,
  pendingMax: number,
): Promise<void> {
  const route = hookRoute(hook);
  const before = await backlogRow(unit.tx, route);
  const known = before === undefined ? undefined : (JSON.parse(before.text) as { data: Lost });
  const since = known?.data.since ?? new Date(unit.now).toISOString();
  const lost: Lost = { events: (known?.data.events ?? 0) + 1, since };
  const id = before?.id ?? unit.newId();
  const text = bodyOf(id, "events.lost", unit.now, { ...lost });
  const error =
    `${pendingMax} events wait for this hook; ${lost.events} more since ${since} were not kept. ` +
    "Retry sends the receiver this number, dismiss forgets it.";
  if (before !== undefined) return rewriteBacklogRow(unit.tx, id, { text, error });
  const row = {
    id,
    sessionKey,
    kind: "hook",
    route,
    text,
    state: "failed",
    code: BACKLOG_FULL,
    error,
  } as const;
  await insertDelivery(unit.tx, { ...row, createdAt: unit.now });
}

interface Lost {
  readonly events: number;
  readonly since: string;
}

/**
 * Writes the news of a unit's events; undefined: nobody is to be told of anything. `pendingMax`: so much may
 * wait for one hook. Default 1000.
 */
export function createHookRecorder(
  hooks: readonly OutgoingHook[],
  outbound: Outbound,
  pendingMax = PENDING_MAX,
): Recorder | undefined {
  if (hooks.length === 0) return undefined;
  return async (unit, events) => {
    let queued = false;
    for (const live of events) {
      const event = hookEventOf(live, unit.redactor);
      if (event === undefined) continue;
      for (const hook of hooks.filter((one) => wants(one, event))) {
        const isFull = await isBacklogFull(unit.tx, hookRoute(hook), pendingMax);
        await (isFull ? countLost(unit, hook, event, pendingMax) : queue(unit, hook, event));
        queued = true;
      }
    }
    if (queued) unit.after(() => outbound.deliveryQueued());
  };
}
