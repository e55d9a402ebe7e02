// Adds texts for channels to the outbox, in the transaction that ends the run (I5). The channels deliver
// them.
// O2: the number of texts that wait for one chat is limited, so that neither an agent in a loop nor a person
//     who sends many commands fills the outbox. Answers of runs are exempt, because the lanes limit them.

import { optional } from "../../core/optional.ts";
import type { Controls } from "../../core/rules/command.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { LiveEvent } from "../../core/shapes/event.ts";
import type { Route, Session } from "../../core/shapes/session.ts";
import type { Settings } from "../../core/shapes/settings/settings.ts";
import type { Engine } from "../../engine/engine.ts";
import type { Unit } from "../../engine/unit.ts";
import {
  type Delivery,
  dismissDelivery,
  getDelivery,
  insertDelivery,
  type NewDelivery,
  requeueDelivery,
} from "../../store/queries/channels/deliveries.ts";
import { countWaiting } from "../../store/queries/channels/hook-backlog.ts";
import { leaveVerdict } from "./destination.ts";

export interface OutgoingText {
  readonly session: Session;
  readonly route: Route;
  readonly text: string;
  readonly kind: "announce" | "send";
  readonly runId?: string;
  /**
   * Whether the text answers a message from this chat. If so, the send policy counts the session as used
   * here, even if it was used elsewhere since. The rules for the chat itself are checked only if neither
   * `session.lastRoute` nor the session's key is this chat.
   */
  readonly isAnswer?: boolean;
}

/** Maximum number of texts that may wait for one chat (O2). */
const WAITING_MAX = 200;

async function placeHasRoom(unit: Unit, route: Route): Promise<Result<void>> {
  if ((await countWaiting(unit.tx, route, WAITING_MAX)) < WAITING_MAX) return ok(undefined);
  return fail("queue_full", `${WAITING_MAX} texts already wait for this chat, which is the limit`, {
    hint: "Nothing was sent. Find the cause with npx parley-gateway deliveries, or send again later.",
  });
}

/**
 * Checks that the send policy allows text of a session to a chat, and that the chat has room. `isAnswer`: see
 * `OutgoingText`.
 */
export async function mayQueue(
  unit: Unit,
  settings: Settings,
  { session, route, isAnswer }: Pick<OutgoingText, "session" | "route" | "isAnswer">,
): Promise<Result<void>> {
  const verdict = await leaveVerdict(unit.tx, settings, session, route, isAnswer);
  return verdict.allowed ? placeHasRoom(unit, route) : fail("send_denied", verdict.error);
}

/** Publishes that an outbox row has changed. */
export function publishOutbox(
  unit: Unit,
  { id: deliveryId, sessionKey }: { id: string; sessionKey: string },
  state: Extract<LiveEvent, { kind: "outbox" }>["state"],
): void {
  unit.publish({ kind: "outbox", deliveryId, sessionKey, state });
}

/** Adds a text to the outbox. Default: it is pending, and is sent after the commit. */
export async function putInOutbox(
  unit: Unit,
  {
    state = "pending",
    ...delivery
  }: Omit<NewDelivery, "state" | "createdAt"> & { state?: "skipped" | "failed" | "pending" },
): Promise<void> {
  await insertDelivery(unit.tx, { ...delivery, state, createdAt: unit.now });
  if (state === "pending") unit.lookAtDates();
  publishOutbox(unit, delivery, state);
}

/**
 * Writes the outbox row: pending, or skipped if the send policy forbids the text. Returns its id and state.
 */
export async function queueDelivery(
  ports: { settings: Settings },
  unit: Unit,
  outgoing: OutgoingText,
): Promise<{ id: string; state: "pending" | "skipped" }> {
  const { session, route, text, kind, runId, isAnswer } = outgoing;
  const verdict = await leaveVerdict(unit.tx, ports.settings, session, route, isAnswer);
  const id = unit.newId();
  const state = verdict.allowed ? "pending" : "skipped";
  const why = verdict.allowed ? {} : { code: "send_denied" as const, error: verdict.error };
  const row = { id, sessionKey: session.key, kind, route, text, state, ...why } as const;
  await putInOutbox(unit, { ...row, ...optional({ runId }) });
  return { id, state };
}

interface Note {
  readonly sessionKey: string;
  readonly route: Route;
  readonly text: string;
  /** The kind of the note. The note's id begins with its kind. */
  readonly about: "pairing" | "command" | "trouble" | "permission";
  readonly controls?: Controls;
}

/** Returns the prefix that all ids of this kind of note have. */
export function notePrefix(about: Note["about"]): string {
  return `${about}-`;
}

/**
 * Writes the outbox row for an answer of the gateway itself: to a command, to an unknown person, or about a
 * message that can't be accepted. No session is the sender, so no send policy applies. Returns false, and
 * writes nothing, if too many texts already wait for the same chat.
 */
export async function queueNote(unit: Unit, note: Note): Promise<boolean> {
  const { about, ...row } = note;
  if (!(await placeHasRoom(unit, note.route)).ok) return false;
  await putInOutbox(unit, { id: `${notePrefix(about)}${unit.newId()}`, kind: "send", ...row });
  return true;
}

/**
 * Sends an operator's text to a chat on a channel (RPC `send`), and appends it to the session's transcript.
 */
export async function sendText(
  ports: { settings: Settings; engine: Engine },
  request: {
    session: Session;
    route: Route;
    text: string;
    remember?: (unit: Unit, id: string) => Promise<void>;
  },
): Promise<Result<{ id: string }>> {
  const { session, route, text } = request;
  return ports.engine.commit(async (unit): Promise<Result<{ id: string }>> => {
    const able = await mayQueue(unit, ports.settings, request);
    if (!able.ok) return able;
    const appended = await ports.engine.acceptIn(unit, {
      sessionKey: session.key,
      kind: "append",
      input: { text, injected: true },
    });
    if (!appended.ok) return appended;
    const id = unit.newId();
    await putInOutbox(unit, { id, sessionKey: session.key, kind: "send", route, text });
    await request.remember?.(unit, id);
    return ok({ id });
  });
}

interface SettleRequest {
  readonly id: string;
  readonly how: "retry" | "dismiss";
  /** Returns whether the caller may see the deliveries of a session. */
  covers(sessionKey: string): boolean;
}

/** Retries or dismisses a failed delivery. Returns its new state. */
export async function settleFailed(
  unit: Unit,
  { id, how, covers }: SettleRequest,
): Promise<Result<Delivery>> {
  const before = await getDelivery(unit.tx, id);
  if (before === undefined || !covers(before.sessionKey)) {
    return fail("delivery_not_found", `there is no delivery ${JSON.stringify(id)}`, {
      hint: "deliveries.list shows the ids.",
    });
  }
  const settle = how === "retry" ? requeueDelivery : dismissDelivery;
  if (!(await settle(unit.tx, id, unit.now))) {
    const state = before.dismissedAt === undefined ? before.state : "dismissed";
    const error = `only a failed delivery can be retried or dismissed; this one is ${state}`;
    return fail("delivery_state", error);
  }
  if (how === "retry") unit.lookAtDates();
  publishOutbox(unit, before, how === "retry" ? "pending" : "dismissed");
  return ok((await getDelivery(unit.tx, id)) ?? before);
}
