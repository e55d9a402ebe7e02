import { describe, expect, test } from "vitest";
import type { DeliveryOutcome } from "../../../src/channels/channel.ts";
import type { Settings } from "../../../src/core/shapes/settings/settings.ts";
import { resetSession } from "../../../src/flows/session/lifecycle.ts";
import { deleteSessionRows } from "../../../src/store/queries/sessions/sessions.ts";
import { endOf, temporaryFolder } from "../../kit/engine/engine.ts";
import { openSpawnApp, type SpawnApp, type SpawnPlay, type Turn } from "../../kit/engine/spawn-app.ts";
import { until } from "../../kit/until.ts";
import { fakeWorld } from "../../kit/world.ts";
import { settingsWith } from "../../tools/app.ts";

const MAIN = "agent:main:main";

function settings(subagents: Partial<Settings["subagents"]> = {}, more: Partial<Settings> = {}): Settings {
  const base = settingsWith();
  return { ...base, ...more, subagents: { ...base.subagents, ...subagents } };
}

/** Returns a play: main spawns one child for each line of its message, and a child runs `child`. */
const boss =
  (child: SpawnPlay, spawnArgs: Record<string, unknown> = {}): SpawnPlay =>
  async (turn) => {
    if (turn.session.key !== MAIN) return child(turn);
    if (turn.handle.run.input.provenance !== undefined) return `main heard: ${turn.input.split("\n")[1]}`;
    const tasks = turn.input.split("\n");
    const results = await Promise.all(
      tasks.map((task, at) => turn.tool("sessions_spawn", { task, ...spawnArgs }, `spawn${at}`)),
    );
    return JSON.stringify(results);
  };

const forever: SpawnPlay = async (turn) => {
  await new Promise((resolve) => turn.handle.signal.addEventListener("abort", resolve));
  return "";
};

const worker: SpawnPlay = (turn) =>
  turn.step === "announce" ? `Result: done with ${taskOf(turn)}` : `did ${turn.input}`;

function taskOf(turn: Turn): string {
  const [, task = "?"] = /Task:\n\| (.*)/.exec(turn.handle.run.input.context ?? "") ?? [];
  return task;
}

async function spawnResults(app: SpawnApp, text: string): Promise<Record<string, unknown>[]> {
  const run = await app.tell(MAIN, text);
  return JSON.parse((await endOf(app.engine, run.runId)).reply ?? "[]");
}

async function oneChild(app: SpawnApp) {
  const [child] = await app.children(MAIN);
  if (child === undefined) throw new Error("there is no child");
  return child;
}

describe("a sub-agent's job", () => {
  test("a spawn is accepted at once with the child's actual settings, runs in its own session, and is announced once", async () => {
    const app = await openSpawnApp({ settings: settings(), play: boss(worker) });
    await app.route(MAIN);
    const [result] = await spawnResults(app, "count the beans");
    await app.quiet();
    const child = await oneChild(app);
    expect(result).toMatchObject({
      status: "accepted",
      childSessionKey: child.key,
      model: "offline/rehearsal",
    });
    expect(child).toMatchObject({ spawnedBy: MAIN, spawnDepth: 1, agentId: "main", kind: "other" });
    expect(child.lastRoute).toBeUndefined();
    expect((await app.runs(child.key)).map((run) => `${run.flow?.step} ${run.state} ${run.hop}`)).toEqual([
      "task ok 1",
      "announce ok 1",
    ]);
    expect(app.sent).toHaveLength(1);
    expect(app.sent[0]?.text).toMatch(
      /^Status: ok\nResult: done with count the beans\nNotes: \(none\)\n\nStats: runtime .* tokens/,
    );
    expect(app.sent[0]?.text).toContain(`session ${child.key}`);
    const told = (await app.texts(MAIN)).filter((line) => line.startsWith("user: Status: ok"));
    expect(told).toHaveLength(1);
    const [, announced] = await app.runs(MAIN);
    expect(announced).toMatchObject({
      kind: "append",
      input: {
        provenance: { kind: "inter_session", sourceSessionKey: child.key, sourceTool: "sessions_spawn" },
      },
    });
  });

  const fails = (reason: string): never => {
    throw new Error(reason);
  };
  const FORTY_TWO = /^Status: ok\nResult: forty-two\n/;

  test.each<[child: string, SpawnPlay, announced: RegExp | undefined, args?: object]>([
    [
      "the child fails",
      () => fails("the tool broke"),
      /^Status: error\nResult: \(none\)\nNotes: the tool broke\n/,
    ],
    ["the child is aborted", forever, /^Status: aborted\n/],
    [
      "its announce turn is ANNOUNCE_SKIP",
      ({ step }) => (step === "announce" ? "ANNOUNCE_SKIP" : "done"),
      undefined,
    ],
    [
      "its announce turn fails",
      ({ step }) => (step === "announce" ? fails("no model") : "forty-two"),
      FORTY_TWO,
    ],
    ["its announce turn is empty", ({ step }) => (step === "announce" ? "" : "forty-two"), FORTY_TWO],
    ["its announce turn is blank", ({ step }) => (step === "announce" ? " \n" : "forty-two"), FORTY_TWO],
    [
      "its announce turn is REPLY_SKIP",
      ({ step }) => (step === "announce" ? "REPLY_SKIP" : "forty-two"),
      FORTY_TWO,
    ],
    [
      "its announce turn is empty, and the child is deleted afterwards",
      ({ step }) => (step === "announce" ? "" : "forty-two"),
      FORTY_TWO,
      { cleanup: "delete" },
    ],
  ])("I12: if %s, the announcement is the runtime's", async (_, child, announced, args = {}) => {
    const app = await openSpawnApp({ settings: settings(), play: boss(child, { ...args }) });
    await app.route(MAIN);
    await spawnResults(app, "x");
    if (child === forever) await app.engine.abort({ sessionKey: (await oneChild(app)).key });
    await app.quiet();
    expect(app.sent.map((message) => message.text)).toEqual(
      announced === undefined ? [] : [expect.stringMatching(announced)],
    );
  });

  test("ten jobs in one message give ten results, each once; at most maxConcurrent of them execute at once", async () => {
    let inside = 0;
    let most = 0;
    const app = await openSpawnApp({
      settings: settings({ maxConcurrent: 3 }, { maxConcurrent: 8 }),
      play: boss(async (turn) => {
        inside += 1;
        most = Math.max(most, inside);
        await new Promise((resolve) => setImmediate(resolve));
        inside -= 1;
        return worker(turn);
      }),
    });
    await app.route(MAIN);
    const tasks = Array.from({ length: 10 }, (_, at) => `task ${at}`);
    const results = await spawnResults(app, tasks.join("\n"));
    expect(results.map((result) => result.status)).toEqual(tasks.map(() => "accepted"));
    await app.quiet();
    const told = app.sent.map((message) => /done with (.*)/.exec(message.text)?.[1]).sort();
    expect(told).toEqual(tasks);
    expect(most).toBeLessThanOrEqual(3);
  });

  test("a spawn that exceeds maxChildren is refused and leaves nothing behind, even if one message has several spawns", async () => {
    const release = Promise.withResolvers<void>();
    const app = await openSpawnApp({
      settings: settings({ maxChildren: 2 }),
      play: boss(async (turn) => {
        await release.promise;
        return worker(turn);
      }),
    });
    const results = await spawnResults(app, "a\nb\nc");
    expect(results.map((result) => result.code ?? result.status).sort()).toEqual([
      "accepted",
      "accepted",
      "too_many_children",
    ]);
    expect(await app.children(MAIN)).toHaveLength(2);
    release.resolve();
    await app.quiet();
  });
});

describe("nesting", () => {
  const nested: SpawnPlay = async (turn) => {
    if (turn.step === "announce") return `Result: ${turn.session.spawnDepth} announces`;
    if (turn.session.spawnDepth === 1 && turn.input === "outer") {
      const spawned = await turn.tool("sessions_spawn", { task: "inner" });
      return `spawned: ${spawned.status ?? spawned.code}`;
    }
    return turn.input === "inner" ? "inner result" : `used: ${turn.input.split("\n")[1]}`;
  };

  test("a child waits for its own children, is woken by each of their results, and announces its last reply", async () => {
    const app = await openSpawnApp({ settings: settings({ maxSpawnDepth: 2 }), play: boss(nested) });
    await app.route(MAIN);
    await spawnResults(app, "outer");
    await app.quiet();
    const child = await oneChild(app);
    const [grandchild] = await app.children(child.key);
    expect(grandchild).toMatchObject({ spawnDepth: 2, spawnedBy: child.key });
    const steps = (await app.runs(child.key)).map((run) => run.flow?.step);
    expect(steps).toEqual(["task", "task", "announce"]);
    expect(await app.texts(child.key)).toContainEqual("assistant: used: Result: 2 announces");
    expect(app.sent.map((message) => message.text)).toEqual([expect.stringContaining("Result: 1 announces")]);
  });
});

describe("cancelling", () => {
  test("aborting the requester cancels its children and their children, and nothing is announced", async () => {
    const started: string[] = [];
    const app = await openSpawnApp({
      settings: settings({ maxSpawnDepth: 2 }),
      play: boss(async (turn) => {
        started.push(turn.session.key);
        if (turn.session.spawnDepth === 1) await turn.tool("sessions_spawn", { task: "inner" });
        return forever(turn);
      }),
    });
    await app.route(MAIN);
    await spawnResults(app, "outer");
    await until(() => started.length >= 2);
    const aborted = await app.engine.abort({ sessionKey: MAIN });
    expect(aborted.runIds).toHaveLength(2);
    await app.quiet();
    for (const key of started) expect((await app.runs(key)).map((run) => run.state)).toEqual(["aborted"]);
    expect(app.sent).toEqual([]);
  });

  test("the tool `subagents` lists and cancels only the caller's own sub-agents", async () => {
    const app = await openSpawnApp({ settings: settings(), play: boss(forever) });
    const [result] = await spawnResults(app, "a\nb");
    const list = await app.call(MAIN, "subagents", {});
    expect(list).toMatchObject({ count: 2, subagents: [{ finished: false }, { finished: false }] });
    const other = await app.call("agent:research:main", "subagents", {
      action: "cancel",
      sessionKey: result?.childSessionKey,
    });
    expect(other).toMatchObject({ status: "forbidden", code: "not_visible" });
    const cancelled = await app.call(MAIN, "subagents", {
      action: "cancel",
      sessionKey: result?.childSessionKey,
    });
    expect(cancelled).toMatchObject({ status: "ok", cancelled: [result?.childSessionKey] });
    expect(await app.call(MAIN, "subagents", { action: "cancel", sessionKey: "all" })).toMatchObject({
      cancelled: [expect.any(String)],
    });
    await app.quiet();
    expect(app.sent).toEqual([]);
  });
});

describe("a requester that has changed", () => {
  const held = (args: Record<string, unknown> = {}) => {
    const release = Promise.withResolvers<void>();
    const play = boss(async (turn) => {
      await release.promise;
      return worker(turn);
    }, args);
    return { release, play };
  };

  test("if the requester was reset, the result is posted but not appended, and the child is kept", async () => {
    const { release, play } = held();
    const app = await openSpawnApp({ settings: settings(), play });
    await app.route(MAIN);
    await spawnResults(app, "x");
    const main = await app.session(MAIN);
    if (main === undefined) throw new Error("no main");
    await resetSession({ engine: app.engine, settings: settings() }, main);
    release.resolve();
    await app.quiet();
    expect(app.sent.map((message) => message.text)).toEqual([expect.stringContaining("done with x")]);
    expect(await app.texts(MAIN)).toEqual([]);
  });

  test("if the requester was deleted, the delivery of the result fails, and operators see it", async () => {
    const { release, play } = held();
    const app = await openSpawnApp({ settings: settings(), play });
    await spawnResults(app, "x");
    await app.store.transaction((tx) => deleteSessionRows(tx, MAIN, { transcripts: true }));
    release.resolve();
    await app.quiet();
    const rows = await app.store.db.selectFrom("deliveries").selectAll().execute();
    expect(rows).toMatchObject([{ state: "failed", code: "requester_deleted" }]);
    expect(rows[0]?.text).toContain("done with x");
  });
});

describe("after the job", () => {
  test("the child is archived at its stored date, which new work postpones and a restart does not change", async () => {
    const world = fakeWorld();
    const dir = temporaryFolder();
    const own = settings({ archiveAfterMinutes: 60 });
    const first = await openSpawnApp({ settings: own, play: boss(worker), dir, world });
    await spawnResults(first, "x");
    await first.quiet();
    const { key } = await oneChild(first);
    await world.advance(50 * 60_000);
    await first.tell(key, "one more question");
    await first.quiet();
    await world.advance(20 * 60_000);
    expect((await first.session(key))?.archivedAt).toBeUndefined();
    await first.engine.stop(0);
    await first.store.close();
    const second = await openSpawnApp({ settings: own, play: boss(worker), dir, world });
    await world.advance(39 * 60_000);
    expect((await second.session(key))?.archivedAt).toBeUndefined();
    await world.advance(2 * 60_000);
    for (let turn = 0; turn < 20; turn += 1) await world.advance(0);
    expect((await second.session(key))?.archivedAt).toBeDefined();
    expect(await second.engine.accept({ sessionKey: key, input: { text: "late" } })).toMatchObject({
      code: "session_archived",
    });
  });

  test("with cleanup `delete`, session and transcript are removed after the announcement is delivered, and usage is kept", async () => {
    const app = await openSpawnApp({ settings: settings(), play: boss(worker, { cleanup: "delete" }) });
    await app.route(MAIN);
    const [result] = await spawnResults(app, "x");
    const key = String(result?.childSessionKey);
    await app.quiet();
    await until(async () => (await app.session(key)) === undefined);
    expect(app.sent).toHaveLength(1);
    const left = await app.store.db
      .selectFrom("messages")
      .select("id")
      .where("session_key", "=", key)
      .execute();
    expect(left).toEqual([]);
    const usage = await app.store.db
      .selectFrom("ledger")
      .select("run_id")
      .where("session_key", "=", key)
      .execute();
    expect(usage).toHaveLength(2);
  });
});

test("AR1: the clean-up of a child waits for its announcement without polling, and follows it at once", async () => {
  const answers: DeliveryOutcome[] = [{ kind: "retry", error: "rain", afterMs: 500 }, { kind: "sent" }];
  const app = await openSpawnApp({
    settings: settings(),
    play: boss(worker, { cleanup: "delete" }),
    channel: () => answers.shift() ?? { kind: "sent" },
  });
  await app.route(MAIN);
  const [result] = await spawnResults(app, "x");
  const key = String(result?.childSessionKey);
  const date = app.store.db.selectFrom("deadlines").select("due_at").where("key", "=", key);
  await until(async () => ((await date.executeTakeFirst())?.due_at ?? 0) > Date.now() + 600_000);
  expect(await app.session(key)).toBeDefined();
  await until(async () => (await app.session(key)) === undefined);
  expect(app.sent).toHaveLength(1);
});

describe("chain budgets", () => {
  test("a chain that exceeds its token budget starts no further run and notifies its root session once", async () => {
    const base = settings();
    const own: Settings = {
      ...base,
      session: { ...base.session, agentToAgent: { ...base.session.agentToAgent, maxChainTokens: 8 } },
    };
    // Each run counts 5 tokens, so after main and one child the budget is used up.
    const app = await openSpawnApp({ settings: { ...own, maxConcurrent: 1 }, play: boss(worker) });
    await app.route(MAIN);
    await spawnResults(app, "a\nb\nc");
    await app.quiet();
    const notices = (await app.texts(MAIN)).filter((line) => line.includes("maxChainTokens is 8"));
    expect(notices.filter((line) => line.startsWith("user: Notice"))).toHaveLength(1);
    const states = await Promise.all(
      (await app.children(MAIN)).map(async ({ key }) => (await app.runs(key))[0]?.state),
    );
    expect(states.sort()).toEqual(["error", "error", "ok"]);
    // I2: each job still has an announcement, which the runtime writes.
    expect(app.sent).toHaveLength(3);
  });
});
