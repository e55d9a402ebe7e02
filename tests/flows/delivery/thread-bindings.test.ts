// Chats that are bound to a sub-agent: the session that gets their messages, the duration, and the notice at
// the end (BD1-BD4).

import { describe, expect, test } from "vitest";
import { setBindingLimits, unbind } from "../../../src/flows/delivery/bindings.ts";
import { deleteSession } from "../../../src/flows/session/lifecycle.ts";
import { insertSession } from "../../../src/store/queries/sessions/sessions.ts";
import { endOf, sessionRow, temporaryFolder } from "../../kit/engine/engine.ts";
import { fakeWorld } from "../../kit/world.ts";
import {
  childOf,
  MAIN,
  openThreads,
  places,
  ROOM,
  settingsOf,
  shown,
  spawned,
  threadRows,
  writes,
} from "../job/thread-app.ts";

const HOUR_MS = 3_600_000;

describe("a bound chat", () => {
  test("BD1: messages in a bound chat go to the sub-agent, and messages elsewhere go to the session of their chat", async () => {
    const { app, own } = await openThreads();
    await spawned(app, "count the beans");
    const child = await childOf(app);
    const [thread = ROOM] = await places(app);
    expect(await writes(app, own, thread, "and the peas")).toBe(child.key);
    expect(await writes(app, own, { ...thread, threadId: "another" }, "hello")).toBe(MAIN);
    await app.quiet();
    expect((await app.texts(child.key)).slice(-2)).toEqual([
      "user: and the peas",
      "assistant: did and the peas",
    ]);
  });

  test("BD2, BD3: if a binding gets no message for idleHours, it ends, and its chat is notified once", async () => {
    const world = fakeWorld();
    const { app, own } = await openThreads({ world });
    await spawned(app, "count the beans");
    const [thread = ROOM] = await places(app);
    await world.advance(23 * HOUR_MS);
    await writes(app, own, thread, "still there?");
    await world.advance(23 * HOUR_MS);
    expect(await places(app)).toEqual([thread]);
    await world.advance(HOUR_MS);
    await expect.poll(() => places(app)).toEqual([]);
    const gone = () => shown(app).filter((text) => text.includes("no longer bound"));
    await expect
      .poll(gone)
      .toEqual([
        expect.stringMatching(/^room\/thread-1: This thread is no longer bound to .*: no message came/),
      ]);
    expect(await writes(app, own, thread, "hello?")).toBe(MAIN);
    expect(gone()).toHaveLength(1);
  });

  test("BD2: if a binding expired while the gateway was down, it ends before the next message is processed", async () => {
    const dir = temporaryFolder();
    const world = fakeWorld();
    const first = await openThreads({ world, dir, dies: true });
    await spawned(first.app, "count the beans");
    const [thread = ROOM] = await places(first.app);
    await first.app.stop(0);
    await world.advance(30 * HOUR_MS);
    const { app, own } = await openThreads({ world, dir });
    expect(await writes(app, own, thread, "hello?")).toBe(MAIN);
    await expect.poll(() => shown(app).filter((text) => text.includes("no longer"))).toHaveLength(1);
  });

  test("a binding ends after maxAgeHours, even if messages arrive", async () => {
    const world = fakeWorld();
    const { app, own } = await openThreads({ world, settings: settingsOf({ maxAgeHours: 2 }) });
    await spawned(app, "count the beans");
    const [thread = ROOM] = await places(app);
    await world.advance(HOUR_MS);
    await writes(app, own, thread, "one");
    await world.advance(HOUR_MS);
    await expect.poll(() => places(app)).toEqual([]);
    await expect.poll(() => shown(app).join()).toContain("it was for a limited time");
  });

  test("the time limits of a binding can be made longer, shorter or unlimited", async () => {
    const world = fakeWorld();
    const { app } = await openThreads({ world });
    await spawned(app, "count the beans");
    const [thread = ROOM] = await places(app);
    const limit = (limits: object, route = thread) =>
      app.engine.commit((unit) => setBindingLimits(unit, route, limits));
    expect(await limit({ idleHours: -1 })).toMatchObject({ ok: false, code: "invalid_argument" });
    expect(await limit({ maxAgeHours: Number.NaN })).toMatchObject({ ok: false });
    expect(await limit({ idleHours: 1 }, ROOM)).toMatchObject({ ok: false, error: /not bound/ });
    expect(await limit({ idleHours: 0 })).toMatchObject({ value: { idleMs: 0, maxAgeMs: 0 } });
    await world.advance(1_000 * HOUR_MS);
    expect(await places(app)).toEqual([thread]);
    expect(await limit({ idleHours: 1_001 })).toMatchObject({ ok: true });
    await world.timerWithin(HOUR_MS);
    await world.advance(HOUR_MS);
    await expect.poll(() => places(app)).toEqual([]);
  });

  test("BD3: if a person's command ends a binding, the end is not announced in the chat of the command", async () => {
    const { app, parts } = await openThreads();
    await spawned(app, "count the beans");
    const [thread = ROOM] = await places(app);
    const end = (tell: boolean) =>
      app.engine.commit((unit) => unbind(parts, unit, { what: thread, why: "asked", tell }));
    expect(await end(false)).toHaveLength(1);
    expect(await end(true)).toEqual([]);
    await app.quiet();
    expect(shown(app).filter((text) => text.includes("no longer"))).toEqual([]);
  });

  test("if bindings are disabled, a binding ends with the next message", async () => {
    const dir = temporaryFolder();
    const first = await openThreads({ dir, dies: true });
    await spawned(first.app, "count the beans");
    const [thread = ROOM] = await places(first.app);
    await first.app.stop(0);
    const { app, own } = await openThreads({ dir, settings: settingsOf({ enabled: false }) });
    expect(await writes(app, own, thread, "hello?")).toBe(MAIN);
    expect(await places(app)).toEqual([]);
  });
});

describe("the session of a bound chat", () => {
  test("BD4: with mode `session` a session has no archive date, and is archived when its binding ends", async () => {
    const world = fakeWorld();
    const { app, parts } = await openThreads({ world, settings: settingsOf({ idleHours: 0 }) });
    await spawned(app, "count the beans");
    await world.advance(1_000 * HOUR_MS);
    const { key } = await childOf(app);
    expect((await app.session(key))?.archivedAt).toBeUndefined();
    await app.engine.commit((unit) =>
      unbind(parts, unit, { what: { sessionKey: key }, why: "asked", tell: true }),
    );
    await expect.poll(async () => (await app.session(key))?.archivedAt).toBeDefined();
    // Later texts of this session are not sent to the chat.
    expect((await app.session(key))?.lastRoute).toBeUndefined();
  });

  test("with mode `run`, archiving at the stored date ends the binding and notifies the thread", async () => {
    const world = fakeWorld();
    const { app, own } = await openThreads({ world, args: { mode: "run" } });
    await spawned(app, "count the beans");
    const [thread = ROOM] = await places(app);
    await world.advance(HOUR_MS);
    await expect.poll(() => places(app)).toEqual([]);
    await expect.poll(() => shown(app).join()).toContain("that session was archived");
    expect((await childOf(app)).archivedAt).toBeDefined();
    expect(await writes(app, own, thread, "hello?")).toBe(MAIN);
  });

  test("deleting the session or its requester ends the binding", async () => {
    const chat = "agent:main:chat:one";
    const { app, own } = await openThreads({
      play: async (turn) => {
        if (turn.session.spawnedBy !== undefined) return "done";
        return JSON.stringify(await turn.tool("sessions_spawn", { task: "work", thread: true }));
      },
    });
    await app.store.transaction((tx) => insertSession(tx, sessionRow(chat)));
    const facts = { engine: app.engine, settings: own };
    for (const from of [MAIN, chat]) {
      const run = await app.tell(from, "go", undefined, ROOM);
      await endOf(app.engine, run.runId);
    }
    await app.quiet();
    const [one] = await app.children(MAIN);
    const [two] = await app.children(chat);
    const requester = await app.session(chat);
    if (one === undefined || two === undefined || requester === undefined) throw new Error("no child");
    await deleteSession({ ...facts, dropTranscript: async () => {} }, one);
    expect(await places(app)).toHaveLength(1);
    await deleteSession({ ...facts, dropTranscript: async () => {} }, requester);
    expect(await places(app)).toEqual([]);
    expect((await threadRows(app)).slice(-2).map(({ text }) => text)).toEqual([
      expect.stringContaining("that session was deleted"),
      expect.stringContaining("the session that it worked for was deleted"),
    ]);
    // BD4: the session is archived because its requester no longer exists.
    await expect.poll(async () => (await app.session(two.key))?.archivedAt).toBeDefined();
  });
});
