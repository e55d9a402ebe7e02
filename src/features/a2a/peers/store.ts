// Owns the table of other gateways that are peers of this one, and of invitations to become one.

import { recordsOf } from "../../../store/records.ts";
import type { Db, Tx } from "../../../store/sql.ts";
import type { Peer } from "./peer.ts";

const PEERS = recordsOf<Peer>()("peers", {
  key: ["name"],
  columns: [
    "created_at",
    "url",
    "key_id",

    "code_key",
    "code_expires_at",
    "exposes_json",
    "offers_json",
    "key_json",
  ],
});

/** Returns all peers and invitations, in the order of their names. */
export const listPeers = (db: Db) => PEERS.all(PEERS.rows(db).orderBy("name"));

export const getPeer = (db: Db, name: string) => PEERS.find(db, { name });

/** Like `getPeer`, but locks the row until the transaction ends. */
export const holdPeer = (tx: Tx, name: string) => PEERS.hold(tx, { name });

export const peerOfKey = (db: Db, keyId: string) => PEERS.find(db, { keyId });

/** Stores a peer. Replaces the one with this name. */
export const putPeer = (tx: Tx, peer: Peer) => PEERS.put(tx, peer);

/** Returns false if there is no peer with this name. */
export const deletePeer = (tx: Tx, name: string) => PEERS.remove(tx, { name });

/** Returns whether a run of this chain was for a session of the peer, or was asked for by the peer. */
export async function hasChainWithPeer(
  db: Db,
  { chainId, peer, askedBy }: { readonly chainId: string; readonly peer: string; readonly askedBy: string },
): Promise<boolean> {
  const row = await db
    .selectFrom("runs")
    .select("run_id")
    .where("chain_id", "=", chainId)
    .where((eb) =>
      eb.or([
        eb.and([eb("session_key", ">", `peer:${peer}/`), eb("session_key", "<", `peer:${peer}0`)]),
        eb("asked_by", "=", askedBy),
      ]),
    )
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}
