// What every store must do, whatever database it stands on: transactions, lanes, sessions, outbox, ledger.
// Lists and transcripts have files of their own beside this one.

import * as fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Route, Session } from "../../src/core/session.ts";
import { ZERO_USAGE } from "../../src/core/message.ts";
import * as deliveries from "../../src/store/deliveries.ts";
import { pruneAnswers, recallAnswer, rememberAnswer } from "../../src/store/idempotency.ts";
import { addUsageRow, usageOf } from "../../src/store/ledger.ts";
import { insertRun } from "../../src/store/runs.ts";
import * as sessions from "../../src/store/sessions.ts";
import type { Store } from "../../src/store/sql.ts";
import { appendEntry } from "../../src/store/transcripts.ts";
import { sampleRun, sampleSession, userMessage } from "../store/samples.ts";
import { listContract } from "./store-lists.ts";
import { transcriptContract } from "./store-transcripts.ts";

/** An empty store, and the way to close it and remove what it wrote. */
export interface OpenedStore {
  readonly store: Store;
  dispose(): Promise<void>;
}
export type OpenStore = () => Promise<OpenedStore>;

export function storeContract(name: string, open: OpenStore): void {
  describe(name, () => {
    let opened: OpenedStore;
    beforeEach(async () => {
      opened = await open();
    });
    afterEach(() => opened.dispose());
    const store = (): Store => opened.store;

    describe("transactions", () => transactionContract(store));
    describe("lanes", () => laneContract(store));
    describe("sessions", () => sessionContract(store));
    describe("session lists", () => listContract(store));
    describe("transcripts", () => transcriptContract(store));
    describe("outbox", () => outboxContract(store));
    describe("ledger and answers", () => bookContract(store));
  });
}

function transactionContract(store: () => Store): void {
  const chain = async (id: string) =>
    await store().db.selectFrom("chains").select("runs").where("chain_id", "=", id).executeTakeFirst();

  test("what a transaction wrote can be read once it resolved", async () => {
    const answer = await store().transaction(async (tx) => {
      await tx.insertInto("chains").values({ chain_id: "a", runs: 1 }).execute();
      return "done";
    });
    expect(answer).toBe("done");
    expect((await chain("a"))?.runs).toBe(1);
  });

  test("a transaction that throws leaves nothing behind, and the next one works", async () => {
    const failing = store().transaction(async (tx) => {
      await tx.insertInto("chains").values({ chain_id: "a", runs: 1 }).execute();
      throw new Error("no");
    });
    await expect(failing).rejects.toThrow("no");
    expect(await chain("a")).toBeUndefined();
    await store().transaction((tx) => tx.insertInto("chains").values({ chain_id: "b", runs: 1 }).execute());
    expect((await chain("b"))?.runs).toBe(1);
  });

  test("a statement that fails can be caught, and the transaction goes on", async () => {
    await store().transaction(async (tx) => {
      await tx.insertInto("chains").values({ chain_id: "a", runs: 1 }).execute();
      const again = tx.insertInto("chains").values({ chain_id: "a", runs: 2 }).execute();
      if (store().kind === "sqlite") await expect(again).rejects.toThrow();
      await tx.insertInto("chains").values({ chain_id: "b", runs: 3 }).execute();
    });
    expect((await chain("b"))?.runs).toBe(3);
  });

  test("transactions that overlap lose no update", async () => {
    await store().transaction((tx) => tx.insertInto("chains").values({ chain_id: "a", runs: 0 }).execute());
    const bump = () =>
      store().transaction(async (tx) => {
        const row = await tx.selectFrom("chains").select("runs").where("chain_id", "=", "a").forUpdateIf();
        await Promise.resolve();
        await tx.updateTable("chains").set({ runs: row + 1 }).where("chain_id", "=", "a").execute();
      });
    await Promise.all(Array.from({ length: 25 }, bump));
    expect((await chain("a"))?.runs).toBe(25);
  });
}
