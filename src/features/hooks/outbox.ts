// Writes one outbox row for each outgoing hook and event, in the transaction that caused the event. So an
// event is in the outbox if and only if it is committed. The backlog of a hook is stored and limited. Over
// the limit, events are dropped and counted. One failed row per hook tells operators how many were dropped;
// if they retry the row, the hook's receiver gets this number.
// Sends one signed POST request for each row. A retry has the same id (`webhook-id`) and body, so a receiver
// can detect it. No log, error or row contains the secret or the address.

import { createHmac } from "node:crypto";
import type { Channel, DeliveryOutcome, OutgoingMessage } from "../../channels/channel.ts";
import { postNews } from "../../channels/programs.ts";
import type { Route } from "../../core/shapes/session.ts";
import type { Settings } from "../../core/shapes/settings/settings.ts";
import { matchesAny } from "../../core/text/pattern.ts";
import type { Recorder, Unit } from "../../engine/unit.ts";
import { BACKLOG_FULL, insertDelivery } from "../../store/queries/channels/deliveries.ts";
import { backlogRow, countWaiting, rewriteBacklogRow } from "../../store/queries/channels/hook-backlog.ts";
import type { World } from "../../world.ts";
import { HOOK_VERSION, type HookEvent, hookEventOf } from "./events.ts";
import { nameOf, type OutgoingHook } from "./settings.ts";

/** The outbox channel that calls hooks. */
const WEBHOOK = "webhook";
type HookedSettings = Pick<Settings, "hooks">;
type NamedHook = OutgoingHook & { readonly name: string };

/** Maximum number of events that wait for one hook. Processes that share a store may exceed it slightly. */
const PENDING_MAX = 100_000;
/** Minimum interval between two counts of a full backlog. */
const COUNT_EVERY_MS = 1_000;

/** Returns the outbox route of a hook. It has the hook's name, because the address may be a secret. */
const hookRoute = ({ name }: NamedHook): Route => ({ channel: WEBHOOK, to: name });

const isEnabled = ({ enabled }: OutgoingHook): boolean => enabled;
const withName = (hook: OutgoingHook): NamedHook => ({ ...hook, name: nameOf(hook) });

export const routes = ({ hooks }: HookedSettings): readonly Route[] =>
  hooks.outgoing.filter(isEnabled).map((hook) => hookRoute(withName(hook)));

const wants = ({ events, sessions }: OutgoingHook, { type, sessionKey }: HookEvent): boolean =>
  events.includes(type) && (sessions === undefined || matchesAny(sessions, sessionKey));

function bodyOf(id: string, type: string, atMs: number, data: Readonly<Record<string, unknown>>): string {
  return JSON.stringify({ version: HOOK_VERSION, id, type, timestamp: new Date(atMs).toISOString(), data });
}

async function countLost(
  unit: Unit,
  hook: NamedHook,
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
  return async (unit: Unit, hook: NamedHook): Promise<boolean> => {
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
 * configured then. `drop`: called for each dropped event, with the hook's name. `pendingMax`: maximum number
 * of waiting events per hook.
 */
export function createRecorder(
  settings: HookedSettings,
  drop: (hook: string) => void,
  pendingMax = PENDING_MAX,
): Recorder {
  const takeRoom = createRooms(pendingMax);
  return async (unit, events) => {
    const hooks = settings.hooks.outgoing.filter(isEnabled);
    if (hooks.length === 0) return;
    const deleted = new Set(
      events.flatMap((one) => (one.kind === "session" && one.change === "deleted" ? [one.sessionKey] : [])),
    );
    let queued = false;
    for (const live of events) {
      const event = hookEventOf(live, unit.redactor);
      if (event === undefined) continue;
      for (const hook of hooks.filter((one) => wants(one, event)).map(withName)) {
        queued = true;
        if (await takeRoom(unit, hook)) {
          const id = unit.newId();
          await insertDelivery(unit.tx, {
            id,
            sessionKey: event.sessionKey,
            kind: "hook",
            route: hookRoute(hook),
            text: bodyOf(id, event.type, unit.now, event.data),
            state: "pending",
            createdAt: unit.now,
            erase: deleted.has(event.sessionKey),
          });
          continue;
        }
        await countLost(unit, hook, event, pendingMax);
        unit.after(() => drop(hook.name));
      }
    }
    if (queued) unit.lookAtDates();
  };
}

/** Sends a request with a signature over its id, time and body. */
function post(hook: OutgoingHook, message: OutgoingMessage, world: World): Promise<DeliveryOutcome> {
  const { deliveryId: id, text: body } = message;
  const seconds = Math.floor(world.clock.now() / 1_000);
  const encoded = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(hook.secret)?.[1];
  const key = encoded === undefined ? hook.secret : Buffer.from(encoded, "base64");
  const signature = createHmac("sha256", key).update(`${id}.${seconds}.${body}`).digest("base64");
  const headers = {
    "webhook-id": id,
    "webhook-timestamp": String(seconds),
    "webhook-signature": `v1,${signature}`,
  };
  return postNews({ url: hook.url, headers, body }, world);
}

/**
 * Creates the channel that sends webhooks. An attempt can be repeated, because receivers detect the same id.
 * Each attempt uses the address and the secret that are configured then.
 */
export function createChannel({ settings, world }: { settings: HookedSettings; world: World }): Channel {
  return {
    id: WEBHOOK,
    deduplicates: true,
    async deliver(message) {
      const { outgoing } = settings.hooks;
      const hook = outgoing.find((one) => isEnabled(one) && nameOf(one) === message.route.to);
      if (hook !== undefined) return post(hook, message, world);
      return { kind: "absent", error: `no outgoing hook ${JSON.stringify(message.route.to)} is configured` };
    },
  };
}
