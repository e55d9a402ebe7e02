// Records and the rows of their tables, on a real table.

import { expect, onTestFinished, test } from "vitest";
import { objectOf, ownJson } from "../../../src/core/json.ts";
import type { NodeRow } from "../../../src/features/nodes/node.ts";
import { recordsOf } from "../../../src/store/records.ts";
import type { Store } from "../../../src/store/sql.ts";
import { openEmbedded } from "../../kit/engine/engine.ts";
import { temporaryDir } from "../../store/samples.ts";

const NODE: NodeRow = {
  id: "n",
  name: "phone",
  platform: "ios",
  version: "1",
  caps: ["camera"],
  commands: [],
  publicKey: "key",
  pairedAt: 5,
};
const PLACE = { owner: "p1", connId: "c1", since: 7 };

const NODES = recordsOf<NodeRow>()("nodes", {
  key: ["id"],
  columns: [
    "name",
    "platform",
    "version",
    "caps_json",
    "commands_json",
    "public_key",
    "agent_id",
    "created_by",
    "paired_at",
    "last_seen_at",
  ],
  names: { owner: "place.owner", conn_id: "place.connId", connected_at: "place.since" },
});

async function openStore(): Promise<Store> {
  const { dir, remove } = temporaryDir();
  const store = await openEmbedded(dir);
  onTestFinished(async () => {
    await store.close();
    remove();
  });
  return store;
}

test("a record is read as it was written; absent fields are null in its row", async () => {
  const store = await openStore();
  await store.transaction((tx) => NODES.insert(tx, NODE));
  const row = await store.db.selectFrom("nodes").selectAll().executeTakeFirstOrThrow();
  expect(row).toMatchObject({ caps_json: '["camera"]', agent_id: null, owner: null, connected_at: null });
  expect(await NODES.find(store.db, { id: "n" })).toEqual(NODE);
});

test("a change leaves absent fields as they are, and null removes a field with all its parts", async () => {
  const store = await openStore();
  await store.transaction(async (tx) => {
    await NODES.insert(tx, { ...NODE, place: PLACE });
    expect(await NODES.change(tx, { id: "n" }, { name: "tablet" })).toBe(true);
    expect(await NODES.hold(tx, { id: "n" })).toEqual({ ...NODE, name: "tablet", place: PLACE });
    await NODES.change(tx, { id: "n" }, { place: null });
  });
  expect(await NODES.find(store.db, { id: "n" })).toEqual({ ...NODE, name: "tablet" });
});

test("a record is added once, and put in place of the one with its key, whose absent fields are removed", async () => {
  const store = await openStore();
  await store.transaction(async (tx) => {
    expect(await NODES.add(tx, { ...NODE, place: PLACE })).toBe(true);
    expect(await NODES.add(tx, { ...NODE, name: "other" })).toBe(false);
    expect(await NODES.find(tx, { id: "n" })).toEqual({ ...NODE, place: PLACE });
    await NODES.put(tx, { ...NODE, name: "other" });
    expect(await NODES.find(tx, { id: "n" })).toEqual({ ...NODE, name: "other" });
    expect(await NODES.remove(tx, { id: "n" })).toBe(true);
    expect(await NODES.remove(tx, { id: "n" })).toBe(false);
  });
});

test("a change or a deletion that names no rows is refused", async () => {
  const store = await openStore();
  const work = store.transaction(async (tx) => {
    await NODES.insert(tx, NODE);
    await NODES.remove(tx, {});
  });
  await expect(work).rejects.toThrow("name the rows of nodes");
});

test("damaged JSON fails, or leaves the field out if the declaration parses it so", () => {
  const damaged = { id: "n", caps_json: "[", commands_json: "{}" };
  expect(() => NODES.read(damaged)).toThrow(SyntaxError);
  const parse = (json: string) => objectOf(ownJson(json));
  const nodes = recordsOf<{ readonly id: string; readonly caps?: object; readonly commands?: object }>()(
    "nodes",
    {
      key: ["id"],
      columns: ["caps_json", "commands_json"],
      parse,
    },
  );
  expect(nodes.read(damaged)).toEqual({ id: "n", commands: {} });
});
