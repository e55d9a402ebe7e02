// Marks of outside content, and the texts of instruction files that count, on every store.

import { expect, test } from "vitest";
import { labelFrom } from "../../src/core/rules/labels/labels.ts";
import { holdMemory, memoryRowId, readMemory, writeMemory } from "../../src/store/queries/agent-memory.ts";
import * as contents from "../../src/store/queries/instruction-contents.ts";
import { addLabels, readLabels } from "../../src/store/queries/labels.ts";
import { insertSession, replaceSessionId, sessionsWith } from "../../src/store/queries/sessions/sessions.ts";
import type { Store } from "../../src/store/sql.ts";
import { sampleSession } from "../store/samples.ts";

const call: contents.OpenCall = {
  ...{ id: "call-1", state: "open", path: "/w", source: "guest x", sessionKey: "hook:1" },
  ...{ runId: "run-1", lasts: true, at: 5 },
};
const kept: contents.KeptText = {
  ...{ id: "/w/AGENTS.md", state: "pending", path: "/w/AGENTS.md", source: "guest x", sessionKey: "hook:1" },
  ...{ text: "tea ☕", bytes: 7, at: 6 },
};

export function instructionContract(store: () => Store): void {
  test("rows about instruction files are returned as they were stored, and replaced as a whole", async () => {
    const put = (row: contents.OpenCall | contents.KeptText) =>
      store().transaction((tx) => contents.putInstructionRow(tx, row));
    const { text: _, bytes: __, ...without } = kept;
    await put(call);
    await put({ ...kept, state: "confirmed" });
    await put(kept);
    const read = await contents.readInstructionRows(store().db);
    expect(read).toEqual({ calls: [call], kept: new Map([[kept.id, kept]]) });
    await put({ ...without, id: "/w/CLAUDE.md", at: 1 });
    expect(await contents.pendingTexts(store().db)).toEqual([
      { ...without, id: "/w/CLAUDE.md", at: 1 },
      kept,
    ]);
    const ids = [call.id, kept.id, "/w/CLAUDE.md"];
    await store().transaction((tx) => contents.deleteInstructionRows(tx, ids));
    expect(await contents.readInstructionRows(store().db)).toEqual({ calls: [], kept: new Map() });
  });

  test("a memory has the text that counts, if changes wait", async () => {
    const id = memoryRowId("main");
    await store().transaction(async (tx) => {
      await holdMemory(tx, "main", 1);
      await writeMemory(tx, "main", { text: "new", revision: 1, calls: [] }, 1);
      await contents.putInstructionRow(tx, { ...kept, id, path: id, text: "" });
    });
    const memory = { text: "new", confirmed: "", revision: 1, calls: [] };
    expect(await readMemory(store().db, "main")).toEqual(memory);
    expect(await store().transaction((tx) => holdMemory(tx, "main", 1))).toEqual(memory);
  });

  test("the sources mark a session and are read with its chain, until a reset", async () => {
    const { key, sessionId } = sampleSession();
    const { db } = store();
    await store().transaction((tx) => insertSession(tx, sampleSession()));
    expect(await readLabels(db, { key, sessionId })).toBeUndefined();
    const arrival = { at: 7, runId: "run-1" };
    const mark = (source: string) =>
      store().transaction((tx) =>
        addLabels(tx, { key, sessionId }, labelFrom("outside", source, 5, "run-1"), arrival),
      );
    await mark("hook github");
    await mark("web search");
    await mark("hook github");
    const labels = {
      outside: ["hook github", "web search"].map((source) => ({ source, since: 5, runId: "run-1", arrival })),
    };
    expect(await readLabels(db, { key, sessionId, chainId: "chain" })).toEqual(labels);
    expect((await sessionsWith(db, ["other", sessionId])).map((one) => one.labels)).toEqual([labels]);
    await store().transaction((tx) => replaceSessionId(tx, key, "session-2", 9));
    expect(await readLabels(db, { key, sessionId: "session-2" })).toBeUndefined();
  });
}
