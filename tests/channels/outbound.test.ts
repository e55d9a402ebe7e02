import type { KyselyPlugin } from "kysely";
import { expect } from "vitest";
import type { Channel, DeliveryOutcome } from "../../src/channels/channel.ts";
import { optional } from "../../src/core/optional.ts";
import { createBus } from "../../src/engine/bus.ts";
import { type Commit, createCommit } from "../../src/engine/unit.ts";
import {
  insertDelivery,
  listDeliveries,
  requeueDelivery,
} from "../../src/store/queries/channels/deliveries.ts";
import { insertSentFile } from "../../src/store/queries/channels/sent-files.ts";
import type { Db, Store } from "../../src/store/sql.ts";
import { both, share, test } from "../kit/deep.ts";
import { cleanup, openStore, openStoreOn, temporaryFolder } from "../kit/engine/engine.ts";
import { type Outbox, openOutbox } from "../kit/engine/outbox.ts";
import { until } from "../kit/until.ts";
import { type FakeWorld, fakeWorld } from "../kit/world.ts";

const HOUR_MS = 3_600_000;

interface Bench {
  readonly world: FakeWorld;
  readonly attempts: string[];
  readonly channels: Map<string, Channel>;
  queue(id: string, to?: string, channel?: string, text?: string, accountId?: string): Promise<void>;
  /** Queues a file with this content. Without content, the file was deleted. */
  queueFile(id: string, content?: string): Promise<void>;
  states(): Promise<Record<string, string>>;
  /** Returns for each delivery whether an attempt is open. */
  open(): Promise<readonly object[]>;
  worker: Outbox;
  /** Completes all work that is due. */
  settle(): Promise<void>;
  retry(id: string): Promise<void>;
}

async function queueFile(commit: Commit, worker: Outbox, id: string, content?: string): Promise<void> {
  await commit(async (unit) => {
    const bytes = Buffer.from(content ?? "");
    const facts = {
      sessionId: "s",
      name: id,
      mimeType: "text/plain",
      bytes: bytes.length,
      caption: "caption",
    };
    if (content !== undefined) {
      const file = { id, ...facts, content: bytes.toString("base64"), createdAt: unit.now };
      await insertSentFile(unit.tx, file);
    }
    await insertDelivery(unit.tx, {
      ...{ id, sessionKey: "agent:main:main", kind: "send", route: { channel: "pigeon", to: "roof" } },
      ...{ text: "file instead", state: "pending", createdAt: unit.now, fileId: id },
    });
    unit.after(() => worker.look());
  });
}

/** The lease of the process, and a pause before it gets the content of a file. */
interface Lease {
  holds: boolean;
  read(): Promise<void>;
}

/** Delays answers of the database that contain the content of a file. */
function slowly(lease: Lease): KyselyPlugin {
  return {
    transformQuery: ({ node }) => node,
    async transformResult({ result }) {
      if (result.rows.some((row) => "content" in row)) await lease.read();
      return result;
    },
  };
}

const leased = (db: Db, lease: Lease) => ({
  db: db.withPlugin(slowly(lease)),
  watchLease: () => () => lease.holds,
});

/** Opens an outbox with one fake channel. `says` returns the outcome of each attempt. */
async function open(
  says: (
    id: string,
    attempt: number,
    text: string,
    file?: string,
  ) => DeliveryOutcome | Promise<DeliveryOutcome>,
  textMaxChars?: number,
  lease?: Lease,
  isConfigured = () => false,
  opened?: Store,
): Promise<Bench> {
  const world = fakeWorld();
  const store = opened ?? (await openStore(temporaryFolder(), world));
  const commit = createCommit(store, world, createBus(world.log));
  const attempts: string[] = [];
  const counts = new Map<string, number>();
  const channel: Channel = {
    ...{ id: "pigeon", deduplicates: false, ...optional({ textMaxChars }) },
    async deliver({ deliveryId, text, file }) {
      attempts.push(deliveryId);
      counts.set(deliveryId, (counts.get(deliveryId) ?? 0) + 1);
      return says(deliveryId, counts.get(deliveryId) ?? 0, text, file?.data.toString());
    },
  };
  const channels = new Map([["pigeon", channel]]);
  const worker = openOutbox({
    ...(lease === undefined ? { db: store.db } : leased(store.db, lease)),
    ...{ commit, channels, world, owner: "this-process", of: "texts", isConfigured },
  });
  await worker.start();
  cleanup(() => worker.stop());
  const bench: Bench = {
    world,
    attempts,
    channels,
    worker,
    async queue(id, to = "roof", name = "pigeon", text = id, accountId) {
      await commit(async (unit) => {
        await insertDelivery(unit.tx, {
          id,
          sessionKey: "agent:main:main",
          kind: "send",
          route: { channel: name, to, ...optional({ accountId }) },
          text,
          state: "pending",
          createdAt: unit.now,
        });
        unit.after(() => worker.look());
      });
    },
    queueFile: (id, content) => queueFile(commit, worker, id, content),
    async states() {
      const { rows } = await listDeliveries(store.db, { limit: 100 });
      return Object.fromEntries(
        rows.map((row) => [row.id, row.code === undefined ? row.state : `${row.state} ${row.code}`]),
      );
    },
    open: () => store.db.selectFrom("deliveries").select(["id", "state", "attempt_open"]).execute(),
    async settle() {
      for (let turn = 0; turn < 20; turn += 1) await world.advance(0);
    },
    async retry(id) {
      await commit((unit) => requeueDelivery(unit.tx, id, unit.now));
      worker.look();
    },
  };
  return bench;
}

test("a file is sent with its caption; if it is refused or was deleted, people get the text that names it", async () => {
  const tries: (string | undefined)[][] = [];
  const bench = await open((id, attempt, text, file) => {
    tries.push([id, text, file]);
    if (id === "busy" && attempt === 1) return { kind: "retry", error: "busy", afterMs: 5 };
    return id === "refused" && file !== undefined
      ? { kind: "refused", error: "too large" }
      : { kind: "sent" };
  }, 10);
  for (const id of ["good", "refused", "busy"]) await bench.queueFile(id, `content of ${id}`);
  await bench.queueFile("deleted");
  await bench.settle();
  await bench.world.advance(5);
  await bench.settle();
  expect(tries).toEqual([
    ["good", "caption", "content of good"],
    ["refused", "caption", "content of refused"],
    ["refused", "file instead", undefined],
    ["busy", "caption", "content of busy"],
    ["busy", "caption", "content of busy"],
    ["deleted", "file instead", undefined],
  ]);
  expect(await bench.states()).toEqual({ good: "sent", refused: "sent", busy: "sent", deleted: "sent" });
});

test("I5: a delivery counts as sent only after the channel's acknowledgement", async () => {
  const gate = Promise.withResolvers<DeliveryOutcome>();
  const bench = await open(() => gate.promise);
  await bench.queue("one");
  await bench.settle();
  expect(await bench.states()).toEqual({ one: "pending" });
  gate.resolve({ kind: "sent" });
  await bench.settle();
  expect(await bench.states()).toEqual({ one: "sent" });
});

test("a delivery that certainly failed is retried for a day, after growing pauses of at most five minutes", async () => {
  const bench = await open(() => ({ kind: "retry", error: "the loft is closed" }));
  await bench.queue("one");
  await bench.settle();
  const pauses: number[] = [];
  while ((await bench.states()).one === "pending") {
    const [pause] = bench.world.pendingDelays();
    if (pause === undefined) throw new Error("nothing is planned");
    pauses.push(pause);
    await bench.world.advance(pause);
    await bench.settle();
  }
  expect(await bench.states()).toEqual({ one: "failed gave_up" });
  expect(pauses[0]).toBeGreaterThanOrEqual(750);
  expect(pauses[0]).toBeLessThanOrEqual(2_500);
  expect(Math.max(...pauses)).toBeLessThanOrEqual(5 * 60_000 * 1.25);
  const whole = pauses.reduce((sum, pause) => sum + pause, 0);
  expect(whole).toBeGreaterThanOrEqual(24 * HOUR_MS);
  expect(whole).toBeLessThan(25 * HOUR_MS);
});

test("deliveries of one route are sent in order: a retry delays only later deliveries of the same route", async () => {
  const bench = await open((id, attempt) =>
    id === "first" && attempt === 1 ? { kind: "retry", error: "rain" } : { kind: "sent" },
  );
  await bench.queue("first");
  await bench.queue("second");
  await bench.queue("elsewhere", "tower");
  await bench.settle();
  expect(await bench.states()).toEqual({ first: "pending", second: "pending", elsewhere: "sent" });
  await bench.world.advance(3_000);
  await bench.settle();
  expect(bench.attempts).toEqual(["first", "elsewhere", "first", "second"]);
});

test("a permanent refusal is not retried and does not block the route, and an operator can requeue the delivery", async () => {
  let open_ = false;
  const bench = await open((id) =>
    id === "bad" && !open_ ? { kind: "refused", error: "no such roof" } : { kind: "sent" },
  );
  await bench.queue("bad");
  await bench.queue("good");
  await bench.settle();
  expect(await bench.states()).toEqual({ bad: "failed refused", good: "sent" });
  open_ = true;
  await bench.retry("bad");
  await bench.settle();
  expect(await bench.states()).toEqual({ bad: "sent", good: "sent" });
});

test("a text for a channel that is not connected fails, and the error says why", async () => {
  const bench = await open(() => ({ kind: "sent" }));
  await bench.queue("lost", "nowhere", "smoke");
  await bench.settle();
  expect(await bench.states()).toEqual({ lost: "failed refused" });
});

test("OB1: a text waits while its channel is configured but not open, and is sent once it is", async () => {
  const bench = await open(
    () => ({ kind: "sent" }),
    undefined,
    undefined,
    () => true,
  );
  const pigeon = bench.channels.get("pigeon") as Channel;
  bench.channels.delete("pigeon");
  await bench.queue("one");
  await bench.settle();
  expect(await bench.states()).toEqual({ one: "pending" });
  bench.channels.set("pigeon", pigeon);
  await bench.world.advance(3_000);
  await bench.settle();
  expect(await bench.states()).toEqual({ one: "sent" });
});

test("OB1: a text waits if its channel has no such account yet, and fails if the settings have none", async () => {
  let isConfigured = true;
  const absent = (): DeliveryOutcome => ({ kind: "absent", error: "no such account" });
  const bench = await open(absent, undefined, undefined, () => isConfigured);
  await bench.queue("one");
  await bench.settle();
  expect(await bench.states()).toEqual({ one: "pending" });
  isConfigured = false;
  await bench.world.advance(3_000);
  await bench.settle();
  expect(await bench.states()).toEqual({ one: "failed refused" });
});

test("OB1: in a cluster, a text for an absent account fails only when all gateways have the same settings", async () => {
  const store = await openStoreOn("postgres", temporaryFolder());
  const process = { host: "", version: "", started_at: 1, beat_at: 1 };
  const rows = ["old", "new"].map((one) => ({ ...process, process_id: one, config_revision: one }));
  await store.transaction((tx) => tx.insertInto("processes").values(rows).execute());
  let tries = 0;
  const absent = (): DeliveryOutcome => {
    tries += 1;
    return { kind: "absent", error: "no such account" };
  };
  const bench = await open(absent, undefined, undefined, () => false, store);
  const tryAgain = async (): Promise<string | undefined> => {
    const before = tries;
    await until(async () => {
      await bench.world.advance(60_000);
      const open = await bench.open();
      const isIdle = open.every((row) => "attempt_open" in row && row.attempt_open === 0);
      // An attempt that began in the turn before may have ended it.
      return isIdle && (tries > before || (await bench.states()).one !== "pending");
    });
    return (await bench.states()).one;
  };
  await bench.queue("one");
  expect([await tryAgain(), await tryAgain(), await tryAgain()]).toEqual(["pending", "pending", "pending"]);
  await store.transaction((tx) => tx.deleteFrom("processes").where("process_id", "=", "old").execute());
  // An attempt that began before is still told to wait.
  await until(async () => (await tryAgain()) !== "pending");
  expect(await bench.states()).toEqual({ one: "failed refused" });
});

test("the places for texts are those of an account: one that never answers delays no other", async () => {
  const gate = Promise.withResolvers<DeliveryOutcome>();
  const bench = await open((id) => (id.startsWith("hangs") ? gate.promise : { kind: "sent" }));
  for (let at = 0; at < 20; at += 1) await bench.queue(`hangs ${at}`, `chat ${at}`, "pigeon", "x", "first");
  await bench.queue("good", "roof", "pigeon", "x", "second");
  await bench.settle();
  expect(bench.attempts.filter((id) => id.startsWith("hangs"))).toHaveLength(16);
  expect((await bench.states()).good).toBe("sent");
  gate.resolve({ kind: "sent" });
  await bench.settle();
  expect(new Set(Object.values(await bench.states()))).toEqual(new Set(["sent"]));
});

test("a retry by an operator starts the day of attempts again", async () => {
  const bench = await open((_, attempt) =>
    attempt < 4 ? { kind: "retry", error: "rain", afterMs: 25 * HOUR_MS } : { kind: "sent" },
  );
  await bench.queue("one");
  await bench.settle();
  await bench.world.advance(25 * HOUR_MS);
  await bench.settle();
  expect(await bench.states()).toEqual({ one: "failed gave_up" });
  await bench.retry("one");
  await bench.settle();
  expect(await bench.states()).toEqual({ one: "pending" });
});

test("a pause that a channel asks for is respected", async () => {
  const bench = await open((_, attempt) =>
    attempt === 1 ? { kind: "retry", error: "slow down", afterMs: 42_000 } : { kind: "sent" },
  );
  await bench.queue("one");
  await bench.settle();
  await bench.world.advance(41_000);
  await bench.settle();
  expect(bench.attempts).toHaveLength(1);
  await bench.world.advance(1_000);
  await bench.settle();
  expect(await bench.states()).toEqual({ one: "sent" });
});

test("I5: parts of a long text are acknowledged separately, and an acknowledged part is not sent again", async () => {
  const words = Array.from({ length: 40 }, (_, at) => `word${at}`).join(" ");
  const arrived: string[] = [];
  const bench = await open((_, attempt, text) => {
    if (attempt === 3) return { kind: "retry", error: "rain" };
    arrived.push(text);
    return { kind: "sent" };
  }, 64);
  await bench.queue("long", "roof", "pigeon", words);
  await bench.settle();
  expect(arrived).toHaveLength(2);
  expect(await bench.states()).toEqual({ long: "pending" });
  await bench.world.advance(3_000);
  await bench.settle();
  expect(await bench.states()).toEqual({ long: "sent" });
  expect(arrived.join(" ").split(/\s+/)).toEqual(words.split(" "));
});

test("I5: if a channel throws, the text may have been sent, so the delivery is not retried", async () => {
  const bench = await open(() => {
    throw new Error("the pigeon is gone");
  });
  await bench.queue("one");
  await bench.settle();
  expect(await bench.states()).toEqual({ one: "failed ambiguous" });
  expect(bench.attempts).toEqual(["one"]);
});

test("a stop waits for the current attempt, and starts no further one", async () => {
  for (let steps = 0; steps < 100; steps += 2) {
    const bench = await open(() => ({ kind: "sent" }));
    const queued = bench.queue("one");
    for (let at = 0; at < steps; at += 1) await null;
    await bench.worker.stop();
    const before = bench.attempts.length;
    await queued;
    await bench.settle();
    expect(bench.attempts.length, `after ${steps} steps`).toBe(before);
    expect(await bench.states()).toEqual({ one: before === 0 ? "pending" : "sent" });
  }
});

test("if the lease ends while the content of a file is read, the file is not sent before it holds again", async () => {
  const asked = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<void>();
  const read = (): Promise<void> => {
    asked.resolve();
    return answer.promise;
  };
  const lease = { holds: true, read };
  const bench = await open(() => ({ kind: "sent" }), undefined, lease);
  await bench.queueFile("picture", "content");
  await asked.promise;
  lease.holds = false;
  answer.resolve();
  await bench.world.advance(5_000);
  expect(bench.attempts).toEqual([]);
  lease.holds = true;
  await bench.world.advance(2_000);
  await bench.settle();
  expect(bench.attempts).toEqual(["picture"]);
  expect(await bench.states()).toEqual({ picture: "sent" });
});

both.each(share(["sqlite"], ["postgres"]))(
  "a stop waits for the current read of the outbox, on %s",
  async (on) => {
    const world = fakeWorld();
    const store = await openStoreOn(on, temporaryFolder(), world);
    const commit = createCommit(store, world, createBus(world.log));
    const worker = openOutbox({
      db: store.db,
      commit,
      channels: new Map(),
      world,
      owner: "this-process",
      of: "texts",
    });
    await worker.start();
    await worker.stop();
    await store.close();
    for (let turn = 0; turn < 20; turn += 1) await world.advance(0);
    expect(world.logged.filter(({ level }) => level !== "debug")).toEqual([]);
  },
);
