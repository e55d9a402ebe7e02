// Pairs this gateway with another one, and keeps the sessions that stand for the agents of its peers.
// PE1: a pairing code is valid for ten minutes and for one gateway. That gateway may repeat its request,
//      because the first answer may have been lost.
// PE2: each side keeps the public key of the other, and decides itself which of its agents the other may see.
// PE3: a session `peer:<name>/agent:<id>:main` exists here for each agent that the peer offers. It holds what
//      this gateway and that agent told each other, and is archived when the peer is removed.

import { fieldsOf } from "../../../core/json.ts";
import { optional } from "../../../core/optional.ts";
import { isPeerName, peerAgentId } from "../../../core/peer.ts";
import { type Failure, fail, ok, type Result } from "../../../core/shapes/errors.ts";
import { formatKey, isAgentId } from "../../../core/shapes/session-key.ts";
import { findAgent, type Settings } from "../../../core/shapes/settings/settings.ts";
import { quoted } from "../../../core/text/cut.ts";
import type { Engine } from "../../../engine/engine.ts";
import type { Unit } from "../../../engine/unit.ts";
import { newCode } from "../../../flows/delivery/pairing.ts";
import { archiveIn, insertNew, newSession } from "../../../flows/session/lifecycle.ts";
import { takeAdvisoryLock } from "../../../store/locks.ts";
import { listSessions } from "../../../store/queries/sessions/session-lists.ts";
import { getSession, updateSession } from "../../../store/queries/sessions/sessions.ts";
import type { Db, Tx } from "../../../store/sql.ts";
import { publicKeyIn, type SigningKey } from "../key.ts";
import { isPaired, PEER_AGENTS_MAX, PEERS_MAX, type Peer } from "./peer.ts";
import { answerTo, codeKeyOf, seal, unseal } from "./seal.ts";
import { deletePeer, getPeer, holdPeer, listPeers, peerOfKey, putPeer } from "./store.ts";

/** Letters of a code: too many to be guessed from a recorded message. */
const CODE_LENGTH = 16;
const CODE_MS = 600_000;

interface PeerContext {
  readonly engine: Engine;
  readonly settings: Settings;
}

/** The two sides of what peers tell each other when they pair. */
interface Introduction {
  readonly key: SigningKey["publicKey"];
  readonly agents: readonly string[];
}

function unknownPeer(name: string): Failure {
  return fail("invalid_argument", `there is no peer ${quoted(name, 64)}`, {
    hint: "List them: npx parley-gateway peer list",
  });
}

function checkAgents({ agents }: Settings, wanted: readonly string[]): Result<string[]> {
  const ids = [...new Set(wanted.map((one) => one.trim().toLowerCase()))];
  const unknown = ids.find((id) => !agents.some((agent) => agent.id === id));
  if (unknown === undefined) return ok(ids.sort());
  const all = agents.map(({ id }) => id).join(", ");
  return fail("agent_not_found", `there is no agent ${quoted(unknown, 64)}; configured: ${all}`);
}

function checkUrl(url: string | undefined): Result<string | undefined> {
  if (url === undefined) return ok(undefined);
  const read = URL.canParse(url) ? new URL(url) : undefined;
  if (read !== undefined && /^https?:$/.test(read.protocol) && read.username === "") return ok(read.origin);
  return fail("invalid_argument", `${quoted(url, 200)} is not the address of a gateway`, {
    hint: "It looks like https://gateway.example or http://127.0.0.1:7275.",
  });
}

function readIntroduction(given: unknown): Introduction | undefined {
  const { key, agents } = fieldsOf(given);
  const known = publicKeyIn(key);
  if (known === undefined || !Array.isArray(agents) || agents.length > PEER_AGENTS_MAX) return undefined;
  const ids = agents.filter((one) => typeof one === "string" && isAgentId(one)) as string[];
  return { key: known, agents: ids.sort() };
}

export interface PeerWishes {
  readonly name: string;
  readonly url?: string | undefined;
  readonly exposes: readonly string[];
}

function checkWishes({ settings }: PeerContext, wishes: PeerWishes): Result<PeerWishes> {
  const given = wishes.name.trim().toLowerCase();
  const name = isPeerName(given)
    ? ok(given)
    : fail("invalid_argument", `${quoted(wishes.name, 64)} cannot be the name of a peer`, {
        hint: "Use 1 to 32 of a-z, 0-9, _ and -.",
      });
  if (!name.ok) return name;
  const url = checkUrl(wishes.url);
  if (!url.ok) return url;
  const exposes = checkAgents(settings, wishes.exposes);
  if (!exposes.ok) return exposes;
  return ok({ name: name.value, url: url.value, exposes: exposes.value });
}

/** Checks that this name can be given to another peer or invitation. */
async function checkFree(db: Db, name: string): Promise<Result<void>> {
  const known = await listPeers(db);
  const same = known.find((one) => one.name === name);
  if (same !== undefined && isPaired(same))
    return fail("invalid_argument", `there is already a peer ${name}`, {
      hint: `Choose another name, or remove it first: npx parley-gateway peer remove ${name}`,
    });
  if (same === undefined && known.length >= PEERS_MAX)
    return fail("invalid_argument", `a gateway has at most ${PEERS_MAX} peers and invitations`);
  return ok(undefined);
}

/** Called in the transaction that stores a peer, for example to store the answer to the request. */
type Also = (unit: Unit, peer: Peer) => Promise<void>;

/** Makes a code with which another gateway can become a peer. */
export async function invitePeer(
  ctx: PeerContext,
  given: PeerWishes,
  also: Also,
): Promise<Result<{ readonly peer: Peer; readonly code: string }>> {
  const wishes = checkWishes(ctx, given);
  if (!wishes.ok) return wishes;
  return ctx.engine.commit(async (unit) => {
    await takeAdvisoryLock(unit.tx, "limits");
    const free = await checkFree(unit.tx, wishes.value.name);
    if (!free.ok) return free;
    const letters = newCode(unit, CODE_LENGTH);
    const code = letters.replace(/.{4}(?!$)/g, "$&-");
    const { name, url, exposes } = wishes.value;
    const peer: Peer = {
      ...{ name, exposes, offers: [], createdAt: unit.now },
      ...{ codeKey: codeKeyOf(code), codeExpiresAt: unit.now + CODE_MS },
      ...optional({ url }),
    };
    await putPeer(unit.tx, peer);
    await also(unit, peer);
    return ok({ peer, code });
  });
}

/** Returns the request for a gateway that has made this code, and reads its answer. */
export async function beginPairing(
  ctx: PeerContext,
  given: PeerWishes & { readonly code: string; readonly own: SigningKey },
): Promise<Result<{ readonly request: string; finish(answer: string, also: Also): Promise<Result<Peer>> }>> {
  const wishes = checkWishes(ctx, given);
  if (!wishes.ok) return wishes;
  const { name, url, exposes } = wishes.value;
  const free = await checkFree(ctx.engine.store.db, name);
  if (!free.ok) return free;
  const codeKey = codeKeyOf(given.code);
  const mine: Introduction = { key: given.own.publicKey, agents: exposes };
  const request = seal(codeKey, "request", mine, ctx.engine.newId());
  return ok({
    request,
    async finish(answer, also) {
      const theirs = readIntroduction(unseal(codeKey, answerTo(request), answer));
      if (theirs === undefined)
        return fail("peer_unavailable", "the answer was not made with this pairing code; nothing was stored");
      return ctx.engine.commit(async (unit) => {
        await takeAdvisoryLock(unit.tx, "limits");
        const stillFree = await checkFree(unit.tx, name);
        if (!stillFree.ok) return stillFree;
        const base: Peer = { name, exposes, offers: [], createdAt: unit.now, ...optional({ url }) };
        const joined = await join(ctx, unit, base, theirs, given.own);
        if (joined.ok) await also(unit, joined.value);
        return joined;
      });
    },
  });
}

/** Stores the other side of a pairing. */
async function join(
  { settings }: PeerContext,
  unit: Unit,
  base: Peer,
  { key, agents }: Introduction,
  own: SigningKey,
): Promise<Result<Peer>> {
  if (key.kid === own.publicKey.kid) return fail("invalid_argument", "a gateway cannot be its own peer");
  const same = await peerOfKey(unit.tx, key.kid);
  if (same !== undefined && same.name !== base.name)
    return fail("invalid_argument", `that gateway is already the peer ${same.name}`, {
      hint: `To change its name, remove it first: npx parley-gateway peer remove ${same.name}`,
    });
  const peer: Peer = { ...base, key, keyId: key.kid, offers: agents };
  await putPeer(unit.tx, peer);
  await showOffers(settings, unit, peer);
  return ok(peer);
}

/** Answers the request of a gateway that was given a code. The answer is the same for every wrong code. */
export async function answerPairing(
  ctx: PeerContext,
  request: string,
  own: SigningKey,
): Promise<Result<string>> {
  const refused = fail("pairing_not_found", "the pairing code is wrong, was used, or has expired", {
    hint: "Make a new one at the other gateway: npx parley-gateway peer invite NAME",
  });
  return ctx.engine.commit(async (unit): Promise<Result<string>> => {
    const invited = await invitationFor(unit.tx, request, unit.now);
    const theirs = readIntroduction(invited?.given);
    const peer = invited && (await holdPeer(unit.tx, invited.peer.name));
    if (peer?.codeKey === undefined || theirs === undefined) return refused;
    if (peer.keyId !== undefined && peer.keyId !== theirs.key.kid) return refused;
    const joined = await join(ctx, unit, peer, theirs, own);
    if (!joined.ok) return joined;
    const mine: Introduction = { key: own.publicKey, agents: peer.exposes };
    return ok(seal(peer.codeKey, answerTo(request), mine, unit.newId()));
  });
}

/** Returns the invitation whose code sealed this request, and the content of the request. */
async function invitationFor(
  tx: Tx,
  request: string,
  now: number,
): Promise<{ readonly peer: Peer; readonly given: unknown } | undefined> {
  for (const peer of await listPeers(tx)) {
    const { codeKey, codeExpiresAt = 0 } = peer;
    const given =
      codeKey === undefined || codeExpiresAt <= now ? undefined : unseal(codeKey, "request", request);
    if (given !== undefined) return { peer, given };
  }
  return undefined;
}

/** Changes the agents that a peer may see, or the address of the peer. */
export async function changePeer(
  { engine, settings }: PeerContext,
  name: string,
  change: { readonly exposes?: readonly string[] | undefined; readonly url?: string | undefined },
  also: Also,
): Promise<Result<Peer>> {
  const exposes = change.exposes === undefined ? ok(undefined) : checkAgents(settings, change.exposes);
  if (!exposes.ok) return exposes;
  const url = checkUrl(change.url);
  if (!url.ok) return url;
  return engine.commit(async (unit) => {
    const peer = await holdPeer(unit.tx, name.trim().toLowerCase());
    if (peer === undefined) return unknownPeer(name);
    const changed = { ...peer, ...optional({ exposes: exposes.value, url: url.value }) };
    await putPeer(unit.tx, changed);
    await also(unit, changed);
    return ok(changed);
  });
}

/** Stores the agents that a peer offers now. */
export async function noteOffers(
  { engine, settings }: PeerContext,
  name: string,
  offers: readonly string[],
): Promise<void> {
  const ids = offers.filter(isAgentId).slice(0, PEER_AGENTS_MAX).sort();
  const known = await getPeer(engine.store.db, name);
  if (known === undefined || JSON.stringify(known.offers) === JSON.stringify(ids)) return;
  await engine.commit(async (unit) => {
    const peer = await holdPeer(unit.tx, name);
    if (peer === undefined) return;
    const changed = { ...peer, offers: ids };
    await putPeer(unit.tx, changed);
    await showOffers(settings, unit, changed);
  });
}

/** Keeps a session for each agent that the peer offers, and archives those of other agents (PE3). */
async function showOffers(settings: Settings, unit: Unit, { name, offers }: Peer): Promise<void> {
  const wanted = offers.map((agentId) => ({
    key: formatKey({ form: "peer", peer: name, of: { form: "named", agentId, name: ["main"] } }),
    agentId: peerAgentId(name, agentId),
  }));
  for (const one of wanted) {
    const known = await getSession(unit.tx, one.key);
    if (known === undefined) await insertNew(unit, newSession({ settings }, unit, one));
    else if (known.archivedAt !== undefined) await updateSession(unit.tx, one.key, { archivedAt: null });
  }
  for (const key of await sessionsOf(unit.tx, name))
    if (!wanted.some((one) => one.key === key)) await archiveIn(unit, key);
}

async function sessionsOf(tx: Tx, name: string): Promise<string[]> {
  const scope = { all: false, agentIds: "any", patterns: [`peer:${name}/*`] } as const;
  const { rows } = await listSessions(tx, { scope, limit: PEER_AGENTS_MAX * 2 });
  return rows.map(({ key }) => key);
}

/** Removes a peer or an invitation. Messages that the peer did not get yet are stopped. */
export async function removePeer({ engine }: PeerContext, name: string, also: Also): Promise<Result<Peer>> {
  const wanted = name.trim().toLowerCase();
  return engine.commit(async (unit): Promise<Result<Peer>> => {
    const peer = await holdPeer(unit.tx, wanted);
    if (peer === undefined) return unknownPeer(name);
    await deletePeer(unit.tx, wanted);
    for (const sessionKey of await sessionsOf(unit.tx, wanted)) {
      await engine.abortIn(unit, { sessionKey });
      await archiveIn(unit, sessionKey);
    }
    await also(unit, peer);
    return ok(peer);
  });
}

/** Returns the agents that a peer may see and that exist. */
export function exposedTo(settings: Settings, { exposes }: Pick<Peer, "exposes">): string[] {
  return exposes.filter((id) => findAgent(settings, id) !== undefined);
}
