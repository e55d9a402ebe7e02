// sessions.fork: a conversation that continues another one after one of its messages.

import { sql } from "kysely";
import { describe, expect, test } from "vitest";
import type { GatewayClient } from "../../../src/contract/client/node.ts";
import { isCompaction, type Message, textOf } from "../../../src/core/shapes/message.ts";
import type { TokenScope } from "../../../src/core/shapes/settings/settings.ts";
import { holdSessions } from "../../../src/store/locks.ts";
import { getSession, updateSession } from "../../../src/store/queries/sessions/sessions.ts";
import type { Store } from "../../../src/store/sql.ts";
import { cleanup, temporaryFolder } from "../../kit/engine/engine.ts";
import { openPostgresStore, runSql } from "../../kit/store/postgres.ts";
import { doing, spawning, talkingModel } from "../../kit/talking-model.ts";
import { until } from "../../kit/until.ts";
import { GROUNDS, gatewayOn } from "../keys/kit.ts";
import { type House, openHouse, quiet } from "../kit.ts";

const MAIN = "agent:main:main";

async function say(client: GatewayClient, sessionKey: string, message: string): Promise<void> {
  const { runId } = await client.request("chat.send", { sessionKey, message });
  await client.request("agent.wait", { runId });
}

async function messagesOf(client: GatewayClient, sessionKey: string) {
  return (await client.request("chat.history", { sessionKey })).messages;
}

const textsOf = async (client: GatewayClient, sessionKey: string): Promise<string[]> =>
  (await messagesOf(client, sessionKey)).map(textOf);

/** Says this in a session, and returns the id of the last message. */
async function lastAfter(client: GatewayClient, sessionKey: string, message: string): Promise<string> {
  await say(client, sessionKey, message);
  return (await messagesOf(client, sessionKey)).at(-1)?.id ?? "";
}

async function sessionIn(house: House, key: string) {
  const session = await getSession(house.store.db, key);
  if (session === undefined) throw new Error(`no session ${key}`);
  return session;
}

test("a fork continues after a message, and what it and its origin say later stays apart", async () => {
  const model = talkingModel();
  const house = await openHouse({ model });
  const client = await house.client();
  await client.request("sessions.patch", { key: MAIN, thinkingLevel: "low", verboseLevel: "full" });
  const at = await lastAfter(client, MAIN, "one");
  await say(client, MAIN, "two");
  const made = await client.request("sessions.fork", { sessionKey: "main", at, label: "another try" });
  expect(made).toMatchObject({ ok: true, at, leftBehind: { runs: 0, jobs: 0, waits: 0 } });
  expect(made.key).toMatch(/^agent:main:main:fork:[0-9a-f-]{36}$/);
  const fork = await sessionIn(house, made.key);
  expect(fork).toMatchObject({
    kind: "other",
    label: "another try",
    agentId: "main",
    cost: 0,
    totalTokens: 0,
  });
  expect(fork).toMatchObject({ thinkingLevel: "low", verboseLevel: "full", sessionId: made.sessionId });
  await say(client, made.key, "three");
  const marker = `Forked from the conversation "one", after the message above.`;
  expect(await textsOf(client, made.key)).toEqual([
    ...["one", "echo one"],
    expect.stringContaining(marker),
    ...["three", "echo three"],
  ]);
  expect(await textsOf(client, MAIN)).toEqual(["one", "echo one", "two", "echo two"]);
  const [, , note] = await messagesOf(client, made.key);
  expect(note).toMatchObject({ provenance: { kind: "notice", sourceSessionKey: MAIN } });
  const seen = model.requests
    .at(-1)
    ?.entries.filter((entry): entry is Message => !isCompaction(entry))
    .map(textOf);
  expect(seen).toEqual(["one", "echo one", expect.stringContaining(marker), "three"]);
  expect(await sessionIn(house, made.key)).toMatchObject({ totalTokens: 15 });
});

test("the notice of a fork names the origin by its label, on one line and without key or secrets", async () => {
  const house = await openHouse();
  const client = await house.client();
  const notice = async (key: string): Promise<string> => {
    const at = (await messagesOf(client, key)).at(-1)?.id ?? "";
    const { key: fork } = await client.request("sessions.fork", { sessionKey: key, at });
    return (await textsOf(client, fork)).at(-1) ?? "";
  };
  const later = "Later work there is not part of this conversation.";
  await say(client, MAIN, `my key is sk-ant-${"a1B2c3D4".repeat(6)}\nsay "no"`);
  const unnamed = await notice(MAIN);
  expect(unnamed).toMatch(/^Forked from the conversation "my key is [^\n]*", after the message above\. /);
  expect(unnamed).not.toMatch(/a1B2c3D4a1B2|agent:main|20\d\d-/);
  await client.request("sessions.patch", { key: MAIN, label: "Kitchen plans" });
  const named = `Forked from the conversation "Kitchen plans", after the message above. ${later}`;
  expect(await notice(MAIN)).toBe(named);
});

test("a fork of a session at work says which runs, jobs and waits stay with its origin", async () => {
  const job = Promise.withResolvers<void>();
  const model = talkingModel((input) => (input === "long work" ? job.promise : undefined));
  const house = await openHouse({ model });
  const client = await house.client();
  const at = await lastAfter(client, MAIN, "before");
  await say(client, MAIN, doing(spawning("long work")));
  const wait = { name: "subagents", arguments: { action: "wait", timeoutSeconds: 60 } };
  const { runId } = await client.request("chat.send", { sessionKey: MAIN, message: doing(wait) });
  await client.request("chat.send", { sessionKey: MAIN, message: "later" });
  await until(
    async () => (await client.request("sessions.list", { keys: [MAIN] })).sessions[0]?.state === "waiting",
  );
  const asking = (await messagesOf(client, MAIN)).at(-1);
  expect(asking).toMatchObject({ role: "assistant", stopReason: "toolUse" });
  const made = await client.request("sessions.fork", { sessionKey: MAIN, at });
  expect(made.leftBehind).toEqual({ runs: 2, jobs: 1, waits: 1 });
  // The call of this message has no result yet, so the fork ends before it.
  const cut = await client.request("sessions.fork", { sessionKey: MAIN, at: asking?.id ?? "" });
  expect((await messagesOf(client, cut.key)).at(-2)).toMatchObject({ id: cut.at, role: "user" });
  await say(client, cut.key, "and you?");
  expect((await textsOf(client, cut.key)).at(-1)).toContain("echo");
  job.resolve();
  await client.request("agent.wait", { runId });
  await quiet(house);
});

test("a reset and the deletion of the origin leave a fork as it was", async () => {
  const house = await openHouse();
  const client = await house.client();
  await say(client, "work", "one");
  const at = await lastAfter(client, "work", "two");
  const fork = await client.request("sessions.fork", { sessionKey: "work", at });
  await say(client, fork.key, "three");
  const texts = await textsOf(client, fork.key);
  expect(texts).toHaveLength(7);
  await client.request("sessions.reset", { key: "work" });
  expect(await textsOf(client, fork.key)).toEqual(texts);
  const [earlier] = (await client.request("sessions.earlier", { key: "work" })).conversations;
  const old = await client.request("sessions.fork", {
    sessionKey: "work",
    at: earlier === undefined ? "" : at,
  });
  await client.request("sessions.delete", { key: "work" });
  expect(await textsOf(client, fork.key)).toEqual(texts);
  expect((await textsOf(client, old.key)).slice(0, 4)).toEqual(texts.slice(0, 4));
  await say(client, fork.key, "four");
  expect(await textsOf(client, fork.key)).toHaveLength(9);
});

const scopes: TokenScope[] = ["operator.write"];
const tokens = [
  { token: "reads-main", role: "operator" as const, scopes: ["operator.read" as const] },
  { token: "main-only", role: "operator" as const, scopes, sessions: [MAIN] },
  { token: "forks-only", role: "operator" as const, scopes, sessions: ["*:fork:*"] },
  { token: "both", role: "operator" as const, scopes, sessions: [`${MAIN}*`] },
];

test("FO1: only a token that may read and write the origin forks it, and only one that covers both sees the fork", async () => {
  const house = await openHouse({ gateway: { tokens } });
  const client = await house.client();
  const at = await lastAfter(client, MAIN, "velvet");
  const by = async (token: string) => house.client({ token });
  for (const token of ["reads-main", "main-only", "forks-only"]) {
    const refused = (await by(token)).request("sessions.fork", { sessionKey: MAIN, at });
    await expect(refused, token).rejects.toMatchObject({ code: "FORBIDDEN" });
  }
  const { key } = await (await by("both")).request("sessions.fork", { sessionKey: MAIN, at });
  const second = await client.request("sessions.fork", { sessionKey: key, at });
  for (const sessionKey of [key, second.key]) {
    expect(await textsOf(await by("both"), sessionKey)).toContain("velvet");
    for (const token of ["main-only", "forks-only"]) {
      const other = await by(token);
      const read = other.request("chat.history", { sessionKey });
      await expect(read, token).rejects.toMatchObject({ code: "FORBIDDEN" });
      const page = await other.request("sessions.list", { includeCounts: true });
      expect(page.sessions.map((row) => row.key)).not.toContain(sessionKey);
      expect((await other.request("sessions.search", { query: "velvet" })).hits).toHaveLength(
        token === "main-only" ? 2 : 0,
      );
    }
  }
});

test("FO1: a fork of a sub-agent keeps the sub-agent's requester, depth, sandbox and pool, but not its job", async () => {
  const house = await openHouse({ model: talkingModel() });
  const client = await house.client();
  await say(client, MAIN, doing(spawning("look")));
  await quiet(house);
  const child = (await client.request("sessions.list", { spawnedBy: MAIN })).sessions[0]?.key ?? "";
  const original = await sessionIn(house, child);
  const at = (await messagesOf(client, child))[0]?.id ?? "";
  const { key } = await client.request("sessions.fork", { sessionKey: child, at });
  const fork = await sessionIn(house, key);
  expect(fork).toMatchObject({ spawnedBy: MAIN, spawnDepth: 1 });
  expect(fork.spawn).toMatchObject({ requesterKey: MAIN, sandboxed: original.spawn?.sandboxed });
  expect(fork.spawn?.flowId).not.toBe(original.spawn?.flowId);
  const withheld = await client.request("tools.catalog", { sessionKey: child });
  expect(await client.request("tools.catalog", { sessionKey: key })).toEqual({
    ...withheld,
    sessionKey: key,
  });
  await say(client, MAIN, doing({ name: "subagents", arguments: { action: "list" } }));
  const listed = (await messagesOf(client, MAIN)).findLast(({ role }) => role === "toolResult");
  expect(JSON.parse(listed === undefined ? "" : textOf(listed))).toMatchObject({
    count: 1,
    subagents: [{ sessionKey: child, task: "look" }],
  });
  const before = await textsOf(client, MAIN);
  await say(client, key, "go on");
  await quiet(house);
  expect(await textsOf(client, MAIN)).toEqual(before);
  expect((await sessionIn(house, child)).archivedAt).toBeUndefined();
});

test("a session that a program serves, an archived one, and the fifth fork in a row can't be forked", async () => {
  const house = await openHouse();
  const client = await house.client();
  let { key } = await client.request("sessions.create", { label: "first" });
  const at = await lastAfter(client, key, "hello");
  for (let depth = 1; depth <= 5; depth += 1) {
    ({ key } = await client.request("sessions.fork", { sessionKey: key, at }));
  }
  expect(await textsOf(client, key)).toHaveLength(3);
  const fork = (sessionKey: string, message = at) =>
    client.request("sessions.fork", { sessionKey, at: message });
  await expect(fork(key)).rejects.toMatchObject({ message: expect.stringContaining("in a row") });
  await expect(fork(MAIN)).rejects.toMatchObject({ code: "NOT_FOUND" });
  await expect(fork("nobody")).rejects.toMatchObject({ code: "NOT_FOUND" });
  await house.store.transaction((tx) => updateSession(tx, key, { archivedAt: 1 }));
  await expect(fork(key)).rejects.toMatchObject({ code: "CONFLICT" });
  const program = { key: "agent:main:mcp:desk", external: 1 };
  await house.store.transaction((tx) =>
    tx.updateTable("sessions").set(program).where("key", "=", MAIN).execute(),
  );
  await expect(fork(program.key)).rejects.toMatchObject({ message: expect.stringContaining("no model") });
});

/** Returns a store whose process dies at its next transaction: before the commit, or after it. */
function dying(die: () => void) {
  let next: "before" | "after" | undefined;
  const through = (store: Store): Store => ({
    ...store,
    async transaction(work) {
      const when = next;
      next = undefined;
      if (when === undefined) return store.transaction(work);
      if (when === "after") {
        const value = await store.transaction(work);
        die();
        return value;
      }
      return store.transaction(async (tx) => {
        await work(tx);
        die();
        throw new Error("the process died before the commit");
      });
    },
  });
  return { through, at: (when: "before" | "after") => (next = when) };
}

describe.each(GROUNDS)("on %s", (_, openGround) => {
  test.each(["before", "after"] as const)(
    "FO2: a crash %s the commit of a fork leaves the whole fork or nothing, and a retry makes only one",
    async (when) => {
      const workspace = temporaryFolder();
      const ground = await openGround();
      let die = (): void => {};
      const plan = dying(() => die());
      const one = await gatewayOn(ground, workspace, plan.through);
      const two = await gatewayOn(ground, workspace);
      die = one.die;
      const { runId } = await one.ask("chat.send", {
        sessionKey: MAIN,
        message: "hello",
        idempotencyKey: "say",
      });
      await one.ask("agent.wait", { runId });
      const { messages } = (await two.ask("chat.history", { sessionKey: MAIN })) as {
        messages: { id: string }[];
      };
      const keyed = { sessionKey: MAIN, at: messages[0]?.id, label: "forked", idempotencyKey: "fork" };
      const forks = async () => {
        const { sessions } = (await two.ask("sessions.list", { label: "forked" })) as {
          sessions: { key: string }[];
        };
        return sessions.map(({ key }) => key);
      };
      plan.at(when);
      one.ask("sessions.fork", keyed).catch(() => {});
      const { key } = await until(async () => {
        const done = await two.ask("sessions.fork", keyed).catch(() => undefined);
        return done as { key: string } | undefined;
      });
      expect(await forks()).toEqual([key]);
      const read = (await two.ask("chat.history", { sessionKey: key })) as { messages: unknown[] };
      expect(read.messages).toHaveLength(2);
    },
  );
});

test("on PostgreSQL, a deletion locks the forks that may inherit before it locks any run", async () => {
  const job = Promise.withResolvers<void>();
  const model = talkingModel((input) => (input === "long work" ? job.promise : undefined));
  const { store, url, schema, dispose } = await openPostgresStore();
  cleanup(dispose);
  const house = await openHouse({ model, disk: store });
  const client = await house.client();
  const at = await lastAfter(client, "work", "one");
  const { sessionKey } = await client.request("chat.history", { sessionKey: "work" });
  const fork = await client.request("sessions.fork", { sessionKey, at });
  await client.request("chat.send", { sessionKey, message: "long work" });
  const { runId } = await client.request("chat.send", { sessionKey, message: "queued" });
  const kept = Promise.withResolvers<void>();
  const go = Promise.withResolvers<void>();
  const other = store
    .transaction(async (tx) => {
      await holdSessions(tx, [fork.key]);
      kept.resolve();
      await go.promise;
      await sql`select 1 from runs where run_id = ${runId} for update nowait`.execute(tx);
    })
    .then(() => "got the run", String);
  await kept.promise;
  const deleted = client.request("sessions.delete", { key: sessionKey });
  const waiting = `select 1 from pg_locks w join pg_locks h on h.pid = w.pid join pg_class c on c.oid = h.relation
    where not w.granted and c.relnamespace = '${schema}'::regnamespace`;
  await until(async () => (await runSql(url, waiting)).length > 0);
  go.resolve();
  expect(await other).toBe("got the run");
  await deleted;
  job.resolve();
  await quiet(house);
  expect(await textsOf(client, fork.key)).toHaveLength(3);
});
