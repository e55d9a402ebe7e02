// A request is executed once, and gets the same answer every time, even if the database's answer to its commit
// is lost, or if the request arrives at two gateways at the same moment.

import { describe, expect } from "vitest";
import { toolCallsOf } from "../../../src/core/shapes/message.ts";
import type { LaneHandle } from "../../../src/engine/run/execution.ts";
import { openPostgres } from "../../../src/store/postgres/postgres.ts";
import { StoreProblem } from "../../../src/store/problems.ts";
import { readRun } from "../../../src/store/queries/transcripts/transcripts.ts";
import type { Store } from "../../../src/store/sql.ts";
import { both, share, test } from "../../kit/deep.ts";
import { cleanup, openStoreOn, quietWorld, temporaryFolder } from "../../kit/engine/engine.ts";
import { scriptedModel } from "../../kit/scripted-model.ts";
import { openPostgresStore } from "../../kit/store/postgres.ts";
import { PATIENCE_MS, until } from "../../kit/until.ts";
import { openPeer, type Peer } from "../clients/mcp.ts";
import { type House, openHouse } from "../kit.ts";

const MAIN = "agent:main:main";
const RESEARCH = "agent:research:main";
const send = { sessionKey: RESEARCH, message: "hello", timeoutSeconds: 0 };

interface Asked {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
  /** The table to which each execution adds a row. */
  readonly table: "runs" | "sessions" | "cron_jobs" | "flows" | "waits";
}

const CRON = { schedule: { kind: "every", everyMs: 3_600_000 }, message: "look" };
/** Requests that would add two rows if they were executed twice. */
const REQUESTS: Readonly<Record<string, Asked>> = {
  "a message": { method: "chat.send", params: { sessionKey: MAIN, message: "hello" }, table: "runs" },
  "a run": { method: "agent", params: { sessionKey: MAIN, message: "hello" }, table: "runs" },
  "a note": { method: "chat.inject", params: { sessionKey: MAIN, message: "a note" }, table: "runs" },
  "a session": { method: "sessions.create", params: { agentId: "main" }, table: "sessions" },
  "a job": { method: "cron.add", params: CRON, table: "cron_jobs" },
  "a send as a tool call": {
    method: "tools.invoke",
    params: { name: "sessions_send", arguments: send },
    table: "flows",
  },
  "a sub-agent as a tool call": {
    method: "tools.invoke",
    params: { name: "sessions_spawn", arguments: { task: "work" } },
    table: "sessions",
  },
};
/**
 * Returns a store whose next commits lose their answers. With `late`, each commit is made only after the next
 * transaction has begun.
 */
function cutting(store: Store) {
  let left = 0;
  let skips = 0;
  const held = Promise.withResolvers<void>();
  let isLate = false;
  const lost = (): StoreProblem =>
    new StoreProblem("unreachable", "store", { detail: "connection lost", inDoubt: true });
  const transaction: Store["transaction"] = async (work) => {
    if (left === 0) {
      // The uncertain commit is made after the repeated request has begun.
      if (isLate) queueMicrotask(held.resolve);
      return store.transaction(work);
    }
    if (skips > 0) {
      skips -= 1;
      return store.transaction(work);
    }
    left -= 1;
    const answered = Promise.withResolvers<never>();
    const done = store.transaction(async (tx) => {
      const value = await work(tx);
      if (isLate) {
        answered.reject(lost());
        await held.promise;
      }
      return value;
    });
    if (isLate) return Promise.race([done, answered.promise]);
    await done;
    throw lost();
  };
  return {
    store: { ...store, transaction },
    /**
     * Loses the answers of `count` commits. `skipped`: number of earlier commits that keep their answers. The
     * returned function returns true if all `count` answers were lost.
     */
    cut(count: number, late = false, skipped = 0): () => boolean {
      left = count;
      skips = skipped;
      isLate = late;
      return () => left === 0;
    },
  };
}

const rowsIn = async ({ db }: Store, table: Asked["table"]): Promise<number> =>
  (await db.selectFrom(table).selectAll().execute()).length;

describe.each(share(["sqlite"], ["postgres"]))("on %s", (kind) => {
  const test = both;
  test.each(Object.keys(REQUESTS))(
    "if any answer to a commit is lost, a request with a key is executed once and answered: %s",
    async (name) => {
      const { method, params, table } = REQUESTS[name] as Asked;
      const { store, cut } = cutting(await openStoreOn(kind, temporaryFolder()));
      const client = await (await openHouse({ disk: store })).client();
      for (const lost of [1, 2]) {
        const before = await rowsIn(store, table);
        const keyed = { ...params, idempotencyKey: `key ${lost}` };
        cut(lost);
        const first = await client.call(method as "health", keyed as never);
        cut(0);
        expect(await client.call(method as "health", keyed as never)).toEqual(first);
        expect((await rowsIn(store, table)) - before, `${lost} lost`).toBe(1);
      }
    },
  );
});

interface ClientCall extends Pick<Asked, "table"> {
  readonly params: (house: House, client: Peer) => Asked["params"] | Promise<Asked["params"]>;
  readonly result: object;
}

const ENDLESS = "endless";
const play = async ({ run, signal }: LaneHandle): Promise<string> => {
  const { text } = run.input;
  if (text.includes(ENDLESS)) await new Promise((resolve) => signal.addEventListener("abort", resolve));
  return `echo ${text}`;
};

/** Calls of an MCP client, and the table to which each execution adds a row. */
const CALLS: Readonly<Record<string, ClientCall>> = {
  sessions_send: {
    params: () => ({ ...send, timeoutSeconds: 30 }),
    table: "flows",
    result: { status: "ok", reply: "echo hello" },
  },
  sessions_spawn: { params: () => ({ task: "work" }), table: "flows", result: { status: "accepted" } },
  sessions_fork: { params: forkable, table: "sessions", result: { status: "ok", at: expect.any(String) } },
  subagents: {
    params: busyChild,
    table: "waits",
    result: { status: "timeout", unfinished: [expect.anything()] },
  },
};

/** Lets the client start a sub-agent that does not finish. Returns the arguments of a wait for it. */
async function busyChild({ engine }: House, client: Peer): Promise<Asked["params"]> {
  await client.call("sessions_spawn", { task: ENDLESS });
  await until(async () => (await engine.load()).running === 1);
  return { action: "wait", timeoutSeconds: 0.1 };
}

/** Lets a person talk with an agent. Returns the arguments of a fork after that. */
async function forkable(house: House): Promise<Asked["params"]> {
  const client = await house.client();
  const { runId } = await client.request("chat.send", { sessionKey: MAIN, message: "one" });
  await client.request("agent.wait", { runId });
  const { messages } = await client.request("chat.history", { sessionKey: MAIN });
  return { sessionKey: MAIN, at: messages.at(-1)?.id };
}

describe.each(share([["lost", "sqlite", false] as const], [["late", "postgres", true] as const]))(
  "the answer to the commit of an MCP client's call is %s",
  (_, kind, isLate) => {
    both.each(Object.keys(CALLS))(
      "the call is executed once, and its client gets the result: %s",
      async (name) => {
        const { params, table, result } = CALLS[name] as ClientCall;
        const { store, cut } = cutting(await openStoreOn(kind, temporaryFolder()));
        const house = await openHouse({ disk: store, play });
        const peer = await openPeer(house, "version 1", { headers: { "x-parley-handle": "me" } });
        const given = await params(house, peer);
        const before = await rowsIn(store, table);
        const isCut = cut(1, isLate);
        const told = await peer.call(name, given);
        expect(isCut()).toBe(true);
        expect(told).toMatchObject(result);
        expect((await rowsIn(store, table)) - before).toBe(1);
      },
    );
  },
);

test.each(Object.keys(REQUESTS))(
  "if a commit without an answer succeeds a moment later, the request returns the result of that commit: %s",
  async (name) => {
    const { method, params, table } = REQUESTS[name] as Asked;
    const { store, cut } = cutting(await openStoreOn("postgres", temporaryFolder()));
    const client = await (await openHouse({ disk: store })).client();
    const before = await rowsIn(store, table);
    cut(1, true);
    const answer = client.call(method as "health", { ...params, idempotencyKey: "late" } as never);
    const first = await answer;
    expect(await client.call(method as "health", { ...params, idempotencyKey: "late" } as never)).toEqual(
      first,
    );
    expect((await rowsIn(store, table)) - before).toBe(1);
  },
);

describe.each(share(["sqlite"], ["postgres"]))("a turn of a model on %s", (kind) => {
  const test = both;
  test("K1: whichever answer to a commit is lost, each tool call has one result, and the run succeeds", async () => {
    const script = (_: unknown, call: number) =>
      call === 0
        ? { toolCalls: [{ name: "agents_list" }, { name: "sessions_list" }, { name: "agents_list" }] }
        : call === 1
          ? { toolCalls: [{ name: "session_status" }] }
          : "done";
    const { store, cut } = cutting(await openStoreOn(kind, temporaryFolder()));
    const turnWith = async (skipped: number): Promise<boolean> => {
      const model = scriptedModel(script);
      const house = await openHouse({ disk: { ...store, close: async () => {} }, model });
      const client = await house.client();
      const runId = `run ${skipped}`;
      const isCut = cut(1, false, skipped);
      await client.call("agent", { sessionKey: MAIN, message: "look", idempotencyKey: runId });
      expect(await client.call("agent.wait", { runId, timeoutMs: PATIENCE_MS })).toMatchObject({
        status: "ok",
      });
      const messages = await readRun(store.db, runId);
      const calls = messages.flatMap((one) => toolCallsOf(one).map(({ id }) => id));
      const results = messages.flatMap((one) => (one.role === "toolResult" ? [one.toolCallId] : []));
      expect(results.toSorted(), `after ${skipped} commits`).toEqual(calls.toSorted());
      expect(calls).toHaveLength(4);
      const wasCut = isCut();
      cut(0);
      await house.stop();
      return wasCut;
    };
    let skipped = 0;
    while (await turnWith(skipped)) skipped += 1;
    expect(skipped).toBeGreaterThan(6);
  });
});

test.deep(
  "if two gateways get the same request at the same moment, they return the same answer, for each method",
  async () => {
    const ground = await openPostgresStore();
    cleanup(ground.dispose);
    const open = async () =>
      openHouse({ disk: await openPostgres({ url: ground.url, world: quietWorld() }) });
    const houses = [await open(), await open()];
    const clients = await Promise.all(houses.map((house) => house.client()));
    for (const { method, params, table } of Object.values(REQUESTS)) {
      const before = await rowsIn(ground.store, table);
      const rounds = 15;
      for (let round = 0; round < rounds; round += 1) {
        const keyed = { ...params, idempotencyKey: `${method} ${JSON.stringify(params)} ${round}` };
        const answers = await Promise.all(
          clients.map((client) => client.call(method as "health", keyed as never)),
        );
        expect(answers[1]).toEqual(answers[0]);
      }
      expect((await rowsIn(ground.store, table)) - before, method).toBe(rounds);
    }
  },
);
