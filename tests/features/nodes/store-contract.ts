// Paired devices and pairing requests, on every store.

import { describe, expect, test } from "vitest";
import type { NodeRow, PairRequest } from "../../../src/features/nodes/node.ts";
import * as nodes from "../../../src/features/nodes/store.ts";
import { joinProcesses } from "../../../src/store/queries/processes.ts";
import type { Store } from "../../../src/store/sql.ts";

const FACTS = { platform: "linux", version: "1", caps: ["a"], commands: ["exec", "device.info"] };

const node = (id: string, more: Partial<NodeRow> = {}): NodeRow => ({
  ...FACTS,
  id,
  name: "‮ 'attic' \\ 😀",
  publicKey: "key",
  pairedAt: 5,
  ...more,
});

const request = (nodeId: string, more: Partial<PairRequest> = {}): PairRequest => ({
  ...FACTS,
  nodeId,
  name: "cellar",
  publicKey: "key",
  requestId: `request ${nodeId}`,
  code: `code ${nodeId}`,
  remote: "::1",
  createdAt: 100,
  ...more,
});

export function storeContract(store: () => Store): void {
  describe("nodes", () => contract(store));
}

function contract(store: () => Store): void {
  const put = (one: NodeRow) => store().transaction((tx) => nodes.putNode(tx, one));
  const get = (id: string) => nodes.getNode(store().db, id);

  test("a node is returned exactly as it was stored, with all or few of its fields, and is always replaced as a whole", async () => {
    const place = { owner: "p", connId: "c", since: 9 };
    const whole = node("a", { agentId: "research", createdBy: "token", lastSeenAt: 9, place });
    for (const one of [whole, node("a", { name: "b", caps: [], commands: [] }), whole]) {
      await put(one);
      expect(await get("a")).toEqual(one);
    }
    expect(await nodes.countNodes(store().db)).toBe(1);
    expect(await nodes.hasNodes(store().db)).toBe(true);
    expect(await store().transaction((tx) => nodes.deleteNode(tx, "a"))).toBe(true);
    expect(await store().transaction((tx) => nodes.deleteNode(tx, "a"))).toBe(false);
    expect(await nodes.hasNodes(store().db)).toBe(false);
  });

  test("NS2: a node keeps the name that a person gave it, and its newest connection", async () => {
    await put(node("a", { name: "given" }));
    const came = (connId: string, since: number) =>
      store().transaction((tx) =>
        nodes.nodeCame(tx, "a", { ...FACTS, name: "own", version: "2" }, { owner: "p", connId, since }),
      );
    await came("one", 10);
    await came("two", 20);
    await store().transaction((tx) => nodes.nodeLeft(tx, "a", { owner: "p", connId: "one" }, 30));
    expect(await get("a")).toMatchObject({
      name: "given",
      version: "2",
      lastSeenAt: 20,
      place: { owner: "p", connId: "two", since: 20 },
    });
    await store().transaction((tx) => nodes.nodeLeft(tx, "a", { owner: "p", connId: "two" }, 40));
    expect(await get("a")).toEqual(node("a", { name: "given", version: "2", lastSeenAt: 40 }));
    expect(await store().transaction((tx) => nodes.renameNode(tx, "a", "renamed"))).toBe(true);
    expect((await get("a"))?.name).toBe("renamed");
    expect(await store().transaction((tx) => nodes.renameNode(tx, "b", "x"))).toBe(false);
  });

  test("nodes are listed in the order of pairing, each with the process to which it is connected", async () => {
    const now = Date.now();
    await store().transaction((tx) => joinProcesses(tx, { processId: "alive", host: "", version: "" }, now));
    const at = (owner: string) => ({ place: { owner, connId: "c", since: 1 } });
    await put(node("c", { pairedAt: 1, ...at("alive") }));
    await put(node("b", { pairedAt: 2, ...at("dead") }));
    await put(node("a", { pairedAt: 2 }));
    const list = await nodes.listNodes(store().db);
    expect(list.map((one) => [one.node.id, one.ownerLives])).toEqual([
      ["c", true],
      ["a", false],
      ["b", false],
    ]);
  });

  test("NS1: a device has at most one pairing request, which is decided once or expires", async () => {
    const ask = (one: PairRequest) => store().transaction((tx) => nodes.insertRequest(tx, one));
    await ask(request("a"));
    await ask(request("a", { requestId: "other", code: "other", createdAt: 300 }));
    const later = request("b", { createdAt: 200, askedBy: "t" });
    await ask(later);
    expect(await nodes.listRequests(store().db, 0)).toEqual([request("a"), later]);
    expect(await nodes.listRequests(store().db, 100)).toHaveLength(1);
    expect(await store().transaction((tx) => nodes.holdRequestOf(tx, "a"))).toEqual(request("a"));
    await store().transaction((tx) => nodes.dropRequests(tx, 100));
    expect(await nodes.listRequests(store().db, 0)).toHaveLength(1);
    const settle = () => store().transaction((tx) => nodes.deleteRequest(tx, "b"));
    expect([await settle(), await settle()]).toEqual([true, false]);
  });
}
