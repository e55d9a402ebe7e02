// Owns the tables of paired devices and of pairing requests.
// NS1: a device has at most one open pairing request. A paired device has none.
// NS2: only the latest connection of a node counts. If an earlier connection ends later, nothing changes.

import { sql } from "kysely";
import { prepared } from "../../store/prepared.ts";
import { livingProcesses } from "../../store/queries/processes.ts";
import { recordsOf } from "../../store/records.ts";
import { countRows, type Db, type Tx } from "../../store/sql.ts";
import type { NodeConnection, NodeFacts, NodeRow, PairRequest } from "./node.ts";

const FACTS = ["name", "platform", "version", "caps_json", "commands_json"] as const;

const NODES = recordsOf<NodeRow>()("nodes", {
  key: ["id"],
  columns: [...FACTS, "public_key", "agent_id", "created_by", "paired_at", "last_seen_at"],
  names: { owner: "place.owner", conn_id: "place.connId", connected_at: "place.since" },
});

const REQUESTS = recordsOf<PairRequest>()("node_requests", {
  key: ["node_id"],
  columns: [...FACTS, "request_id", "code", "public_key", "remote", "created_at", "asked_by"],
});

/** Inserts or replaces a paired device. */
export const putNode = (tx: Tx, node: NodeRow) => NODES.put(tx, node);

export const getNode = (db: Db, id: string) => NODES.find(db, { id });

/** Like `getNode`, but locks the row until the transaction ends. */
export const holdNode = (tx: Tx, id: string) => NODES.hold(tx, { id });

/**
 * Lists paired nodes, oldest first. For each node, also returns whether the process of its connection is
 * alive.
 */
export async function listNodes(db: Db): Promise<{ node: NodeRow; ownerLives: boolean }[]> {
  const rows = await NODES.rows(db)
    .select(sql<number>`case when owner in ${livingProcesses()} then 1 else 0 end`.as("owner_lives"))
    .orderBy("paired_at")
    .orderBy("id")
    .execute();
  return rows.map((row) => ({ node: NODES.read(row), ownerLives: row.owner_lives === 1 }));
}

const ANY = prepared((db) => db.selectFrom("nodes").select("id").limit(1));

export async function hasNodes(db: Db): Promise<boolean> {
  return (await ANY(db, {})).rows.length > 0;
}

export const countNodes = (db: Db) => countRows(NODES.rows(db));

/**
 * Stores a new connection of a paired node, and the facts that the node reports, except for its name, which
 * operators can change.
 */
export const nodeCame = (tx: Tx, id: string, facts: NodeFacts, place: NodeConnection) => {
  const { platform, version, caps, commands } = facts;
  return NODES.change(tx, { id }, { platform, version, caps, commands, place, lastSeenAt: place.since });
};

/** Stores that a connection of a node has ended. */
export async function nodeLeft(
  tx: Tx,
  id: string,
  { owner, connId }: Pick<NodeConnection, "owner" | "connId">,
  at: number,
): Promise<void> {
  await tx
    .updateTable("nodes")
    .set(NODES.columns({ place: null, lastSeenAt: at }))
    .where((eb) => eb.and({ id, owner, conn_id: connId }))
    .execute();
}

/** Renames a node. Returns false if the node does not exist. */
export const renameNode = (tx: Tx, id: string, name: string) => NODES.change(tx, { id }, { name });

/** Deletes a paired node. Returns false if the node does not exist. */
export const deleteNode = (tx: Tx, id: string) => NODES.remove(tx, { id });

/** Stores a pairing request. If the device already has one, that request does not change. */
export const insertRequest = (tx: Tx, request: PairRequest) => REQUESTS.add(tx, request);

/** Returns the pairing request of a device. Locks it until the transaction ends. */
export const holdRequestOf = (tx: Tx, nodeId: string) => REQUESTS.hold(tx, { nodeId });

/** Lists requests that were made after `since`, oldest first. */
export const listRequests = (db: Db, since: number) =>
  REQUESTS.all(REQUESTS.rows(db).where("created_at", ">", since).orderBy("created_at").orderBy("node_id"));

/** Deletes requests that were made at or before `until`. */
export async function dropRequests(tx: Tx, until: number): Promise<void> {
  await tx.deleteFrom("node_requests").where("created_at", "<=", until).execute();
}

/** Deletes the pairing request of a device. Returns false if there is none. */
export const deleteRequest = (tx: Tx, nodeId: string) => REQUESTS.remove(tx, { nodeId });
