// Binds chats and threads of channels to sessions. Owns how long a binding lasts and how it ends.
// BD1: a message from a bound chat goes to the bound session. After the end of the binding, messages go to
//      the ordinary session of the chat again.
// BD2: the end date of a binding is a row, so a restart keeps it, and each message postpones it.
// BD3: when a binding ends, the people in the chat are notified once, in the same transaction.
// BD4: a sub-agent that was created for a thread is archived when the thread's binding has ended.

import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import { isSameRoute } from "../../core/shapes/route.ts";
import type { Route, Session } from "../../core/shapes/session.ts";
import { accountOf, type ThreadBindingSettings } from "../../core/shapes/settings/channels.ts";
import type { Settings } from "../../core/shapes/settings/settings.ts";
import type { DeadlineHandler } from "../../engine/deadlines.ts";
import type { Unit } from "../../engine/unit.ts";
import { routeKeyOf } from "../../store/queries/channels/deliveries.ts";
import {
  bindingsOfSession,
  deleteBinding,
  getBinding,
  holdBinding,
  insertBinding,
  limitBinding,
  type ThreadBinding,
  touchBinding,
} from "../../store/queries/channels/thread-bindings.ts";
import { getSession, holdSession, updateSession } from "../../store/queries/sessions/sessions.ts";
import type { Db } from "../../store/sql.ts";
import { CHILD_DEADLINE } from "../job/end.ts";
import { queueDelivery } from "./outbox.ts";

/** The kind of the stored deadline at which a binding may end. The deadline's key is the key of the route. */
export const BINDING_DEADLINE = "binding";

const HOUR_MS = 3_600_000;
/**
 * Upper limit of each duration of a binding, because a later end date might be too large for a database
 * column.
 */
const LIMIT_MAX_MS = 100 * 8_760 * HOUR_MS;
/** Maximum number of hours that a command may set. */
const HOURS_MAX = 8_760;

export interface BindingParts {
  readonly settings: Settings;
}

export interface Threads {
  has(channel: string): boolean;
  /** Creates a thread below or beside this chat, or returns the chat itself. */
  open(at: Route, title: string): Promise<Result<Pick<ThreadBinding, "route" | "kind">>>;
}

type EndOfBinding = "idle" | "age" | "asked" | "archived" | "deleted" | "requester" | "disabled";

/** Returns the binding settings for chats like this one, or undefined if its account is not configured. */
export function bindingSettingsOf(settings: Settings, route: Route): ThreadBindingSettings | undefined {
  return accountOf(settings.channels, route)?.threadBindings;
}

/** Returns when and why a binding ends if no further message comes, or undefined if it never does. */
function endDateOf(binding: ThreadBinding): { dueAt: number; why: "idle" | "age" } | undefined {
  const { idleMs, maxAgeMs, usedAt, createdAt } = binding;
  const idleAt = idleMs === 0 ? undefined : usedAt + idleMs;
  const agedAt = maxAgeMs === 0 ? undefined : createdAt + maxAgeMs;
  if (agedAt !== undefined && (idleAt === undefined || agedAt < idleAt)) return { dueAt: agedAt, why: "age" };
  return idleAt === undefined ? undefined : { dueAt: idleAt, why: "idle" };
}

async function planEnd(unit: Unit, binding: ThreadBinding): Promise<void> {
  const key = routeKeyOf(binding.route);
  const end = endDateOf(binding);
  if (end !== undefined) await unit.setDeadline({ kind: BINDING_DEADLINE, key, dueAt: end.dueAt });
}

function limitMs(hours: number): number {
  return Math.min(Math.round(hours * HOUR_MS), LIMIT_MAX_MS);
}

/** Binds a chat in the transaction that creates its session. */
export async function bindPlace(
  parts: BindingParts,
  unit: Unit,
  place: Pick<ThreadBinding, "route" | "kind" | "sessionKey">,
): Promise<Result<void>> {
  const { idleHours = 0, maxAgeHours = 0 } = bindingSettingsOf(parts.settings, place.route) ?? {};
  const limits = { idleMs: limitMs(idleHours), maxAgeMs: limitMs(maxAgeHours) };
  const binding = { ...place, ...limits, createdAt: unit.now, usedAt: unit.now };
  // Only the session that spawned the bound one may know its name (I9).
  if (!(await insertBinding(unit.tx, binding))) {
    const wanted = await getSession(unit.tx, place.sessionKey);
    const holder = (await bindingOf(unit.tx, place.route))?.session;
    const isSibling = holder?.spawnedBy !== undefined && holder.spawnedBy === wanted?.spawnedBy;
    const whose = isSibling ? holder.key : "another session";
    return fail("spawn_denied", `this chat of ${place.route.channel} is already bound to ${whose}`, {
      hint: "End that binding first (/session unbind in that chat), or spawn without thread.",
    });
  }
  await planEnd(unit, binding);
  return ok(undefined);
}

const REASONS: Readonly<Record<EndOfBinding, string>> = {
  idle: "no message came for a while",
  age: "it was for a limited time",
  asked: "somebody ended it",
  archived: "that session was archived",
  deleted: "that session was deleted",
  requester: "the session that it worked for was deleted",
  disabled: "bindings are switched off",
};

/** Returns the notice for the people in a chat whose binding has ended. */
export function endedText({ kind, sessionKey }: ThreadBinding, session: Session | undefined): string {
  const place = kind === "created" ? "This thread" : "This chat";
  return `${place} is no longer bound to ${JSON.stringify(session?.label ?? sessionKey)}`;
}

/** Ends a binding that this transaction has locked. `tell`: whether the people in the chat are notified. */
async function end(
  parts: BindingParts,
  unit: Unit,
  ending: { binding: ThreadBinding; session: Session | undefined; why: EndOfBinding; tell: boolean },
): Promise<void> {
  const { binding, session, why, tell } = ending;
  if (!(await deleteBinding(unit.tx, binding)) || session === undefined) return;
  const { route, sessionKey } = binding;
  if (tell) {
    const ended = `${endedText(binding, session)}: ${REASONS[why]}.`;
    const text = `${ended} Messages here go to the agent again.`;
    await queueDelivery(parts, unit, { session, route, text, kind: "send" });
  }
  // Later text of this session must not go to this chat.
  if (isSameRoute(session.lastRoute, route)) await updateSession(unit.tx, sessionKey, { lastRoute: null });
  unit.publish({ kind: "session", sessionKey, change: "updated" });
  const goes = why !== "archived" && why !== "deleted" && session.spawn?.mode === "session";
  if (!goes || (await bindingsOfSession(unit.tx, sessionKey)).length > 0) return;
  await unit.setDeadline({ kind: CHILD_DEADLINE, key: sessionKey, dueAt: unit.now });
}

/**
 * Locks the binding of a chat and its session. Returns undefined if the chat is not bound, or not to the
 * given session.
 */
async function holdBound(unit: Unit, at: Route | string, sessionKey?: string) {
  const found = await getBinding(unit.tx, at);
  if (found === undefined || found.sessionKey !== (sessionKey ?? found.sessionKey)) return undefined;
  const session = await holdSession(unit.tx, found.sessionKey);
  // The binding may have ended before its session was locked.
  const binding = await holdBinding(unit.tx, at);
  return binding?.sessionKey === found.sessionKey ? { binding, session } : undefined;
}

/**
 * Returns and locks the session for a message from a bound chat, and postpones the binding's end. Ends a
 * binding that has expired. Returns undefined if the message is for the ordinary session of the chat.
 */
export async function boundSession(
  parts: BindingParts,
  unit: Unit,
  route: Route,
): Promise<Session | undefined> {
  const bound = await holdBound(unit, route);
  if (bound === undefined) return undefined;
  const { binding, session } = bound;
  const due = endDateOf(binding);
  const why = whyOver(parts, binding, session) ?? (due !== undefined && due.dueAt <= unit.now ? due.why : "");
  if (why !== "") {
    await end(parts, unit, { binding, session, why, tell: true });
    return undefined;
  }
  await touchBinding(unit.tx, binding, unit.now);
  return session;
}

/** Returns why a binding must end regardless of its date. */
function whyOver(
  { settings }: BindingParts,
  { route }: ThreadBinding,
  session: Session | undefined,
): EndOfBinding | undefined {
  if (session === undefined) return "deleted";
  if (session.archivedAt !== undefined) return "archived";
  return bindingSettingsOf(settings, route)?.enabled === false ? "disabled" : undefined;
}

/** Handles the deadline of a binding, unless a message has postponed it. */
export function createBindingEnd(parts: BindingParts): DeadlineHandler {
  return async (unit, key) => {
    const bound = await holdBound(unit, key);
    const due = bound && endDateOf(bound.binding);
    if (bound === undefined || due === undefined) return "done";
    if (due.dueAt > unit.now) return due.dueAt;
    await end(parts, unit, { ...bound, why: due.why, tell: true });
    return "done";
  };
}

/**
 * Ends the binding of a chat, or all bindings of a session. Returns the ended bindings. With `tell` false,
 * the caller itself notifies the people in the chat (`endedText`).
 */
export async function unbind(
  parts: BindingParts,
  unit: Unit,
  asked: {
    what: Route | { readonly sessionKey: string };
    why: "asked" | "archived" | "deleted" | "requester";
    tell: boolean;
  },
): Promise<ThreadBinding[]> {
  const { what, why, tell } = asked;
  const found = "sessionKey" in what ? await bindingsOfSession(unit.tx, what.sessionKey) : [{ route: what }];
  const ended: ThreadBinding[] = [];
  for (const one of found) {
    const bound = await holdBound(unit, one.route, "sessionKey" in one ? one.sessionKey : undefined);
    if (bound === undefined) continue;
    await end(parts, unit, { ...bound, why, tell });
    ended.push(bound.binding);
  }
  return ended;
}

/** Changes the limits of one binding. An absent limit stays as it is; 0 means no limit. */
export async function setBindingLimits(
  unit: Unit,
  route: Route,
  limits: { readonly idleHours?: number; readonly maxAgeHours?: number },
): Promise<Result<ThreadBinding>> {
  for (const hours of Object.values(limits)) {
    if (hours === undefined || (hours >= 0 && hours <= HOURS_MAX)) continue;
    return fail("invalid_argument", `a binding may last 1 to ${HOURS_MAX} hours, or 0 for no end`);
  }
  const applyLimits = (binding: ThreadBinding): ThreadBinding => ({
    ...binding,
    ...(limits.idleHours === undefined ? {} : { idleMs: limitMs(limits.idleHours) }),
    ...(limits.maxAgeHours === undefined ? {} : { maxAgeMs: limitMs(limits.maxAgeHours) }),
  });
  const found = await getBinding(unit.tx, route);
  // Lock the deadline before the binding, in the same order as the deadline's handler.
  if (found !== undefined) await planEnd(unit, applyLimits(found));
  const before = await holdBinding(unit.tx, route);
  if (before === undefined) return fail("invalid_argument", "this chat is not bound to a session");
  const binding = applyLimits(before);
  await limitBinding(unit.tx, binding);
  return ok(binding);
}

/** Returns the binding of a chat and the bound session. */
export async function bindingOf(
  db: Db,
  route: Route,
): Promise<{ readonly binding: ThreadBinding; readonly session: Session } | undefined> {
  const binding = await getBinding(db, route);
  const session = binding === undefined ? undefined : await getSession(db, binding.sessionKey);
  return binding === undefined || session === undefined ? undefined : { binding, session };
}
