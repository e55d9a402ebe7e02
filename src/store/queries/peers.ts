// Owns the table of other gateways that are peers of this one, and of invitations to become one.

import type { Selectable } from "kysely";
import type { Peer } from "../../core/peer.ts";
import { held } from "../locks.ts";
import type { PeerTable } from "../schema/tables.ts";
import { type Db, present, type Tx } from "../sql.ts";

function toPeer(row: Selectable<PeerTable>): Peer {
  return {
    name: row.name,
    exposes: JSON.parse(row.exposes_json) as string[],
    offers: JSON.parse(row.offers_json) as string[],
    createdAt: row.created_at,
    ...present("url", row.url),
    ...present("keyId", row.key_id),
    ...present("codeKey", row.code_key),
    ...present("codeExpiresAt", row.code_expires_at),
    ...(row.key_json === null ? {} : { key: JSON.parse(row.key_json) as Record<string, unknown> }),
  };
}

/** Returns all peers and invitations, in the order of their names. */
export async function listPeers(db: Db): Promise<Peer[]> {
  const rows = await db.selectFrom("peers").selectAll().orderBy("name").execute();
  return rows.map(toPeer);
}

export async function getPeer(db: Db, name: string): Promise<Peer | undefined> {
  const row = await db.selectFrom("peers").selectAll().where("name", "=", name).executeTakeFirst();
  return row && toPeer(row);
}

/** Like `getPeer`, but locks the row until the transaction ends. */
export async function holdPeer(tx: Tx, name: string): Promise<Peer | undefined> {
  const row = await held(tx, tx.selectFrom("peers").selectAll().where("name", "=", name)).executeTakeFirst();
  return row && toPeer(row);
}

/** Returns the peer with this key. */
export async function peerOfKey(db: Db, keyId: string): Promise<Peer | undefined> {
  const row = await db.selectFrom("peers").selectAll().where("key_id", "=", keyId).executeTakeFirst();
  return row && toPeer(row);
}

/** Stores a peer. Replaces the one with this name. */
export async function putPeer(tx: Tx, peer: Peer): Promise<void> {
  const columns = {
    url: peer.url ?? null,
    key_json: peer.key === undefined ? null : JSON.stringify(peer.key),
    key_id: peer.keyId ?? null,
    code_key: peer.codeKey ?? null,
    code_expires_at: peer.codeExpiresAt ?? null,
    exposes_json: JSON.stringify(peer.exposes),
    offers_json: JSON.stringify(peer.offers),
    created_at: peer.createdAt,
  };
  await tx
    .insertInto("peers")
    .values({ name: peer.name, ...columns })
    .onConflict((conflict) => conflict.column("name").doUpdateSet(columns))
    .execute();
}

/** Returns false if there is no peer with this name. */
export async function deletePeer(tx: Tx, name: string): Promise<boolean> {
  const done = await tx.deleteFrom("peers").where("name", "=", name).executeTakeFirst();
  return done.numDeletedRows > 0n;
}

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
