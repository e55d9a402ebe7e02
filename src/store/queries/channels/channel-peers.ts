// Owns the table of people who write to an account directly: pending, approved or blocked. It has one row per
// person and account. Only a pending person has a pairing code.

import { type Selectable, sql } from "kysely";
import type { PeerState } from "../../../core/rules/inbound-policy.ts";
import type { Route } from "../../../core/shapes/route.ts";
import { held } from "../../locks.ts";
import type { ChannelPeerTable } from "../../schema/tables.ts";
import { type Db, present, type Tx } from "../../sql.ts";

/** Identifies a person at an account of a channel. */
export interface PeerId {
  readonly channel: string;
  readonly accountId: string;
  readonly peerId: string;
}

export interface ChannelPeer extends PeerId {
  /** Name that the person uses on the platform, made safe for display on one line. */
  readonly name?: string;
  readonly state: PeerState;
  /** Pairing code; set while the person waits for approval. */
  readonly code?: string;
  /** Time when the code was created. */
  readonly askedAt: number;
  readonly toldAt: number;
  readonly decidedAt?: number;
  /** Route for messages to the person. */
  readonly route?: Route;
}

function toPeer(row: Selectable<ChannelPeerTable>): ChannelPeer {
  return {
    channel: row.channel,
    accountId: row.account_id,
    peerId: row.peer_id,
    state: row.state as PeerState,
    askedAt: row.asked_at,
    toldAt: row.told_at,
    ...present("name", row.name),
    ...present("code", row.code),
    ...present("decidedAt", row.decided_at),
    ...present("route", row.route_json === null ? null : (JSON.parse(row.route_json) as Route)),
  };
}

function rowsOf(db: Db, { channel, accountId, peerId }: PeerId) {
  return db
    .selectFrom("channel_peers")
    .selectAll()
    .where("channel", "=", channel)
    .where("account_id", "=", accountId)
    .where("peer_id", "=", peerId);
}

/** Returns the row of a person. */
export async function getPeer(db: Db, who: PeerId): Promise<ChannelPeer | undefined> {
  const row = await rowsOf(db, who).executeTakeFirst();
  return row && toPeer(row);
}

/** Like `getPeer`, but locks the row until the transaction ends. */
export async function holdPeer(tx: Tx, who: PeerId): Promise<ChannelPeer | undefined> {
  const row = await held(tx, rowsOf(tx, who)).executeTakeFirst();
  return row && toPeer(row);
}

/** Returns the person with this code, locked until the transaction ends. */
export async function holdPeerOfCode(tx: Tx, code: string): Promise<ChannelPeer | undefined> {
  const query = tx.selectFrom("channel_peers").selectAll().where("code", "=", code);
  const row = await held(tx, query).executeTakeFirst();
  return row && toPeer(row);
}

/** Inserts or replaces a person's row. */
export async function putPeer(tx: Tx, peer: ChannelPeer): Promise<void> {
  const columns = {
    name: peer.name ?? null,
    state: peer.state,
    code: peer.code ?? null,
    asked_at: peer.askedAt,
    told_at: peer.toldAt,
    decided_at: peer.decidedAt ?? null,
    route_json: peer.route === undefined ? null : JSON.stringify(peer.route),
  };
  await tx
    .insertInto("channel_peers")
    .values({ channel: peer.channel, account_id: peer.accountId, peer_id: peer.peerId, ...columns })
    .onConflict((conflict) => conflict.columns(["channel", "account_id", "peer_id"]).doUpdateSet(columns))
    .execute();
}

/** Deletes the row of a person. Returns false if there was none. */
export async function deletePeer(tx: Tx, who: PeerId): Promise<boolean> {
  const { numDeletedRows } = await tx
    .deleteFrom("channel_peers")
    .where("channel", "=", who.channel)
    .where("account_id", "=", who.accountId)
    .where("peer_id", "=", who.peerId)
    .executeTakeFirst();
  return numDeletedRows > 0n;
}

/** Lists persons of all accounts, those with the latest requests first. */
export async function listPeers(db: Db, limit: number): Promise<ChannelPeer[]> {
  const rows = await db
    .selectFrom("channel_peers")
    .selectAll()
    .orderBy("asked_at", "desc")
    .orderBy("channel")
    .orderBy("account_id")
    .orderBy("peer_id")
    .limit(limit)
    .execute();
  return rows.map(toPeer);
}

/**
 * Deletes the account's pending persons who requested access at or before `beforeMs`. Returns how many
 * pending persons remain.
 */
export async function openAsks(
  tx: Tx,
  { channel, accountId }: Omit<PeerId, "peerId">,
  beforeMs: number,
): Promise<number> {
  const pending = sql.lit("pending");
  await tx
    .deleteFrom("channel_peers")
    .where("channel", "=", channel)
    .where("account_id", "=", accountId)
    .where("state", "=", pending)
    .where("asked_at", "<=", beforeMs)
    .execute();
  const row = await tx
    .selectFrom("channel_peers")
    .select((eb) => eb.fn.countAll<number>().as("n"))
    .where("channel", "=", channel)
    .where("account_id", "=", accountId)
    .where("state", "=", pending)
    .executeTakeFirstOrThrow();
  return Number(row.n);
}

/**
 * Among the account's pending persons, deletes the one whose last reply is the oldest, if that reply was sent
 * at or before `beforeMs`. Returns false if there is no such person.
 */
export async function forgetStalestAsk(
  tx: Tx,
  { channel, accountId }: Omit<PeerId, "peerId">,
  beforeMs: number,
): Promise<boolean> {
  const stalest = await tx
    .selectFrom("channel_peers")
    .select("peer_id")
    .where("channel", "=", channel)
    .where("account_id", "=", accountId)
    .where("state", "=", sql.lit("pending"))
    .where("told_at", "<=", beforeMs)
    .orderBy("told_at")
    .orderBy("peer_id")
    .limit(1)
    .executeTakeFirst();
  return stalest !== undefined && (await deletePeer(tx, { channel, accountId, peerId: stalest.peer_id }));
}
