// Writes one outbox row for each outgoing hook and event, in the transaction that caused the event. So an
// event is in the outbox if and only if it is committed. The backlog of a hook is stored and limited. Over
// the limit, events are dropped and counted. One failed row per hook tells operators how many were dropped;
// if they retry the row, the hook's receiver gets this number.

import { HOOK_VERSION, type HookEvent, hookEventOf } from "../../core/shapes/hook-event.ts";
import type { Route } from "../../core/shapes/session.ts";
import type { OutgoingHook, Settings } from "../../core/shapes/settings/settings.ts";
import { matchesAny } from "../../core/text/pattern.ts";
import type { Recorder, Unit } from "../../engine/unit.ts";
import { BACKLOG_FULL, insertDelivery } from "../../store/queries/channels/deliveries.ts";
import { backlogRow, countWaiting, rewriteBacklogRow } from "../../store/queries/channels/hook-backlog.ts";

/** The outbox channel that calls hooks. */
export const WEBHOOK = "webhook";
/** Maximum number of events that wait for one hook. Processes that share a store may exceed it slightly. */
const PENDING_MAX = 100_000;
/** Minimum interval between two counts of a full backlog. */
const COUNT_EVERY_MS = 1_000;

/** Returns the outbox route of a hook. It has the hook's name, because the address may be a secret. */
export function hookRoute(hook: OutgoingHook): Route {
  return { channel: WEBHOOK, to: hook.name };
}

const wants = ({ events, sessions }: OutgoingHook, { type, sessionKey }: HookEvent): boolean =>
  events.includes(type) && (sessions === undefined || matchesAny(sessions, sessionKey));

function bodyOf(id: string, type: string, atMs: number, data: Readonly<Record<string, unknown>>): string {
  return JSON.stringify({ version: HOOK_VERSION, id, type, timestamp: new Date(atMs).toISOString(), data });
}

async function queue(unit: Unit, hook: OutgoingHook, event: HookEvent, erase: boolean): Promise<void> {
  const id = unit.newId();
  await insertDelivery(unit.tx, {
    id,
    sessionKey: event.sessionKey,
    kind: "hook",
    route: hookRoute(hook),
    text: bodyOf(id, event.type, unit.now, event.data),
    state: "pending",
    createdAt: unit.now,
    erase,
  });
}

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
  const row = { id, sessionKey, kind: "hook", route, text, createdAt: unit.now } as const;
  await insertDelivery(unit.tx, { ...row, state: "failed", code: BACKLOG_FULL, error });
}

interface Lost {
  readonly events: number;
  readonly since: string;
}

/** Caches the free space of each backlog, so that not every event counts its rows. */
function createRooms(pendingMax: number) {
  const rooms = new Map<string, { left: number; readonly countedAt: number }>();
  /** Reserves space for one event. Returns false if the backlog is full. */
  return async (unit: Unit, hook: OutgoingHook): Promise<boolean> => {
    let room = rooms.get(hook.name);
    const isOld = room === undefined || (room.left === 0 && unit.now - room.countedAt >= COUNT_EVERY_MS);
    if (room === undefined || isOld) {
      const waiting = await countWaiting(unit.tx, hookRoute(hook), pendingMax);
      room = { left: pendingMax - waiting, countedAt: unit.now };
      rooms.set(hook.name, room);
    }
    if (room.left === 0) return false;
    room.left -= 1;
    return true;
  };
}

/**
 * Returns the function that writes the outbox rows for a transaction's events, for the hooks that are
 * configured then. `pendingMax`: maximum number of waiting events per hook. Default 100,000. `onDropped`:
 * called for each dropped event.
 */
export function createHookRecorder(
  settings: Pick<Settings, "outgoingHooks">,
  more: { pendingMax?: number; onDropped?: (hook: string) => void } = {},
): Recorder {
  const { pendingMax = PENDING_MAX, onDropped } = more;
  const takeRoom = createRooms(pendingMax);
  return async (unit, events) => {
    const { outgoingHooks: hooks } = settings;
    if (hooks.length === 0) return;
    const deleted = new Set(
      events.flatMap((one) => (one.kind === "session" && one.change === "deleted" ? [one.sessionKey] : [])),
    );
    let queued = false;
    for (const live of events) {
      const event = hookEventOf(live, unit.redactor);
      if (event === undefined) continue;
      for (const hook of hooks.filter((one) => wants(one, event))) {
        queued = true;
        if (await takeRoom(unit, hook)) {
          await queue(unit, hook, event, deleted.has(event.sessionKey));
          continue;
        }
        await countLost(unit, hook, event, pendingMax);
        unit.after(() => onDropped?.(hook.name));
      }
    }
    if (queued) unit.lookAtDates();
  };
}
