// Owns the table of people who write to an account directly: pending, approved or blocked. It has one row per
// person and account. Only a pending person has a pairing code.

import { sql } from "kysely";
import type { PeerState } from "../../../core/rules/inbound-policy.ts";
import type { Route } from "../../../core/shapes/route.ts";
import { type RecordOf, recordsOf } from "../../records.ts";
import { countRows, type Db, type Tx } from "../../sql.ts";

const PENDING = sql.lit("pending");

export interface PeerId {
  readonly channel: string;
  readonly accountId: string;
  readonly peerId: string;
}

/** `code`: set while the person waits for approval. `name`: made safe for display on one line. */
export type ChannelPeer = RecordOf<"channel_peers", { readonly state: PeerState; readonly route?: Route }>;

const PEERS = recordsOf<ChannelPeer>()("channel_peers", {
  key: ["channel", "account_id", "peer_id"],
  columns: ["name", "state", "code", "asked_at", "told_at", "decided_at", "route_json"],
});

const keyOf = ({ channel, accountId, peerId }: PeerId): PeerId => ({ channel, accountId, peerId });

/** Returns the row of a person. */
export const getPeer = (db: Db, who: PeerId) => PEERS.find(db, keyOf(who));

/** Like `getPeer`, but locks the row until the transaction ends. */
export const holdPeer = (tx: Tx, who: PeerId) => PEERS.hold(tx, keyOf(who));

/** Returns the person with this code, locked until the transaction ends. */
export const holdPeerOfCode = (tx: Tx, code: string) => PEERS.hold(tx, { code });

/** Inserts or replaces a person's row. */
export const putPeer = (tx: Tx, peer: ChannelPeer) => PEERS.put(tx, peer);

/** Deletes the row of a person. Returns false if there was none. */
export const deletePeer = (tx: Tx, who: PeerId) => PEERS.remove(tx, keyOf(who));

/** Lists persons of all accounts, those with the latest requests first. */
export function listPeers(db: Db, limit: number): Promise<ChannelPeer[]> {
  const peers = PEERS.rows(db).orderBy("asked_at", "desc").orderBy("channel");
  return PEERS.all(peers.orderBy("account_id").orderBy("peer_id").limit(limit));
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
  await tx
    .deleteFrom("channel_peers")
    .where((eb) => eb.and({ channel, account_id: accountId, state: PENDING }))
    .where("asked_at", "<=", beforeMs)
    .execute();
  return countRows(PEERS.rows(tx, { channel, accountId }).where("state", "=", PENDING));
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
  const pending = PEERS.rows(tx, { channel, accountId }).where("state", "=", PENDING);
  const stale = pending.where("told_at", "<=", beforeMs).orderBy("told_at").orderBy("peer_id").limit(1);
  const [stalest] = await PEERS.all(stale);
  return stalest !== undefined && (await deletePeer(tx, stalest));
}
