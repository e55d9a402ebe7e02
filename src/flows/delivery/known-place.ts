// Decides to which chats on channels an agent may write, and queues its text. A chat is known through a
// session (the agent's own, or one that it may write to, I9) or through the settings: a person who was
// approved, or a group named there.
// ME1: an accepted call is an outbox row; the channel acknowledges it later (I5). A repeated call creates
//      only one row.
// ME2: a text is sent only to a known chat, and only if the send policy allows it.
// ME3: if the people there have a session, the text is also appended to that session's transcript, so that
//      its agent knows what the people refer to.
// KP2: for a session that its sandbox limits to its own tree, and for a token that covers only some sessions,
//      chats are known through sessions only.
// KP3: every unknown chat gets the same answer, whether or not it exists. The answer names the settings that
//      would make the chat known.

import { type AccessContext, openGate } from "../../access/access.ts";
import { optional } from "../../core/optional.ts";
import { idIn } from "../../core/rules/inbound-policy.ts";
import type { SpawnChain } from "../../core/rules/sandbox-policy.ts";
import { identityOf, isClamped, type Viewer } from "../../core/rules/visibility.ts";
import { type Failure, fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { Route } from "../../core/shapes/route.ts";
import type { Run } from "../../core/shapes/run.ts";
import type { Session } from "../../core/shapes/session.ts";
import { accountOf, type ChannelAccount } from "../../core/shapes/settings/channels.ts";
import { quoted } from "../../core/text/cut.ts";
import type { Engine } from "../../engine/engine.ts";
import type { RunWait } from "../../engine/lanes/waits.ts";
import type { Unit } from "../../engine/unit.ts";
import { getPeer } from "../../store/queries/channels/channel-peers.ts";
import { type Delivery, getDelivery } from "../../store/queries/channels/deliveries.ts";
import type { Db } from "../../store/sql.ts";
import { announceRoute } from "../conversation/party.ts";
import { checkPlace, isKnownPeer, leadToSamePlace, type NamedPlace, sessionsAt } from "./destination.ts";
import { mayQueue, putInOutbox } from "./outbox.ts";

interface Writer {
  readonly viewer: Viewer;
  readonly session: Session;
  /** The session and its ancestors. */
  readonly chain: SpawnChain;
  /** The run that writes. Absent if an operator acts as the session. */
  readonly run?: Run;
}

export interface PlaceText extends Writer {
  readonly callId: string;
  readonly place: NamedPlace & { readonly channel: string };
  readonly text: string;
  readonly wait?: RunWait;
}

/** A text in the outbox, and its route. */
export type QueuedText = Pick<Delivery, "id" | "route">;

interface PlaceParts extends AccessContext {
  readonly engine: Engine;
}

/**
 * A chat that the writer may write to. `reader`: the session of the people there, if it is not the writer's.
 */
interface KnownPlace {
  readonly route: Route;
  readonly reader?: Session;
}

function unknown({ channel, to }: Route, account: ChannelAccount | undefined): Failure {
  const at = account === undefined || account.accountId === "default" ? "" : `.accounts.${account.accountId}`;
  const shown = quoted(to, 60);
  const settings = [`channels.${channel}${at}.groups`, `channels.${channel}${at}.allowFrom`].map(
    (name) => `${name} with ${shown}`,
  );
  return fail("not_visible", `${channel} ${shown} is not a chat that you may write to`, {
    hint:
      "You may write to the chats of your own session, and of sessions that you may send to. " +
      `A group or a person can be made known by ${settings.join(" or ")}.`,
    details: { settings },
  });
}

/** Returns the route of a chat that the settings or an operator have made known. */
async function knownBySettings(ctx: AccessContext, route: Route): Promise<Route | undefined> {
  const { channel, to, threadId } = route;
  const account = accountOf(ctx.settings.channels, route);
  // A wildcard names no person.
  if (account === undefined || to === "*") return undefined;
  const entry = Object.entries(account.groups).find(([name]) => idIn(name, channel) === to);
  if (entry?.[1].enabled === true) return route;
  if (threadId !== undefined || !(await isKnownPeer(ctx.db, ctx.settings, route))) return undefined;
  // The direct chat with a person may have another id than the person.
  const { accountId } = account;
  return (await getPeer(ctx.db, { channel, accountId, peerId: to }))?.route ?? route;
}

async function knownAt(ctx: AccessContext, writer: Writer, route: Route): Promise<KnownPlace | undefined> {
  const { viewer, session, chain, run } = writer;
  const home = [announceRoute(session), run?.route, run?.input.replyTo];
  if (home.some((place) => place !== undefined && leadToSamePlace(ctx.settings, place, route)))
    return { route };
  const gate = openGate(ctx, viewer);
  for (const reader of await sessionsAt(ctx.db, ctx.settings, route)) {
    if (!(await gate.admits("send", reader))) continue;
    return reader.key === session.key ? { route } : { route, reader };
  }
  const narrow = viewer.kind === "operator" && viewer.patterns !== undefined;
  const contained = isClamped(identityOf(chain, ctx.settings));
  const place = contained || narrow ? undefined : await knownBySettings(ctx, route);
  return place === undefined ? undefined : { route: place };
}

/** Returns the named chat, if it is known. Default account: the first one for which the chat is known. */
async function knownPlace(
  ctx: AccessContext,
  writer: Writer,
  place: NamedPlace & { readonly channel: string },
): Promise<Result<KnownPlace>> {
  const meant = checkPlace(ctx.settings, place);
  if (!meant.ok) return meant;
  const { channel } = meant.value;
  const accounts = ctx.settings.channels.filter(
    (one) => one.channel === channel && (place.accountId === undefined || one.accountId === place.accountId),
  );
  for (const { accountId } of accounts) {
    const known = await knownAt(ctx, writer, { ...meant.value, accountId });
    if (known !== undefined) return ok(known);
  }
  return unknown(meant.value, accounts[0]);
}

function deliveryIdOf(callId: string): string {
  return `message-${callId}`;
}

/** Queues the text, unless this call has queued it before. */
async function queue(
  { settings, engine }: PlaceParts,
  unit: Unit,
  { callId, session, run, wait, text }: PlaceText,
  { route, reader }: KnownPlace,
): Promise<Result<QueuedText>> {
  const id = deliveryIdOf(callId);
  const before = await getDelivery(unit.tx, id);
  if (before !== undefined) return ok(before);
  if (wait !== undefined && !(await wait.holds(unit))) {
    return fail("run_aborted", "the calling run has ended; nothing was sent");
  }
  const able = await mayQueue(unit, settings, { session, route });
  if (!able.ok) return able;
  const row = { id, sessionKey: session.key, kind: "send", route, text } as const;
  await putInOutbox(unit, { ...row, ...optional({ runId: run?.runId }) });
  if (reader !== undefined) {
    const input = { text, injected: true };
    await engine.acceptIn(unit, { sessionKey: reader.key, kind: "append", input, successor: true });
  }
  return ok({ id, route });
}

/** Returns the text that this call queued before a crash, or undefined if it queued none. */
export function sentToPlace(db: Db, callId: string): Promise<QueuedText | undefined> {
  return getDelivery(db, deliveryIdOf(callId));
}

/** Queues a text for a known chat. The caller has checked that `sentToPlace` returned undefined. */
export async function sendToPlace(parts: PlaceParts, request: PlaceText): Promise<Result<QueuedText>> {
  const known = await knownPlace(parts, request, request.place);
  if (!known.ok) return known;
  return parts.engine.commit((unit) => queue(parts, unit, request, known.value));
}
