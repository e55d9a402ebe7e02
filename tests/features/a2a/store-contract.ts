// Peers and invitations, on every store.

import { describe, expect, test } from "vitest";
import type { Peer } from "../../../src/features/a2a/peers/peer.ts";
import * as peers from "../../../src/features/a2a/peers/store.ts";
import type { Store } from "../../../src/store/sql.ts";

const invited: Peer = {
  ...{ name: "lab", exposes: ["main"], offers: [], createdAt: 5 },
  ...{ codeKey: "secret", codeExpiresAt: 9 },
};
const paired: Peer = {
  ...{ name: "desk", exposes: [], offers: ["a", "b"], createdAt: 6 },
  ...{ url: "https://desk.example", key: { kty: "EC", x: "1" }, keyId: "thumb" },
};

export function storeContract(store: () => Store): void {
  describe("peers", () => contract(store));
}

function contract(store: () => Store): void {
  test("a peer is returned exactly as it was stored, and is always replaced as a whole", async () => {
    const put = (peer: Peer) => store().transaction((tx) => peers.putPeer(tx, peer));
    await put(invited);
    await put(paired);
    expect(await peers.listPeers(store().db)).toEqual([paired, invited]);
    expect(await peers.peerOfKey(store().db, "thumb")).toEqual(paired);
    expect(await peers.peerOfKey(store().db, "other")).toBeUndefined();
    await put({ ...paired, name: "lab", keyId: "second" });
    expect(await peers.getPeer(store().db, "lab")).toEqual({ ...paired, name: "lab", keyId: "second" });
    await expect(put({ ...paired, name: "third" })).rejects.toThrow();
    const remove = () => store().transaction((tx) => peers.deletePeer(tx, "lab"));
    expect([await remove(), await remove()]).toEqual([true, false]);
  });
}
