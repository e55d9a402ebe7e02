// Owns the tables of paired devices and of pairing requests.
// NS1: a device has at most one open pairing request. A paired device has none.
// NS2: only the latest connection of a node counts. If an earlier connection ends later, nothing changes.

import { type Selectable, sql } from "kysely";
import type { NodeConnection, NodeFacts, NodeRow, PairRequest } from "../../core/shapes/node.ts";
import { held } from "../locks.ts";
import { prepared } from "../prepared.ts";
import type { NodeRequestTable, NodeTable } from "../schema/tables.ts";
import { type Db, present, type Tx } from "../sql.ts";
import { livingProcesses } from "./processes.ts";

type FactColumns = Pick<
  Selectable<NodeTable>,
  "name" | "platform" | "version" | "caps_json" | "commands_json"
>;

function toFacts(row: FactColumns): NodeFacts {
  return {
    name: row.name,
    platform: row.platform,
    version: row.version,
    caps: JSON.parse(row.caps_json) as string[],
    commands: JSON.parse(row.commands_json) as string[],
  };
}

/**
 * Returns the columns for the facts that a device reports, except for its name, which operators can change.
 */
function factColumns({ platform, version, caps, commands }: NodeFacts): Omit<FactColumns, "name"> {
  return {
    platform,
    version,
    caps_json: JSON.stringify(caps),
    commands_json: JSON.stringify(commands),
  };
}

function connectionOf({ owner, conn_id: connId, connected_at: since }: Selectable<NodeTable>): {
  place?: NodeConnection;
} {
  return owner === null || connId === null || since === null ? {} : { place: { owner, connId, since } };
}

function toNode(row: Selectable<NodeTable>): NodeRow {
  return {
    ...toFacts(row),
    id: row.id,
    publicKey: row.public_key,
    pairedAt: row.paired_at,
    ...present("agentId", row.agent_id),
    ...present("createdBy", row.created_by),
    ...present("lastSeenAt", row.last_seen_at),
    ...connectionOf(row),
  };
}

function toRequest(row: Selectable<NodeRequestTable>): PairRequest {
  return {
    ...toFacts(row),
    requestId: row.request_id,
    code: row.code,
    nodeId: row.node_id,
    publicKey: row.public_key,
    remote: row.remote,
    createdAt: row.created_at,
    ...present("askedBy", row.asked_by),
  };
}

/** Inserts or replaces a paired device. */
export async function putNode(tx: Tx, node: NodeRow): Promise<void> {
  const columns = {
    name: node.name,
    ...factColumns(node),
    public_key: node.publicKey,
    agent_id: node.agentId ?? null,
    created_by: node.createdBy ?? null,
    paired_at: node.pairedAt,
    last_seen_at: node.lastSeenAt ?? null,
    owner: node.place?.owner ?? null,
    conn_id: node.place?.connId ?? null,
    connected_at: node.place?.since ?? null,
  };
  await tx
    .insertInto("nodes")
    .values({ id: node.id, ...columns })
    .onConflict((conflict) => conflict.column("id").doUpdateSet(columns))
    .execute();
}

export async function getNode(db: Db, id: string): Promise<NodeRow | undefined> {
  const row = await db.selectFrom("nodes").selectAll().where("id", "=", id).executeTakeFirst();
  return row && toNode(row);
}

/** Like `getNode`, but locks the row until the transaction ends. */
export async function holdNode(tx: Tx, id: string): Promise<NodeRow | undefined> {
  const row = await held(tx, tx.selectFrom("nodes").selectAll().where("id", "=", id)).executeTakeFirst();
  return row && toNode(row);
}

/**
 * Lists paired nodes, oldest first. For each node, also returns whether the process of its connection is
 * alive.
 */
export async function listNodes(db: Db): Promise<{ node: NodeRow; ownerLives: boolean }[]> {
  const rows = await db
    .selectFrom("nodes")
    .selectAll()
    .select(sql<number>`case when owner in ${livingProcesses()} then 1 else 0 end`.as("owner_lives"))
    .orderBy("paired_at")
    .orderBy("id")
    .execute();
  return rows.map((row) => ({ node: toNode(row), ownerLives: row.owner_lives === 1 }));
}

const ANY = prepared((db) => db.selectFrom("nodes").select("id").limit(1));

/** Returns whether any node is paired. */
export async function hasNodes(db: Db): Promise<boolean> {
  return (await ANY(db, {})).rows.length > 0;
}

export async function countNodes(db: Db): Promise<number> {
  const row = await db
    .selectFrom("nodes")
    .select((eb) => eb.fn.countAll<number>().as("n"))
    .executeTakeFirstOrThrow();
  return Number(row.n);
}

/** Stores a new connection of a paired node, and the facts that the node reports. */
export async function nodeCame(tx: Tx, id: string, facts: NodeFacts, place: NodeConnection): Promise<void> {
  const { owner, connId, since } = place;
  const columns = { owner, conn_id: connId, connected_at: since, last_seen_at: since };
  await tx
    .updateTable("nodes")
    .set({ ...factColumns(facts), ...columns })
    .where("id", "=", id)
    .execute();
}

/** Stores that a connection of a node has ended. */
export async function nodeLeft(
  tx: Tx,
  id: string,
  { owner, connId }: Pick<NodeConnection, "owner" | "connId">,
  at: number,
): Promise<void> {
  await tx
    .updateTable("nodes")
    .set({ owner: null, conn_id: null, connected_at: null, last_seen_at: at })
    .where("id", "=", id)
    .where("owner", "=", owner)
    .where("conn_id", "=", connId)
    .execute();
}

/** Renames a node. Returns false if the node does not exist. */
export async function renameNode(tx: Tx, id: string, name: string): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable("nodes")
    .set({ name })
    .where("id", "=", id)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

/** Deletes a paired node. Returns false if the node does not exist. */
export async function deleteNode(tx: Tx, id: string): Promise<boolean> {
  const { numDeletedRows } = await tx.deleteFrom("nodes").where("id", "=", id).executeTakeFirst();
  return numDeletedRows > 0n;
}

/** Stores a pairing request. If the device already has one, that request does not change. */
export async function insertRequest(tx: Tx, request: PairRequest): Promise<void> {
  await tx
    .insertInto("node_requests")
    .values({
      node_id: request.nodeId,
      request_id: request.requestId,
      code: request.code,
      name: request.name,
      ...factColumns(request),
      public_key: request.publicKey,
      remote: request.remote,
      created_at: request.createdAt,
      asked_by: request.askedBy ?? null,
    })
    .onConflict((conflict) => conflict.column("node_id").doNothing())
    .execute();
}

/** Returns the pairing request of a device. Locks it until the transaction ends. */
export async function holdRequestOf(tx: Tx, nodeId: string): Promise<PairRequest | undefined> {
  const row = await held(
    tx,
    tx.selectFrom("node_requests").selectAll().where("node_id", "=", nodeId),
  ).executeTakeFirst();
  return row && toRequest(row);
}

/** Lists requests that were made after `since`, oldest first. */
export async function listRequests(db: Db, since: number): Promise<PairRequest[]> {
  const rows = await db
    .selectFrom("node_requests")
    .selectAll()
    .where("created_at", ">", since)
    .orderBy("created_at")
    .orderBy("node_id")
    .execute();
  return rows.map(toRequest);
}

/** Deletes requests that were made at or before `until`. */
export async function dropRequests(tx: Tx, until: number): Promise<void> {
  await tx.deleteFrom("node_requests").where("created_at", "<=", until).execute();
}

/** Deletes the pairing request of a device. Returns false if there is none. */
export async function deleteRequest(tx: Tx, nodeId: string): Promise<boolean> {
  const { numDeletedRows } = await tx
    .deleteFrom("node_requests")
    .where("node_id", "=", nodeId)
    .executeTakeFirst();
  return numDeletedRows > 0n;
}
