// A transcript with damaged rows: every caller gets an answer, and no request hangs.

import { expect, test } from "vitest";
import { isEnded } from "../../src/core/shapes/run.ts";
import { endOf } from "../kit/engine/engine.ts";
import { type ScriptedAnswer, scriptedModel } from "../kit/scripted-model.ts";
import { type House, joined, openHouse, type Raw } from "./kit.ts";

/** Cuts stored values in half, like a disk that has lost data. */
async function damage(house: House, where: { sessionKey: string; runId?: string }): Promise<void> {
  await house.store.transaction((tx) => {
    let rows = tx.updateTable("messages").where("session_key", "=", where.sessionKey);
    if (where.runId !== undefined) rows = rows.where("run_id", "=", where.runId);
    return rows.set({ entry_json: '{"id":"x","role":"us' }).execute();
  });
}

async function ask(raw: Raw, method: string, params: object) {
  const id = `${method}-${Math.random()}`;
  raw.send({ type: "req", id, method, params });
  return raw.res(id);
}

/** Opens a session with messages, and a socket that is connected to it. */
async function talking(answer: (call: number) => ScriptedAnswer | Promise<ScriptedAnswer>) {
  const house: House = await openHouse({ model: scriptedModel((_, call) => answer(call)) });
  const raw = await joined(house);
  const made = await ask(raw, "sessions.create", { idempotencyKey: "make" });
  const sessionKey: string = made.payload.key;
  const send = (runId: string) =>
    ask(raw, "chat.send", { sessionKey, message: "hello", idempotencyKey: runId });
  return { house, raw, sessionKey, send };
}

test("a damaged transcript is read as far as possible, and the other sessions are still listed", async () => {
  const { house, raw, sessionKey, send } = await talking(() => "alpha");
  await send("one");
  await endOf(house.engine, "one");
  await damage(house, { sessionKey });
  const history = await ask(raw, "chat.history", { sessionKey });
  expect(history.payload.messages).toMatchObject([{ role: "user" }, { role: "assistant" }]);
  const list = await ask(raw, "sessions.list", { includeLastMessage: true, includeDerivedTitles: true });
  expect(list.payload.sessions.map((row: { key: string }) => row.key)).toContain(sessionKey);
  for (const name of ["sessions_list", "sessions_search", "sessions_history"]) {
    const args = { sessions_list: { messageLimit: 2 }, sessions_search: { query: "alpha" } }[name] ?? {
      sessionKey,
    };
    const answer = await ask(raw, "tools.invoke", { name, args });
    expect(answer.payload).not.toHaveProperty("code");
  }
  await send("two");
  expect(await endOf(house.engine, "two")).toMatchObject({ state: "ok", reply: "alpha" });
});

test("a run ends even if its own rows are damaged while it executes", async () => {
  const { house, sessionKey, send } = await talking(async (call) => {
    await damage(house, { sessionKey, runId: "one" });
    return call === 0 ? { toolCalls: [{ name: "sessions_list" }] } : { error: "the provider said no" };
  });
  await send("one");
  const run = await endOf(house.engine, "one");
  expect(run).toMatchObject({ state: "error", error: "the provider said no" });
});

test("a session can be reset and deleted even if its current run has damaged rows", async () => {
  const asked = Promise.withResolvers<void>();
  const { house, raw, sessionKey, send } = await talking(() => {
    asked.resolve();
    return new Promise<never>(() => {});
  });
  await send("one");
  await asked.promise;
  await damage(house, { sessionKey });
  expect(await ask(raw, "sessions.reset", { key: sessionKey })).toMatchObject({ ok: true });
  expect(isEnded((await endOf(house.engine, "one")).state)).toBe(true);
  expect(await ask(raw, "sessions.delete", { key: sessionKey })).toMatchObject({ ok: true });
});
