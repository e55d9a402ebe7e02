// Idempotency keys under attack: keys of other callers and of runs, interrupted and repeated requests.

import { sql } from "kysely";
import { expect, test } from "vitest";
import { insertSession } from "../../../src/store/queries/sessions/sessions.ts";
import { cleanup, sessionRow, temporaryFolder } from "../../kit/engine/engine.ts";
import { joined, openHouse } from "../kit.ts";

const other = { token: "other", role: "operator" as const, scopes: ["operator.admin" as const] };

test("if the caller of a tool call with a key disconnects, the call continues, and a retry gets its answer", async () => {
  const gate = Promise.withResolvers<void>();
  cleanup(() => gate.resolve());
  let runs = 0;
  const play = async () => {
    runs++;
    await gate.promise;
    return "late";
  };
  const house = await openHouse({ play });
  const params = {
    name: "sessions_send",
    arguments: { sessionKey: "agent:research:main", message: "x", timeoutSeconds: 60 },
    idempotencyKey: "tool",
  };
  const first = await joined(house);
  first.send({ type: "req", id: "t", method: "tools.invoke", params });
  await first.next((frame) => frame.event === "agent" && frame.payload.stream === "lifecycle");
  first.socket.terminate();
  const again = (await house.client()).request("tools.invoke", params);
  gate.resolve();
  expect(await again).toMatchObject({ status: "ok", reply: "late" });
  expect(runs).toBe(1);
});

test("if a key was used before, the same request gets the same answer, and any other request of the caller is a conflict", async () => {
  const gate = Promise.withResolvers<void>();
  cleanup(() => gate.resolve());
  const house = await openHouse({ play: () => gate.promise.then(() => "one"), gateway: { tokens: [other] } });
  const [one, two] = [await house.client(), await house.client()];
  const stranger = await house.client({ token: "other" });
  const args = { sessionKey: "agent:research:main", message: "x", timeoutSeconds: 60 };
  const params = { name: "sessions_send", arguments: args, idempotencyKey: "busy" };
  const watcher = await joined(house);
  const calls = [one.request("tools.invoke", params)];
  await watcher.next((frame) => frame.event === "agent");
  calls.push(two.request("tools.invoke", params));
  const conflict = { code: "CONFLICT" };
  const strange = stranger.request("tools.invoke", params);
  const changed = { ...params, arguments: { ...args, message: "y" } };
  await expect(two.request("tools.invoke", changed)).rejects.toMatchObject(conflict);
  await expect(
    two.request("chat.abort", { sessionKey: "main", idempotencyKey: "busy" }),
  ).rejects.toMatchObject(conflict);
  gate.resolve();
  const [first, second] = await Promise.all(calls);
  expect(first).toMatchObject({ status: "ok", reply: "one" });
  expect(second).toEqual(first);
  expect(await strange).not.toEqual(first);
});

test("if a restart interrupts a tool call with a key, a retry does not send its message again", async () => {
  const dir = temporaryFolder();
  const gate = Promise.withResolvers<void>();
  cleanup(() => gate.resolve());
  const texts: string[] = [];
  const play = async ({ run, signal }: { run: { input: { text: string } }; signal: AbortSignal }) => {
    texts.push(run.input.text);
    signal.addEventListener("abort", () => gate.resolve());
    await gate.promise;
    if (signal.aborted) throw signal.reason;
    return "ok";
  };
  const first = await openHouse({ dir, play });
  const params = {
    name: "sessions_send",
    arguments: { sessionKey: "agent:research:main", message: "once", timeoutSeconds: 60 },
    idempotencyKey: "tool",
  };
  const raw = await joined(first);
  raw.send({ type: "req", id: "t", method: "tools.invoke", params });
  await raw.next((frame) => frame.event === "agent" && frame.payload.stream === "lifecycle");
  await first.stop();
  const second = await openHouse({ dir });
  const answer = await (await second.client()).call<Record<string, unknown>>("tools.invoke", params);
  expect(answer).toMatchObject({ status: expect.stringMatching(/ok|timeout/), runId: expect.any(String) });
  expect(texts).toEqual(["once"]);
  await (await second.client()).request("agent.wait", { runId: String(answer.runId) });
  const history = await (await second.client()).request("chat.history", {
    sessionKey: "agent:research:main",
  });
  expect(history.messages.filter((message) => message.role === "user")).toHaveLength(1);
});

test.each([["\ud800"], ["a\u0000b"], ["a\nb"]])(
  "the idempotency key %j is refused with a clear error",
  async (key) => {
    const house = await openHouse();
    const client = await house.client();
    const params = { sessionKey: "main", message: "x", idempotencyKey: key };
    await expect(client.request("chat.send", params)).rejects.toMatchObject({
      code: "INVALID_REQUEST",
      message: expect.stringContaining("idempotencyKey must be text without control characters"),
    });
  },
);

test.each([[" "], ["__proto__"], ["constructor"], ["'; drop table runs; --"], ["\u{1f9a6}"]])(
  "the unusual idempotency key %j becomes the id of its run",
  async (key) => {
    const house = await openHouse();
    const client = await house.client();
    const params = { sessionKey: "main", message: "x", idempotencyKey: key };
    expect(await client.request("chat.send", params)).toEqual({ runId: key, status: "started" });
    expect(await client.request("agent.wait", { runId: key })).toMatchObject({ runId: key, status: "ok" });
    expect(await client.request("chat.send", params)).toEqual({ runId: key, status: "started" });
  },
);

const CHANGES: [string, Record<string, unknown>][] = [
  ["sessions.patch", { key: "main", label: "desk" }],
  ["sessions.reset", { key: "main" }],
  ["sessions.delete", { key: "agent:main:chat:00000000-0000-4000-8000-000000000001" }],
  ["chat.abort", { sessionKey: "main" }],
  ["chat.inject", { sessionKey: "main", message: "note" }],
  ["sessions.create", {}],
  ["send", { to: "main", message: "x" }],
  ["chat.send", { sessionKey: "main", message: "x" }],
  ["agent", { message: "x" }],
];
test.each(CHANGES)(
  "%s stores its effect and its answer in one commit, or stores neither",
  async (method, params) => {
    const house = await openHouse();
    const key = "agent:main:chat:00000000-0000-4000-8000-000000000001";
    await house.store.transaction((tx) => insertSession(tx, sessionRow(key)));
    // Lets the write of the answer fail. The effect must then not be stored either.
    await house.store.transaction((tx) =>
      sql`create trigger full before insert on idempotency begin select raise(abort, 'full'); end`.execute(
        tx,
      ),
    );
    const client = await house.client();
    const state = async () => {
      const rows = await house.store.db.selectFrom("sessions").selectAll().orderBy("key").execute();
      const runs = await house.store.db.selectFrom("runs").selectAll().execute();
      return JSON.stringify([rows, runs]);
    };
    const before = await state();
    const refused = client.call(method, { ...params, idempotencyKey: "once" });
    await expect(refused).rejects.toMatchObject({ code: "UNAVAILABLE" });
    expect(await state()).toBe(before);
  },
);
