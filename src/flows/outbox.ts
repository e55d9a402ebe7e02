// Owns what is written when text has to leave through a channel: one outbox row, in the unit that ends the
// run (I5).
// O1: queued is not delivered: nothing here talks to a channel.
// O2: what is sent besides the answers of runs waits in bounded numbers for each place: neither an agent in
//     a loop nor somebody who writes command after command fills the outbox. Answers of runs, whose number
//     the lanes bound, are always taken.

import { fail, ok, type Result } from "../core/errors.ts";
import type { LiveEvent } from "../core/event.ts";
import type { Route, Session } from "../core/session.ts";
import type { Settings } from "../core/settings.ts";
import type { Engine } from "../engine/engine.ts";
import type { Unit } from "../engine/unit.ts";
import { insertDelivery } from "../store/deliveries.ts";
import { isBacklogFull } from "../store/hook-backlog.ts";
import { leaveVerdict } from "./destination.ts";

/** Told after the commit that an outbox row waits; filled in by the channels. */
export interface Outbound {
  deliveryQueued(): void;
}

export interface OutgoingText {
  readonly session: Session;
  readonly route: Route;
  readonly text: string;
  readonly kind: "announce" | "send";
  readonly runId?: string;
  /** It goes where it was asked for: a session that people share may be used elsewhere meanwhile. */
  readonly isAnswer?: boolean;
}

/** Texts that may wait for one place before no more are taken for it (O2). */
const WAITING_MAX = 200;

/** Whether a place takes another text that is no run's answer. */
export async function placeHasRoom(unit: Unit, route: Route): Promise<Result<void>> {
  if (!(await isBacklogFull(unit.tx, route, WAITING_MAX))) return ok(undefined);
  return fail("queue_full", `${WAITING_MAX} texts wait for this place already, and no more are taken`, {
    hint: "Nothing was sent. See why they wait (parley deliveries), or send again later.",
  });
}

type OutboxState = Extract<LiveEvent, { kind: "outbox" }>["state"];

/** Tells who looks at the outbox that a row has changed. */
export function publishOutbox(
  unit: Unit,
  { id: deliveryId, sessionKey }: { id: string; sessionKey: string },
  state: OutboxState,
): void {
  unit.publish({ kind: "outbox", deliveryId, sessionKey, state });
}

/**
 * Writes the outbox row: pending, or skipped where the send policy forbids that text leaves. Returns its
 * id.
 */
export async function queueDelivery(
  ports: { settings: Settings; outbound: Outbound },
  unit: Unit,
  outgoing: OutgoingText,
): Promise<{ id: string; state: "pending" | "skipped" }> {
  const { session, route, text, kind, runId, isAnswer } = outgoing;
  const verdict = await leaveVerdict(unit.tx, ports.settings, session, route, isAnswer);
  const id = unit.newId();
  await insertDelivery(unit.tx, {
    ...{ id, sessionKey: session.key, kind, route, text },
    state: verdict.allowed ? "pending" : "skipped",
    createdAt: unit.now,
    ...(runId === undefined ? {} : { runId }),
    ...(verdict.allowed ? {} : { code: "send_denied" as const, error: verdict.error }),
  });
  if (verdict.allowed) unit.after(() => ports.outbound.deliveryQueued());
  const state = verdict.allowed ? "pending" : "skipped";
  publishOutbox(unit, { id, sessionKey: session.key }, state);
  return { id, state };
}

/** What the gateway itself says to somebody at a channel. */
interface Note {
  /** Whose people it is about. */
  readonly sessionKey: string;
  readonly route: Route;
  readonly text: string;
  /** What it is about; notes of one sort can be found again by their ids. */
  readonly about: "pairing" | "command" | "trouble";
}

/** What the ids of notes of a sort begin with. */
export function notePrefix(about: Note["about"]): string {
  return `${about}-`;
}

/**
 * Writes the outbox row of what the gateway itself answers: to a command, to a stranger, about a message
 * that can't be taken. No session speaks, so no send policy is asked (SPEC 5). False: too much waits for the
 * place already, and nothing is said.
 */
export async function queueNote(ports: { outbound: Outbound }, unit: Unit, note: Note): Promise<boolean> {
  const { sessionKey, route, text, about } = note;
  if (!(await placeHasRoom(unit, route)).ok) return false;
  const id = `${notePrefix(about)}${unit.newId()}`;
  await insertDelivery(unit.tx, {
    ...{ id, sessionKey, kind: "send", route, text, state: "pending" },
    createdAt: unit.now,
  });
  unit.after(() => ports.outbound.deliveryQueued());
  publishOutbox(unit, { id, sessionKey }, "pending");
  return true;
}

/** RPC `send`: text from an operator to a channel target, kept in the session's transcript as well. */
export async function sendText(
  ports: { settings: Settings; outbound: Outbound; engine: Engine },
  request: {
    session: Session;
    route: Route;
    text: string;
    remember?: (unit: Unit, id: string) => Promise<void>;
  },
): Promise<Result<{ id: string }>> {
  const { session, route, text } = request;
  return ports.engine.commit(async (unit): Promise<Result<{ id: string }>> => {
    const verdict = await leaveVerdict(unit.tx, ports.settings, session, route);
    if (!verdict.allowed) return fail("send_denied", verdict.error);
    const room = await placeHasRoom(unit, route);
    if (!room.ok) return room;
    const appended = await ports.engine.acceptIn(unit, {
      sessionKey: session.key,
      kind: "append",
      input: { text, injected: true },
    });
    if (!appended.ok) return appended;
    const { id } = await queueDelivery(ports, unit, { session, route, text, kind: "send" });
    await request.remember?.(unit, id);
    return ok({ id });
  });
}
