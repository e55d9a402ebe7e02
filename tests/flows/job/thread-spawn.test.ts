// Sub-agents with their own threads: the thread is created before the spawn is accepted, results are posted
// in it, and crashes happen at any commit.

import { describe, expect, test } from "vitest";
import { fail, ok } from "../../../src/core/shapes/errors.ts";
import type { Route } from "../../../src/core/shapes/session.ts";
import { bindingOf } from "../../../src/flows/delivery/bindings.ts";
import { insertBinding } from "../../../src/store/queries/channels/thread-bindings.ts";
import { updateSession } from "../../../src/store/queries/sessions/sessions.ts";
import { type CrashPoint, crashAtEach, diesAtWork, endOf, temporaryFolder } from "../../kit/engine/engine.ts";
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
} from "./thread-app.ts";

/** More commits than any spawn with a thread makes. */
const COMMITS_MAX = 60;

describe("sessions_spawn with a thread", () => {
  test("the channel creates a thread in the chat of the message, and the child is bound to the thread", async () => {
    const { app, opened } = await openThreads({ args: { label: "look-up" } });
    // Changes the session's route, as if another person had written in another chat.
    await app.store.transaction((tx) =>
      updateSession(tx, MAIN, { lastRoute: { channel: "webchat", to: MAIN } }),
    );
    const thread = { ...ROOM, threadId: "thread-1" };
    expect(await spawned(app, "count the beans")).toMatchObject({ status: "accepted", thread });
    expect(opened).toEqual([{ at: ROOM, title: "look-up" }]);
    const child = await childOf(app);
    expect(child).toMatchObject({ lastRoute: thread, spawn: { thread, route: ROOM, mode: "session" } });
    expect((await bindingOf(app.store.db, thread))?.session.key).toBe(child.key);
    expect(await app.call(MAIN, "session_status", { sessionKey: child.key })).toMatchObject({
      boundTo: [thread],
    });
  });

  test("the child's first result is posted in the thread once, and appended to the requester's transcript once", async () => {
    const { app } = await openThreads();
    await spawned(app, "count the beans");
    expect(shown(app)).toEqual(["room/thread-1: did count the beans"]);
    const told = (await app.texts(MAIN)).filter((text) => text.includes("did count the beans"));
    expect(told).toEqual([expect.stringMatching(/^user: Status: ok\nResult: did count the beans\n/)]);
    expect((await app.runs((await childOf(app)).key)).map((run) => run.flow?.step)).toEqual(["task"]);
  });

  test("without a label, the thread's title is the first line of the task, shortened and without markup", async () => {
    const { app, opened } = await openThreads();
    await spawned(app, `\u202e${"word ".repeat(40)}\nmore`);
    expect(opened[0]?.title.length).toBeLessThanOrEqual(90);
    expect(opened[0]?.title).toMatch(/word .*…$/);
    expect(opened[0]?.title).not.toMatch(/[\n\u202e]/u);
  });

  test("the send policy for threads applies to the child", async () => {
    const base = settingsOf();
    const rules = [{ match: { chatType: "thread" as const }, action: "deny" as const }];
    const session = { ...base.session, sendPolicy: { rules, default: "allow" as const } };
    const { app } = await openThreads({ settings: { ...base, session } });
    await spawned(app, "count the beans");
    expect(shown(app)).toEqual([]);
    expect(await threadRows(app)).toMatchObject([{ text: "did count the beans", state: "skipped" }]);
  });

  const refused: [string, Parameters<typeof openThreads>[0], Route, RegExp][] = [
    ["the settings forbid it", { settings: settingsOf({ enabled: false }) }, ROOM, /threadBindings\.enabled/],
    ["a web page has no threads", {}, { channel: "webchat", to: MAIN }, /webchat has none/],
    [
      "the platform refuses",
      { openThread: async () => fail("spawn_denied", "discord: missing permission") },
      ROOM,
      /missing permission/,
    ],
    [
      "the channel breaks",
      { openThread: () => Promise.reject(new Error("secret-token")) },
      ROOM,
      /discord could not create a thread/,
    ],
  ];
  test.each(refused)("a refused call leaves nothing behind: %s", async (_, options, route, words) => {
    const { app } = await openThreads(options);
    const answer = await spawned(app, "count the beans", route);
    expect(answer.status).not.toBe("accepted");
    expect(answer.error).toMatch(words);
    expect(JSON.stringify(answer)).not.toContain("secret-token");
    expect(await app.children(MAIN)).toEqual([]);
    expect(await places(app)).toEqual([]);
  });

  test("if a channel never answers, a spawn waits only for a limited time", async () => {
    const world = fakeWorld();
    const { app } = await openThreads({ world, openThread: () => new Promise(() => {}) });
    const run = await app.tell(MAIN, "count the beans", undefined, ROOM);
    await world.timerWithin(30_000);
    await world.advance(30_000);
    const ended = await endOf(app.engine, run.runId, 60_000);
    expect(ended.reply).toContain("discord did not create a thread within 30 s");
  });

  test("a chat that is already bound is not bound again", async () => {
    const { app } = await openThreads({ openThread: async (route) => ok({ route, kind: "bound" }) });
    expect(await spawned(app, "one")).toMatchObject({ status: "accepted", thread: ROOM });
    const child = await childOf(app);
    const answer = await spawned(app, "two");
    expect(answer).toMatchObject({ status: "forbidden", error: expect.stringContaining(child.key) });
    expect(await app.children(MAIN)).toHaveLength(1);
  });

  test("I9: the refusal to bind a bound chat names the bound session only to the session that spawned it", async () => {
    const { app } = await openThreads({ openThread: async (route) => ok({ route, kind: "bound" }) });
    await app.store.transaction(async (tx) => {
      const limits = { idleMs: 0, maxAgeMs: 0, createdAt: 1, usedAt: 1 };
      await insertBinding(tx, { route: ROOM, kind: "bound", sessionKey: "agent:research:main", ...limits });
    });
    const answer = await spawned(app, "two");
    expect(answer).toMatchObject({ status: "forbidden", error: expect.stringContaining("another session") });
    expect(JSON.stringify(answer)).not.toContain("research");
  });
});

describe.each(["before", "after"] as const)("a crash %s any commit of a spawn with a thread", (when) => {
  async function crashAt(point: CrashPoint): Promise<boolean> {
    const dir = temporaryFolder();
    const first = await openThreads({ dir, crash: point }).catch(() => undefined);
    // The process crashed during the start, before it could accept a request.
    if (first === undefined) return true;
    await first.app.tell(MAIN, "count the beans", "from-a-person", ROOM).catch(() => {});
    if (!(await diesAtWork(first.app))) return false;
    const { app } = await openThreads({ dir });
    await app.quiet();
    const [run] = await app.runs(MAIN);
    // A message without an answer may be lost.
    if (run !== undefined) {
      const children = await app.children(MAIN);
      expect(children, "I4: one call, one child").toHaveLength(1);
      const threads = await places(app);
      expect(threads).toEqual([children[0]?.spawn?.thread]);
      expect(await threadRows(app)).toEqual([
        { text: "did count the beans", state: "sent", route: threads[0] },
      ]);
      expect((await app.texts(MAIN)).filter((text) => text.includes("Result: did"))).toHaveLength(1);
    }
    await app.stop(0);
    return true;
  }

  test("I2, I4: the call gets its result, one child has one thread, and the child's result is posted once", async () => {
    expect(await crashAtEach(when, COMMITS_MAX, crashAt)).toBeGreaterThan(5);
  });
});
