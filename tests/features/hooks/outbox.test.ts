// Outgoing web hooks, from the stored row to the receiver: real HTTP, and a clock that the test controls.

import type { ServerResponse } from "node:http";
import { expect, test } from "vitest";
import { createOldRowsCleanup } from "../../../src/app/old-rows.ts";
import type { Channel } from "../../../src/channels/channel.ts";
import { HookPace } from "../../../src/channels/hook-pace.ts";
import type { LiveEvent } from "../../../src/core/shapes/event.ts";
import { ZERO_USAGE } from "../../../src/core/shapes/message.ts";
import { createBus } from "../../../src/engine/bus.ts";
import { createCommit } from "../../../src/engine/unit.ts";
import { createChannel, createRecorder } from "../../../src/features/hooks/outbox.ts";
import { HOOK_EVENTS, type OutgoingHook } from "../../../src/features/hooks/settings.ts";
import {
  beginAttempt,
  dismissDelivery,
  insertDelivery,
  listDeliveries,
  requeueDelivery,
} from "../../../src/store/queries/channels/deliveries.ts";
import { countDropped } from "../../../src/store/queries/channels/hook-backlog.ts";
import { cleanup, openStore, temporaryFolder } from "../../kit/engine/engine.ts";
import { openOutbox } from "../../kit/engine/outbox.ts";
import { SECRET, startReceiver, type Told } from "../../kit/hook-receiver.ts";
import { until } from "../../kit/until.ts";
import { fakeWorld } from "../../kit/world.ts";
import { settingsWith } from "../../tools/app.ts";

const KEY = "agent:main:main";

const created = (sessionKey = KEY): LiveEvent => ({ kind: "session", sessionKey, change: "created" });

function ended(more: Partial<Extract<LiveEvent, { kind: "run_ended" }>> = {}): LiveEvent {
  const facts = { runId: "run-1", sessionKey: KEY, chainId: "chain-1", startedAt: 1, endedAt: 2 };
  return { kind: "run_ended", ...facts, state: "ok", text: "done", usage: ZERO_USAGE, ...more };
}

const hookTo = (url: string, more: Partial<OutgoingHook> = {}): OutgoingHook => ({
  ...{ name: "tests", url, events: HOOK_EVENTS, secret: SECRET, enabled: true },
  ...more,
});

/** Opens an outbox that calls these hooks. */
async function open(
  outgoing: readonly OutgoingHook[],
  more: { pendingMax?: number; drop?: (hook: string) => void } = {},
) {
  const world = fakeWorld();
  const store = await openStore(temporaryFolder(), world);
  const settings = settingsWith({ features: { hooks: { outgoing } } });
  const record = createRecorder(settings, more.drop ?? (() => {}), more.pendingMax);
  const commit = createCommit(store, world, createBus(world.log), {
    record,
    lookAtDates: () => worker.look(),
  });
  const webhooks = createChannel({ settings, world });
  const channels = new Map([[webhooks.id, webhooks]]);
  const make = () => openOutbox({ db: store.db, commit, channels, world, owner: "this", of: "hooks" });
  let worker = make();
  cleanup(() => worker.stop());
  const rows = async () => (await listDeliveries(store.db, { limit: 200 })).rows;
  return {
    world,
    store,
    commit,
    rows,
    start: () => worker.start(),
    /** Simulates a new process that starts after a crash. */
    async restart() {
      worker = make();
      await worker.start();
    },
    retry(id: string) {
      return commit(async (unit) => {
        await requeueDelivery(unit.tx, id, unit.now);
        unit.lookAtDates();
      });
    },
    tell: (...events: LiveEvent[]) =>
      commit(async (unit) => {
        for (const event of events) unit.publish(event);
      }),
    /** Resolves when the rows match. Polls, because real sockets need real time. */
    async until(fits: (states: string[]) => boolean): Promise<string[]> {
      await new Promise((resolve) => setImmediate(resolve));
      return until(async () => {
        const states = (await rows()).map(({ state, code }) =>
          code === undefined ? state : `${state} ${code}`,
        );
        return fits(states) && states;
      });
    },
  };
}

const all = (state: string) => (states: string[]) =>
  states.length > 0 && states.every((one) => one === state);

test("a request is signed over id, time and body, in the format that common receiver libraries verify", async () => {
  const key = Buffer.from("0123456789abcdef0123456789abcdef");
  const receiver = await startReceiver(undefined, { secret: key });
  const bench = await open([hookTo(receiver.url, { secret: `whsec_${key.toString("base64")}` })]);
  await bench.start();
  await bench.tell(ended({ error: "token=abcdef1234567890", code: "run_failed", state: "error" }));
  await bench.until(all("sent"));
  expect(receiver.told).toHaveLength(1);
  const [told] = receiver.told as [Told];
  expect(told.headers["content-type"]).toBe("application/json");
  expect(told.headers["webhook-timestamp"]).toBe(String(Math.floor(bench.world.clock.now() / 1000)));
  expect(told.body).toEqual({
    version: 1,
    id: told.id,
    type: "run.ended",
    timestamp: new Date(bench.world.clock.now()).toISOString(),
    data: {
      ...{ sessionKey: KEY, agentId: "main", runId: "run-1", chainId: "chain-1", status: "error" },
      ...{ text: "done", code: "run_failed", error: "token=[redacted]" },
      ...{ usage: ZERO_USAGE, startedAt: 1, endedAt: 2 },
    },
  });
});

test("I14: a body contains no credential, even in a long text, and marks a text that was cut", async () => {
  const receiver = await startReceiver();
  const bench = await open([hookTo(receiver.url)]);
  await bench.start();
  const secret = "sk-abcdefghij1234567890abcdefghij";
  await bench.tell(
    ended({ text: `${"word ".repeat(3_190)}the key is ${secret} and so on ${"x".repeat(50_000)}` }),
  );
  await bench.until(all("sent"));
  expect(receiver.told[0]?.text).not.toContain("sk-abc");
  expect(receiver.told[0]?.body.data).toMatchObject({ textTruncated: true });
  expect(receiver.told[0]?.text.length).toBeLessThan(20_000);
});

test("each hook gets only its own events and sessions, and an event without a hook writes no row", async () => {
  const receiver = await startReceiver();
  const bench = await open([
    hookTo(receiver.url, { name: "resets", events: ["session.reset"] }),
    hookTo(receiver.url, { name: "research", sessions: ["agent:research:*"] }),
  ]);
  await bench.start();
  await bench.tell(created(), { kind: "session", sessionKey: KEY, change: "state" });
  expect(await bench.rows()).toEqual([]);
  await bench.tell({ kind: "session", sessionKey: KEY, change: "reset" }, created("agent:research:main"));
  await bench.until(all("sent"));
  const to = (await bench.rows()).map(({ route, kind }) => `${kind} ${route.channel} ${route.to}`);
  expect(to).toEqual(["hook webhook research", "hook webhook resets"]);
  // An appended note is not a run, so it writes no row.
  await bench.tell(ended({ sessionKey: "agent:research:main", startedAt: undefined as never, text: "" }));
  expect(await bench.rows()).toHaveLength(2);
});

test("I4: an event of a transaction that is rolled back is not sent", async () => {
  const receiver = await startReceiver();
  const bench = await open([hookTo(receiver.url)]);
  await bench.start();
  await expect(
    bench.commit(async (unit) => {
      unit.publish(created());
      throw new Error("no");
    }),
  ).rejects.toThrow("no");
  expect(await bench.rows()).toEqual([]);
});

test("after 500 and 429 a request is repeated with the same id and body after Retry-After; after 400, 410 and 302 it is not", async () => {
  const answers: [number, Record<string, string>][] = [
    [500, {}],
    [429, { "retry-after": "120" }],
    [503, { "retry-after": "Thu, 01 Jan 1970 00:00:00 GMT" }],
    [200, {}],
  ];
  const receiver = await startReceiver((_, response, index) => {
    const [status, headers] = answers[index] ?? [204, {}];
    response.writeHead(status, headers).end();
  });
  const bench = await open([hookTo(receiver.url)]);
  await bench.start();
  await bench.tell(created());
  const attempted = (n: number) => async () =>
    (await bench.rows())[0]?.attempts === n && !(await bench.rows())[0]?.attemptOpen;
  for (const attempts of [1, 2, 3]) {
    await until(attempted(attempts));
    const pause = ((await bench.rows())[0]?.nextAttemptAt ?? 0) - bench.world.clock.now();
    if (attempts === 2) expect(pause).toBe(120_000);
    else expect(pause).toBeLessThan(20_000);
    expect((await bench.rows())[0]?.error).toMatch(/^the receiver answered (500|429|503)$/);
    await bench.until(() => bench.world.pendingDelays().length > 0);
    await bench.world.advance(pause);
  }
  await bench.until(all("sent"));
  expect(new Set(receiver.told.map(({ id, text }) => `${id} ${text}`)).size).toBe(1);
  expect(receiver.told).toHaveLength(4);
});

test("a refused event does not delay later ones, and an operator can requeue or dismiss it", async () => {
  let status = 302;
  const receiver = await startReceiver((_, response) => {
    response.writeHead(status, { location: "http://127.0.0.1:1/elsewhere" }).end();
  });
  const bench = await open([hookTo(receiver.url)]);
  await bench.start();
  await bench.tell(created());
  await bench.until(all("failed refused"));
  expect((await bench.rows())[0]?.error).toBe("the receiver answered 302; redirects are not followed");
  status = 410;
  await bench.tell(ended());
  await bench.until((states) => states.length === 2 && all("failed refused")(states));
  status = 204;
  const [second, first] = await bench.rows();
  await bench.commit((unit) => dismissDelivery(unit.tx, second?.id ?? "", unit.now));
  await bench.retry(second?.id ?? "");
  await bench.retry(first?.id ?? "");
  await bench.until((states) => states.includes("sent"));
  const ids = receiver.told.map(({ id }) => id);
  expect(ids).toEqual([first?.id, second?.id, first?.id]);
});

test("I5: an attempt that a crash interrupted is repeated with the same id, but one that succeeded is not", async () => {
  const receiver = await startReceiver();
  const bench = await open([hookTo(receiver.url)]);
  await bench.tell(created(), ended());
  const [late, first] = await bench.rows();
  // Simulates a crash during the request.
  await bench.commit((unit) => beginAttempt(unit.tx, { id: first?.id ?? "", partsSent: 0 }, "dead"));
  await bench.restart();
  await bench.until(all("sent"));
  expect(receiver.told.map(({ id }) => id)).toEqual([first?.id, late?.id]);
  await bench.restart();
  await bench.until(all("sent"));
  expect(receiver.told).toHaveLength(2);
});

test("if a receiver never answers, the attempt ends at a deadline and is retried later, and other receivers are not delayed", async () => {
  const held: ServerResponse[] = [];
  const silent = await startReceiver((_, response) => void held.push(response));
  const good = await startReceiver();
  const bench = await open([hookTo(silent.url, { name: "silent" }), hookTo(good.url, { name: "good" })]);
  await bench.start();
  await bench.tell(created());
  await good.next(() => true);
  await silent.next(() => true);
  await bench.until((states) => states.includes("sent"));
  await bench.world.advance(10_000);
  await bench.until((states) => states.includes("pending"));
  const failed = await until(async () =>
    (await bench.rows()).find(({ route, error }) => route.to === "silent" && error !== undefined),
  );
  expect(failed).toMatchObject({
    state: "pending",
    error: "the receiver gave no answer within 10 s",
    attempts: 1,
  });
});

test("only the start of an endless response is read, and its status counts", async () => {
  let sent = 0;
  const receiver = await startReceiver((_, response) => {
    response.writeHead(200);
    const more = (): void => {
      while (!response.destroyed && sent < 500_000_000) {
        sent += 65_536;
        if (!response.write(Buffer.alloc(65_536))) {
          response.once("drain", more);
          return;
        }
      }
    };
    more();
  });
  const bench = await open([hookTo(receiver.url)]);
  await bench.start();
  await bench.tell(created());
  await bench.until(all("sent"));
  expect(sent).toBeLessThan(50_000_000);
});

test("an unreachable receiver is retried, and the row contains neither its address nor the secret", async () => {
  const receiver = await startReceiver();
  await receiver.close();
  const bench = await open([hookTo(`${receiver.url}?key=hush-hush`)]);
  await bench.start();
  await bench.tell(created());
  const failed = await until(async () => (await bench.rows()).find(({ error }) => error !== undefined));
  expect(failed).toMatchObject({
    state: "pending",
    error: "the receiver could not be reached (ECONNREFUSED)",
  });
  const stored = JSON.stringify(await bench.rows());
  expect(stored).not.toContain("hush");
  expect(stored).not.toContain(SECRET);
});

test("hooks report a delivered announcement and a failed text, but not deliveries of hook events", async () => {
  const receiver = await startReceiver((told, response) => {
    response.writeHead(told.type === "delivery.failed" ? 400 : 204).end();
  });
  const bench = await open([hookTo(receiver.url)]);
  await bench.start();
  const pigeon: Channel = {
    id: "pigeon",
    deduplicates: false,
    deliver: async ({ text }) =>
      text === "fine" ? { kind: "sent" } : { kind: "refused", error: "no such roof, password=hush12345678" },
  };
  const { store, commit, world } = bench;
  const channels = new Map([["pigeon", pigeon]]);
  const worker = openOutbox({ db: store.db, commit, channels, world, owner: "this", of: "texts" });
  await worker.start();
  cleanup(() => worker.stop());
  const row = {
    sessionKey: KEY,
    route: { channel: "pigeon", to: "roof" },
    state: "pending",
    createdAt: 1,
  } as const;
  await commit(async (unit) => {
    await insertDelivery(unit.tx, { ...row, id: "a", kind: "announce", text: "fine", runId: "run-1" });
    await insertDelivery(unit.tx, { ...row, id: "b", kind: "send", text: "fine" });
    await insertDelivery(unit.tx, { ...row, id: "c", kind: "send", text: "lost" });
  });
  worker.look();
  await bench.until((states) => states.length === 5 && !states.includes("pending"));
  expect(receiver.told.map(({ type, body }) => [type, body.data])).toEqual([
    [
      "announcement.delivered",
      {
        sessionKey: KEY,
        agentId: "main",
        deliveryId: "a",
        kind: "announce",
        channel: "pigeon",
        to: "roof",
        runId: "run-1",
      },
    ],
    [
      "delivery.failed",
      {
        ...{ sessionKey: KEY, agentId: "main", deliveryId: "c", kind: "send", channel: "pigeon", to: "roof" },
        ...{ code: "refused", error: "no such roof, password=[redacted]" },
      },
    ],
  ]);
});

test("an unreachable receiver's queue is limited: one failed row counts the dropped events and can be sent", async () => {
  const receiver = await startReceiver();
  const bench = await open([hookTo(receiver.url)], { pendingMax: 20 });
  await bench.tell(...Array.from({ length: 20 }, () => created()));
  await bench.tell(created(), created());
  await bench.tell(created());
  const failed = await listDeliveries(bench.store.db, { state: "failed", limit: 10 });
  expect(failed.rows).toHaveLength(1);
  expect(failed.rows[0]?.code).toBe("backlog_full");
  expect(failed.rows[0]?.error).toContain("20 events wait for this hook; 3 more since");
  await bench.start();
  await bench.until((states) => states.filter((state) => state === "sent").length === 20);
  await bench.retry(failed.rows[0]?.id ?? "");
  const lost = await receiver.next(({ type }) => type === "events.lost");
  expect(lost.body.data).toEqual({ events: 3, since: expect.any(String) });
});

test("every dropped event is counted, for each hook and in the store", async () => {
  const receiver = await startReceiver();
  const dropped: string[] = [];
  const bench = await open([hookTo(receiver.url)], {
    pendingMax: 3,
    drop: (hook) => dropped.push(hook),
  });
  await bench.tell(created(), created());
  await bench.tell(created(), created(), created());
  await Promise.all(Array.from({ length: 10 }, () => bench.tell(created())));
  expect(dropped).toEqual(Array.from({ length: 12 }, () => "tests"));
  expect(await countDropped(bench.store.db)).toBe(12);
  await bench.start();
  await bench.until((states) => states.filter((state) => state === "sent").length === 3);
  await bench.world.advance(1_000);
  await bench.tell(created());
  expect(dropped).toHaveLength(12);
});

test("a hook gets events of different sessions concurrently, and events of one session in order", async () => {
  const held: ServerResponse[] = [];
  const keyOf = (told: Told): string => String(told.body.data.sessionKey);
  const receiver = await startReceiver((told, response) => {
    if (keyOf(told).endsWith("slow")) held.push(response);
    else response.writeHead(204).end();
  });
  const bench = await open([hookTo(receiver.url)]);
  const slow = "agent:main:chat:slow";
  await bench.start();
  await bench.tell(created(slow), { kind: "session", sessionKey: slow, change: "reset" });
  await receiver.next((told) => keyOf(told) === slow);
  await bench.tell(...Array.from({ length: 40 }, (_, at) => created(`agent:main:chat:s${at}`)));
  await bench.until((states) => states.filter((state) => state === "sent").length === 40);
  expect(receiver.told.filter((told) => keyOf(told) === slow).map(({ type }) => type)).toEqual([
    "session.created",
  ]);
  held.pop()?.writeHead(204).end();
  await receiver.next(({ type }) => type === "session.reset");
  held.pop()?.writeHead(204).end();
  await bench.until(all("sent"));
});

test("a failing receiver gets one request at a time, after growing pauses", async () => {
  const pace = new HookPace();
  expect([pace.room("a", 0, 1), pace.room("a", 0, 100)]).toEqual([32, 1]);
  for (let at = 0; at < 32; at += 1) pace.noteBegin("a");
  expect(pace.room("a", 0, 1)).toBe(0);
  for (let at = 0; at < 32; at += 1) {
    pace.noteFailure("a", 10);
    pace.noteEnd("a");
  }
  // Failures of simultaneous requests count as one.
  expect(pace.pausedUntil("a")).toBe(1_010);
  expect([pace.room("a", 1_009, 1), pace.room("a", 1_010, 1)]).toEqual([0, 1]);
  pace.noteFailure("a", 1_010);
  expect(pace.pausedUntil("a")).toBe(3_010);
  pace.noteFailure("a", 3_010, 60_000);
  expect(pace.pausedUntil("a")).toBe(63_010);
  pace.noteSuccess("a");
  expect(pace.room("a", 3_020, 1)).toBe(32);
});

test("if another run has read a message, the hook reports that the message's own run ended, with the other run's id", async () => {
  const receiver = await startReceiver();
  const bench = await open([hookTo(receiver.url)]);
  await bench.start();
  const { startedAt: _, ...steered } = ended({ runId: "steered", text: "", takenBy: "run-1" }) as Extract<
    LiveEvent,
    { kind: "run_ended" }
  >;
  const { takenBy: _taken, ...appended } = { ...steered, runId: "appended" };
  await bench.tell(steered, appended);
  const told = await receiver.next(({ type }) => type === "run.ended");
  expect(told.body.data).toMatchObject({ runId: "steered", status: "ok", takenBy: "run-1" });
  await bench.until(all("sent"));
  expect(receiver.told).toHaveLength(1);
});

test("delivered events are deleted after a week, but failed events are kept", async () => {
  let status = 204;
  const receiver = await startReceiver((_, response) => void response.writeHead(status).end());
  const bench = await open([hookTo(receiver.url)]);
  await bench.start();
  await bench.tell(created());
  await bench.until(all("sent"));
  status = 400;
  await bench.tell(created());
  await bench.until((states) => states.includes("failed refused"));
  await bench.world.advance(8 * 24 * 3_600_000);
  await bench.commit((unit) => createOldRowsCleanup(settingsWith({}))(unit, "hooks"));
  expect(await bench.until(() => true)).toEqual(["failed refused"]);
});
