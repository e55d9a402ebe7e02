// Decides which places on channels an agent may write to: known places. A place is known through a session,
// the agent's own or one that it may write to (I9), or through the settings: a person who was let in, or a
// group named there.
// KP2: a contained session, and a token that covers some sessions only, know places through sessions only.
// KP3: an unknown place always gets the same answer, whether or not it exists, with the settings that would
//      make it known.

import { type AccessContext, openGate } from "../../access/access.ts";
import { idIn } from "../../core/rules/inbound-policy.ts";
import type { Viewer } from "../../core/rules/visibility.ts";
import { type Failure, fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { Route } from "../../core/shapes/route.ts";
import type { Session } from "../../core/shapes/session.ts";
import { accountOf, type ChannelAccount } from "../../core/shapes/settings/channels.ts";
import { quoted } from "../../core/text/cut.ts";
import { getPeer } from "../../store/queries/channels/channel-peers.ts";
import { announceRoute } from "../conversation/party.ts";
import { checkPlace, isKnownPeer, leadToSamePlace, type NamedPlace, sessionsAt } from "./destination.ts";

/** The session or operator that wants to write. */
interface Writer {
  readonly viewer: Viewer;
  readonly session: Session;
  /** The place of the message that it is working on. */
  readonly route?: Route | undefined;
  readonly contained: boolean;
}

/** A place that may be written to; `reader`: the session of the people there, if it is another one. */
export interface KnownPlace {
  readonly route: Route;
  readonly reader?: Session;
}

function unknown({ channel, to }: Route, account: ChannelAccount | undefined): Failure {
  const at = account === undefined || account.accountId === "default" ? "" : `.accounts.${account.accountId}`;
  const shown = quoted(to, 60);
  const settings = [`channels.${channel}${at}.groups`, `channels.${channel}${at}.allowFrom`].map(
    (name) => `${name} with ${shown}`,
  );
  return fail("not_visible", `${channel} ${shown} is not a place that you may write to`, {
    hint:
      "You may write where your own people are, and those of sessions that you may send to. " +
      `A group or a person can be made known by ${settings.join(" or ")}.`,
    details: { settings },
  });
}

/** Returns the route of a place that the settings or an operator have made known. */
async function knownBySettings(ctx: AccessContext, route: Route): Promise<Route | undefined> {
  const { channel, to, threadId } = route;
  const account = accountOf(ctx.settings.channels, route);
  // A wildcard names no one.
  if (account === undefined || to === "*") return undefined;
  const entry = Object.entries(account.groups).find(([name]) => idIn(name, channel) === to);
  if (entry?.[1].enabled === true) return route;
  if (threadId !== undefined || !(await isKnownPeer(ctx.db, ctx.settings, route))) return undefined;
  // A person's chat may have another id than the person.
  const { accountId } = account;
  return (await getPeer(ctx.db, { channel, accountId, peerId: to }))?.route ?? route;
}

async function knownAt(ctx: AccessContext, writer: Writer, route: Route): Promise<KnownPlace | undefined> {
  const { viewer, session } = writer;
  const home = [announceRoute(session), writer.route];
  if (home.some((place) => place !== undefined && leadToSamePlace(ctx.settings, place, route)))
    return { route };
  const gate = openGate(ctx, viewer);
  for (const reader of await sessionsAt(ctx.db, ctx.settings, route)) {
    if (!(await gate.admits("send", reader))) continue;
    return reader.key === session.key ? { route } : { route, reader };
  }
  const narrow = viewer.kind === "operator" && viewer.patterns !== undefined;
  const place = writer.contained || narrow ? undefined : await knownBySettings(ctx, route);
  return place === undefined ? undefined : { route: place };
}

/** Returns the named place, if it is known. Without an account: the first account that knows it. */
export async function knownPlace(
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
