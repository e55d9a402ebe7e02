// Hints that processes send to each other through the database, and the database's clock, which they share.

import { afterEach, describe, expect, test } from "vitest";
import { DatabaseClock } from "../../../src/store/postgres/clock.ts";
import type { SharedStore } from "../../../src/store/sql.ts";
import { TRANSPORT_MESSAGE_MAX_BYTES } from "../../../src/store/sql.ts";
import { openPostgresStore, type PostgresStore, runSql } from "../../kit/store/postgres.ts";
import { fakeWorld } from "../../kit/world.ts";
import { openTcpProxy } from "./tcp-proxy.ts";

const undo: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

async function open(options: Parameters<typeof openPostgresStore>[0] = {}) {
  const opened: PostgresStore = await openPostgresStore(options);
  undo.push(opened.dispose);
  const { shared } = opened.store;
  if (shared === undefined) throw new Error("a shared store was expected");
  return { ...opened, shared };
}

/** Listens to hints, and resolves after a given number of hints and gaps. */
async function ear(shared: SharedStore) {
  const heard: string[] = [];
  let gaps = 0;
  let look = (): void => {};
  const stop = await shared.listen(
    (text) => {
      heard.push(text);
      look();
    },
    () => {
      gaps += 1;
      look();
    },
  );
  undo.push(stop);
  const until = (reached: () => boolean) =>
    new Promise<void>((resolve) => {
      look = () => reached() && resolve();
      look();
    });
  return {
    heard,
    stop,
    gaps: () => gaps,
    texts: (count: number) => until(() => heard.length >= count),
    gap: (count: number) => until(() => gaps >= count),
  };
}

describe("the transport", () => {
  test("each hint, even an equal one, is delivered once and in order to all processes except the sender", async () => {
    const a = await open();
    const b = await open({ url: a.url });
    const [atA, atB] = [await ear(a.shared), await ear(b.shared)];
    const texts = [
      "one",
      "two",
      "two",
      "",
      "a:b.c",
      "üñí\n'\"\\ {}",
      "x".repeat(TRANSPORT_MESSAGE_MAX_BYTES),
    ];
    await a.shared.notify(texts);
    await atB.texts(texts.length);
    expect(atB.heard).toEqual(texts);
    await b.shared.notify(["answer"]);
    await atA.texts(1);
    expect(atA.heard).toEqual(["answer"]);
  });

  test("no hint is delivered to another schema of the same database", async () => {
    const a = await open();
    const b = await open({ url: a.url });
    const stranger = await open();
    const [atB, atStranger] = [await ear(b.shared), await ear(stranger.shared)];
    await a.shared.notify(["private"]);
    await atB.texts(1);
    expect(atStranger.heard).toEqual([]);
  });

  test("a hint is rejected if it is too long for the transport", async () => {
    const { shared } = await open();
    await expect(shared.notify(["é".repeat(TRANSPORT_MESSAGE_MAX_BYTES)])).rejects.toThrow("too long");
  });

  test("if a listener loses its connection, it reconnects and reports the gap; a stopped listener does not", async () => {
    const a = await open();
    const b = await open({ url: a.url });
    const [kept, stopped] = [await ear(b.shared), await ear(b.shared)];
    await stopped.stop();
    const listening = `select pg_terminate_backend(pid) from pg_stat_activity where query like 'listen "parley:${a.schema}"'`;
    expect(await runSql(a.url, listening)).toHaveLength(1);
    await kept.gap(1);
    await a.shared.notify(["after"]);
    await kept.texts(1);
    expect(kept.heard).toEqual(["after"]);
    expect({ heard: stopped.heard, gaps: stopped.gaps() }).toEqual({ heard: [], gaps: 0 });
  });

  test("a listener whose connection is silent connects again and reports the gap; until then it is deaf", async () => {
    const world = fakeWorld({ clock: "real" });
    let passedMs = 0;
    const clock = { ...world.clock, monotonic: () => world.clock.monotonic() + passedMs };
    const a = await open();
    const { port } = new URL(a.url);
    const tap = await openTcpProxy(Number(port));
    undo.push(() => tap.close());
    const url = a.url.replace(`:${port}/`, `:${tap.port}/`);
    const b = await open({ url, world: { ...world, clock } });
    const silent = new Set<object>();
    let isSwallowing = false;
    tap.fromClient = (piece, connection) => {
      if (piece.includes(`listen "parley:`)) silent.add(connection);
      return piece;
    };
    tap.fromServer = (piece, connection) =>
      isSwallowing && silent.has(connection) ? Buffer.alloc(0) : piece;
    const atB = await ear(b.shared);
    await b.shared.syncClock();
    isSwallowing = true;
    await a.shared.notify(["swallowed"]);
    await b.shared.syncClock();
    passedMs += 1_000;
    await b.shared.syncClock();
    expect(world.logged).toEqual([]);
    passedMs += 5_000;
    await b.shared.syncClock();
    expect(world.logged[0]).toMatchObject({
      level: "warn",
      text: "messages of other processes do not arrive; connecting again",
    });
    expect(b.shared.isDeaf()).toBe(false);
    passedMs += 6_000;
    expect(b.shared.isDeaf()).toBe(true);
    isSwallowing = false;
    await atB.gap(1);
    await a.shared.notify(["after"]);
    await atB.texts(1);
    expect(atB.heard).toEqual(["after"]);
    expect(b.shared.isDeaf()).toBe(false);
  });

  test("if a listener throws an exception, it is logged, and the next hint is delivered", async () => {
    const world = fakeWorld({ clock: "real" });
    const a = await open({ world });
    const b = await open({ url: a.url });
    const heard = Promise.withResolvers<void>();
    const stop = await a.shared.listen(
      (text) => {
        if (text === "bad") throw new Error("no");
        heard.resolve();
      },
      () => {},
    );
    undo.push(stop);
    await b.shared.notify(["bad", "good"]);
    await heard.promise;
    expect(world.logged.map(({ level }) => level)).toEqual(["error"]);
  });

  test("if a hint cannot be sent, this is logged, and the sender gets an error, so that it can announce a gap", async () => {
    const world = fakeWorld({ clock: "real" });
    const { shared, store } = await open({ world });
    await store.close();
    await expect(shared.notify(["late"])).rejects.toThrow("the store is closed");
    expect(world.logged).toMatchObject([{ level: "warn", text: "messages to other processes were lost" }]);
  });
});

describe("the shared time", () => {
  test("the database's time is known in whole milliseconds without a query", async () => {
    const { shared, url, store } = await open();
    const [before] = await runSql(url, "select extract(epoch from clock_timestamp()) * 1000 as now");
    const now = shared.now();
    const [after] = await runSql(url, "select extract(epoch from clock_timestamp()) * 1000 as now");
    expect(Number.isInteger(now)).toBe(true);
    expect(now).toBeGreaterThan(Number(before?.now) - 100);
    expect(now).toBeLessThan(Number(after?.now) + 100);
    await shared.syncClock();
    await store.close();
    expect(shared.now()).toBeGreaterThanOrEqual(now);
    await expect(shared.syncClock()).rejects.toThrow();
  });

  /** Returns a clock of a fake database. The test sets each answer and the time that it takes. */
  function clockWith() {
    const world = fakeWorld();
    const next = { tookMs: 0, databaseMs: 0 };
    const clock = new DatabaseClock(world.clock, async (onSent) => {
      onSent();
      await world.advance(next.tookMs);
      return next.databaseMs;
    });
    const sync = async (tookMs: number, databaseMs: number) => {
      Object.assign(next, { tookMs, databaseMs });
      await clock.sync();
    };
    return { world, clock, sync };
  }

  test("the time is computed from the fastest answer of the last minute", async () => {
    const { world, clock, sync } = clockWith();
    await sync(10, 1_000_005);
    expect(clock.now()).toBe(1_000_010);
    await world.advance(90);
    // The request took 100 ms. The database read its clock near the beginning of that time.
    await sync(100, 1_000_101);
    expect(clock.now()).toBe(1_000_200);
    await world.advance(61_000);
    await sync(100, 1_061_320);
    expect(clock.now()).toBe(1_061_370);
  });

  test("the clock follows the database's when it is set back by two seconds or more, so all processes agree", async () => {
    const { world, clock, sync } = clockWith();
    await sync(2, 9_000_000);
    expect(clock.now()).toBe(9_000_001);
    await sync(2, 5_400_000);
    expect(clock.now()).toBe(5_400_001);
    await world.advance(7);
    expect(clock.now()).toBe(5_400_008);
  });

  test("a small step back stops the clock until the database's time has caught up", async () => {
    const { world, clock, sync } = clockWith();
    await sync(10, 1_000_005);
    expect(clock.now()).toBe(1_000_010);
    await sync(4, 1_000_002);
    await world.advance(3);
    expect(clock.now()).toBe(1_000_010);
    await world.advance(10);
    expect(clock.now()).toBe(1_000_017);
  });

  test("an answer that contradicts the fastest one replaces it, because a clock was set or another server answers", async () => {
    const { clock, sync } = clockWith();
    await sync(2, 1_000_000);
    await sync(30, 1_900_000);
    expect(clock.now()).toBe(1_900_015);
  });

  test("a failed clock request changes nothing", async () => {
    const world = fakeWorld();
    let answers = 0;
    const clock = new DatabaseClock(world.clock, () => {
      answers += 1;
      return answers === 1 ? Promise.resolve(5_000) : Promise.reject(new Error("away"));
    });
    await clock.sync();
    await expect(clock.sync()).rejects.toThrow("away");
    await world.advance(7);
    expect(clock.now()).toBe(5_007);
  });
});
