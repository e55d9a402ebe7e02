// Sub-agents with a thread of their own: how they get it, who reads their results, how long it is theirs (BD1-BD4).

import { describe, expect, test } from "vitest";
import type { OpenedThread } from "../../src/channels/channel.ts";
import type { DiscordAccount, ThreadBindingSettings } from "../../src/core/channel-settings.ts";
import { fail, ok, type Result } from "../../src/core/errors.ts";
import type { Route, Session } from "../../src/core/session.ts";
import type { Settings } from "../../src/core/settings.ts";
import { bindingOf, boundSession, setBindingLimits, unbind } from "../../src/flows/bindings.ts";
import { deleteSession } from "../../src/flows/lifecycle.ts";
import { acceptByMode } from "../../src/flows/queue-mode.ts";
import { insertSession, updateSession } from "../../src/store/sessions.ts";
import { listBindings } from "../../src/store/thread-bindings.ts";
import { type CrashPoint, endOf, sessionRow, temporaryFolder } from "../kit/engine.ts";
import { openSpawnApp, type SpawnApp, type SpawnAppOptions, type SpawnPlay } from "../kit/spawn-app.ts";
import { fakeWorld } from "../kit/world.ts";
import { settingsWith } from "../tools/app.ts";

const MAIN = "agent:main:main";
const ROOM: Route = { channel: "discord", to: "room", accountId: "default" };
const HOUR_MS = 3_600_000;
const COMMITS_MAX = 60;

function settingsOf(bindings: Partial<ThreadBindingSettings> = {}, subagents: object = {}): Settings {
  const base = settingsWith();
  const account: DiscordAccount = {
    ...{ channel: "discord", accountId: "default", token: "t", restUrl: "http://127.0.0.1:1" },
    ...{ dmPolicy: "open", allowFrom: [], groupPolicy: "open", groupAllowFrom: [], requireMention: false },
    groups: {},
    inbound: { debounceMs: 0, queue: "followup", mediaMaxBytes: 1_000 },
    threadBindings: { enabled: true, idleHours: 24, maxAgeHours: 0, ...bindings },
  };
  return { ...base, channels: [account], subagents: { ...base.subagents, ...subagents } };
}

/** Makes threads as Discord does, and remembers which. */
function threadMaker(answer?: (at: Route, title: string) => Result<OpenedThread>) {
  const opened: { at: Route; title: string }[] = [];
  return {
    opened,
    openThread: async (at: Route, title: string): Promise<Result<OpenedThread>> => {
      opened.push({ at, title });
      const route = { ...at, threadId: `thread-${opened.length}` };
      return answer?.(at, title) ?? ok({ route, kind: "created" });
    },
  };
}

/** Main spawns what it is told, with these arguments; a child says what it did, or fails if it is told to. */
const spawning =
  (args: Record<string, unknown> = {}): SpawnPlay =>
  async (turn) => {
    if (turn.session.key === MAIN) {
      return JSON.stringify(await turn.tool("sessions_spawn", { task: turn.input, thread: true, ...args }));
    }
    if (turn.input === "fail") throw new Error("it broke");
    return turn.input === "be silent" ? "ANNOUNCE_SKIP" : `did ${turn.input}`;
  };

async function open(options: Partial<SpawnAppOptions> & { args?: Record<string, unknown> } = {}) {
  const maker = threadMaker();
  const own = options.settings ?? settingsOf();
  const app = await openSpawnApp({
    settings: own,
    play: spawning(options.args),
    openThread: maker.openThread,
    ...options,
  });
  return { app, own, ...maker, parts: { settings: own, outbound: { deliveryQueued() {} } } };
}

/** What the call that a message to main makes is answered. */
async function spawned(app: SpawnApp, task: string, route: Route = ROOM): Promise<Record<string, unknown>> {
  const run = await app.tell(MAIN, task, undefined, route);
  const answer = JSON.parse((await endOf(app.engine, run.runId)).reply ?? "{}");
  await app.quiet();
  return answer;
}

async function childOf(app: SpawnApp): Promise<Session> {
  const [child] = await app.children(MAIN);
  if (child === undefined) throw new Error("no child");
  return child;
}

const places = async (app: SpawnApp): Promise<Route[]> =>
  (await listBindings(app.store.db, 100)).map(({ route }) => route);

const shown = (app: SpawnApp): string[] =>
  app.sent.map(({ route, text }) => `${route.to}/${route.threadId ?? ""}: ${text}`);

/** What somebody writes in a place, as it comes in. */
async function writes(app: SpawnApp, own: Settings, route: Route, text: string): Promise<string> {
  const parts = { settings: own, outbound: { deliveryQueued() {} } };
  return app.engine.commit(async (unit) => {
    const bound = await boundSession(parts, app.engine, unit, route);
    const sessionKey = bound?.key ?? MAIN;
    const request = { sessionKey, input: { text }, route };
    const accepted = await acceptByMode(app.engine, unit, request, "followup");
    if (!accepted.ok) throw new Error(accepted.error);
    return sessionKey;
  });
}

describe("sessions_spawn with a thread", () => {
  test("the channel makes a thread where the message came from, and the child has it", async () => {
    const { app, opened } = await open({ args: { label: "look-up" } });
    // The session's own place has moved meanwhile: somebody else wrote.
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

  test("its first result is posted there once, and the requester has it in its transcript once", async () => {
    const { app } = await open();
    await spawned(app, "count the beans");
    expect(shown(app)).toEqual(["room/thread-1: did count the beans"]);
    const told = (await app.texts(MAIN)).filter((text) => text.includes("did count the beans"));
    expect(told).toEqual([expect.stringMatching(/^user: Status: ok\nResult: did count the beans\n/)]);
    expect((await app.runs((await childOf(app)).key)).map((run) => run.flow?.step)).toEqual(["task"]);
  });

  test("a task that fails is told there, by the runtime", async () => {
    const { app } = await open();
    await spawned(app, "fail");
    expect(shown(app)).toEqual([expect.stringMatching(/^room\/thread-1: Status: error\n/)]);
    expect((await app.texts(MAIN)).filter((text) => text.includes("Status: error"))).toHaveLength(1);
  });

  test("silence stays silent there", async () => {
    const { app } = await open();
    await spawned(app, "be silent");
    expect(shown(app)).toEqual([]);
  });

  test("without a label the task's first line is the title, cut and harmless", async () => {
    const { app, opened } = await open();
    await spawned(app, `\u202e${"word ".repeat(40)}\nmore`);
    expect(opened[0]?.title.length).toBeLessThanOrEqual(90);
    expect(opened[0]?.title).toMatch(/word .*…$/);
    expect(opened[0]?.title).not.toMatch(/[\n\u202e]/u);
  });

  test("the send policy for threads holds for it", async () => {
    const base = settingsOf();
    const rules = [{ match: { chatType: "thread" as const }, action: "deny" as const }];
    const session = { ...base.session, sendPolicy: { rules, default: "allow" as const } };
    const { app } = await open({ settings: { ...base, session } });
    await spawned(app, "count the beans");
    expect(shown(app)).toEqual([]);
    const rows = await app.store.db.selectFrom("deliveries").select(["state", "code"]).execute();
    expect(rows).toEqual([{ state: "skipped", code: "send_denied" }]);
  });

  const refused: [string, Parameters<typeof open>[0], Route, RegExp][] = [
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
      /discord could not make a thread/,
    ],
  ];
  test.each(refused)("nothing is left of a call that is refused: %s", async (_, options, route, words) => {
    const { app } = await open(options);
    const answer = await spawned(app, "count the beans", route);
    expect(answer.status).not.toBe("accepted");
    expect(answer.error).toMatch(words);
    expect(JSON.stringify(answer)).not.toContain("secret-token");
    expect(await app.children(MAIN)).toEqual([]);
    expect(await places(app)).toEqual([]);
  });

  test("a channel that never answers is waited for a while", async () => {
    const world = fakeWorld();
    const { app } = await open({ world, openThread: () => new Promise(() => {}) });
    const run = await app.tell(MAIN, "count the beans", undefined, ROOM);
    await world.timerWithin(30_000);
    await world.advance(30_000);
    const ended = await endOf(app.engine, run.runId, 60_000);
    expect(ended.reply).toContain("discord did not make a thread in 30 s");
  });

  test("a chat that is bound already is not bound again", async () => {
    const { app } = await open({ openThread: async (route) => ok({ route, kind: "bound" }) });
    expect(await spawned(app, "one")).toMatchObject({ status: "accepted", thread: ROOM });
    const child = await childOf(app);
    const answer = await spawned(app, "two");
    expect(answer).toMatchObject({ status: "forbidden", error: expect.stringContaining(child.key) });
    expect(await app.children(MAIN)).toHaveLength(1);
  });
});

describe("a bound place", () => {
  test("BD1: what is written there goes to the child, elsewhere to the session of the place", async () => {
    const { app, own } = await open();
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

  test("BD2, BD3: without a message for idleHours it is bound no longer, and told so once", async () => {
    const world = fakeWorld();
    const { app, own } = await open({ world });
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

  test("BD2: what fell due while the gateway was down ends before the next message", async () => {
    const dir = temporaryFolder();
    const world = fakeWorld();
    const first = await open({ world, dir, dies: true });
    await spawned(first.app, "count the beans");
    const [thread = ROOM] = await places(first.app);
    await first.app.stop(0);
    await world.advance(30 * HOUR_MS);
    const { app, own } = await open({ world, dir });
    expect(await writes(app, own, thread, "hello?")).toBe(MAIN);
    await expect.poll(() => shown(app).filter((text) => text.includes("no longer"))).toHaveLength(1);
  });

  test("at maxAgeHours it ends, however much is written", async () => {
    const world = fakeWorld();
    const { app, own } = await open({ world, settings: settingsOf({ maxAgeHours: 2 }) });
    await spawned(app, "count the beans");
    const [thread = ROOM] = await places(app);
    await world.advance(HOUR_MS);
    await writes(app, own, thread, "one");
    await world.advance(HOUR_MS);
    await expect.poll(() => places(app)).toEqual([]);
    await expect.poll(() => shown(app).at(-1)).toContain("it was for a limited time");
  });

  test("its limits may be changed, for longer, shorter and for ever", async () => {
    const world = fakeWorld();
    const { app } = await open({ world });
    await spawned(app, "count the beans");
    const [thread = ROOM] = await places(app);
    const limit = (limits: object, route = thread) =>
      app.engine.commit((unit) => setBindingLimits(app.engine, unit, route, limits));
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

  test("BD3: ended by somebody it is told once, and not where that one is answered", async () => {
    const { app, parts } = await open();
    await spawned(app, "count the beans");
    const [thread = ROOM] = await places(app);
    const end = (tell: boolean) =>
      app.engine.commit((unit) => unbind(parts, app.engine, unit, { what: thread, why: "asked", tell }));
    expect(await end(false)).toHaveLength(1);
    expect(await end(true)).toEqual([]);
    await app.quiet();
    expect(shown(app).filter((text) => text.includes("no longer"))).toEqual([]);
  });

  test("where bindings are switched off, those that there are end with the next message", async () => {
    const dir = temporaryFolder();
    const first = await open({ dir, dies: true });
    await spawned(first.app, "count the beans");
    const [thread = ROOM] = await places(first.app);
    await first.app.stop(0);
    const { app, own } = await open({ dir, settings: settingsOf({ enabled: false }) });
    expect(await writes(app, own, thread, "hello?")).toBe(MAIN);
    expect(await places(app)).toEqual([]);
  });
});

describe("the session of a bound place", () => {
  test("BD4: mode session ignores the archive date, and is archived with the end of its binding", async () => {
    const world = fakeWorld();
    const { app, parts } = await open({ world, settings: settingsOf({ idleHours: 0 }) });
    await spawned(app, "count the beans");
    await world.advance(1_000 * HOUR_MS);
    const { key } = await childOf(app);
    expect((await app.session(key))?.archivedAt).toBeUndefined();
    await app.engine.commit((unit) =>
      unbind(parts, app.engine, unit, { what: { sessionKey: key }, why: "asked", tell: true }),
    );
    await expect.poll(async () => (await app.session(key))?.archivedAt).toBeDefined();
    // Nothing that others make it say comes to the place any more.
    expect((await app.session(key))?.lastRoute).toBeUndefined();
  });

  test("mode run: what is archived by date lets its thread go, and tells it", async () => {
    const world = fakeWorld();
    const { app, own } = await open({ world, args: { mode: "run" } });
    await spawned(app, "count the beans");
    const [thread = ROOM] = await places(app);
    await world.advance(HOUR_MS);
    await expect.poll(() => places(app)).toEqual([]);
    await expect.poll(() => shown(app).at(-1)).toContain("that session was archived");
    expect((await childOf(app)).archivedAt).toBeDefined();
    expect(await writes(app, own, thread, "hello?")).toBe(MAIN);
  });

  test("mode run: one whose binding has ended stays until its date", async () => {
    const { app, parts } = await open({ args: { mode: "run" } });
    await spawned(app, "count the beans");
    const { key } = await childOf(app);
    await app.engine.commit((unit) =>
      unbind(parts, app.engine, unit, { what: { sessionKey: key }, why: "asked", tell: false }),
    );
    await app.quiet();
    expect((await app.session(key))?.archivedAt).toBeUndefined();
  });

  test("cleanup delete: gone with its result, and its thread told", async () => {
    const { app } = await open({ args: { mode: "run", cleanup: "delete" } });
    await spawned(app, "count the beans");
    await expect.poll(() => app.children(MAIN)).toEqual([]);
    expect(await places(app)).toEqual([]);
    await expect
      .poll(() => shown(app))
      .toEqual(["room/thread-1: did count the beans", expect.stringContaining("that session was deleted")]);
  });

  test("deleted, or its requester deleted: its thread is let go", async () => {
    const chat = "agent:main:chat:one";
    const { app, own } = await open({
      play: async (turn) => {
        if (turn.session.spawnedBy !== undefined) return "done";
        return JSON.stringify(await turn.tool("sessions_spawn", { task: "work", thread: true }));
      },
    });
    await app.store.transaction((tx) => insertSession(tx, sessionRow(chat)));
    const facts = { engine: app.engine, settings: own, outbound: { deliveryQueued() {} } };
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
    const texts = await app.store.db.selectFrom("deliveries").select("text").orderBy("seq").execute();
    expect(texts.slice(-2).map(({ text }) => text)).toEqual([
      expect.stringContaining("that session was deleted"),
      expect.stringContaining("the session that it worked for was deleted"),
    ]);
    // BD4: nobody is left whom it could work for.
    await expect.poll(async () => (await app.session(two.key))?.archivedAt).toBeDefined();
  });
});

describe.each(["before", "after"] as const)("a crash %s any commit of a spawn with a thread", (when) => {
  async function crashAt(point: CrashPoint): Promise<"crashed" | "too_late"> {
    const dir = temporaryFolder();
    const first = await open({ dir, crash: point }).catch(() => undefined);
    // It died while it opened: nothing was accepted yet.
    if (first === undefined) return "crashed";
    await first.app.tell(MAIN, "count the beans", "from-a-person", ROOM).catch(() => {});
    const outcome = await Promise.race([
      first.app.crashed().then(() => "crashed" as const),
      first.app.quiet().then(
        () => "too_late" as const,
        () => new Promise<never>(() => {}),
      ),
    ]);
    if (outcome === "too_late") return outcome;
    const { app } = await open({ dir });
    await app.quiet();
    const [run] = await app.runs(MAIN);
    // Not told: the message may be lost.
    if (run !== undefined) {
      const children = await app.children(MAIN);
      expect(children, "I4: one call, one child").toHaveLength(1);
      const threads = await places(app);
      expect(threads).toEqual([children[0]?.spawn?.thread]);
      const rows = await app.store.db.selectFrom("deliveries").select(["text", "route_json"]).execute();
      expect(rows).toEqual([{ text: "did count the beans", route_json: JSON.stringify(threads[0]) }]);
      expect((await app.texts(MAIN)).filter((text) => text.includes("Result: did"))).toHaveLength(1);
    }
    await app.stop(0);
    return "crashed";
  }

  test("I2, I4: the call is answered, one child has one thread, and its result is told once", async () => {
    let crashes = 0;
    for (let commit = 3; commit < COMMITS_MAX; commit += 1) {
      if ((await crashAt({ commit, when })) === "too_late") break;
      crashes += 1;
    }
    expect(crashes).toBeGreaterThan(5);
    expect(crashes).toBeLessThan(COMMITS_MAX - 3);
  });
});
