// The end of a sub-agent's job when several events coincide: stops, deletions, refusals, races. Each job is
// closed and announced once.

import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Session } from "../../../src/core/shapes/session.ts";
import type { Settings } from "../../../src/core/shapes/settings/settings.ts";
import { lostAttachments } from "../../../src/flows/job/archive.ts";
import { attachmentOwner, writeAttachments } from "../../../src/flows/job/attachments.ts";
import { DELETION_DEADLINE, deleteSession, resetSession } from "../../../src/flows/session/lifecycle.ts";
import { insertSession } from "../../../src/store/queries/sessions/sessions.ts";
import type { Store, Tx } from "../../../src/store/sql.ts";
import { Crash, endOf, openStore, sessionRow, temporaryFolder } from "../../kit/engine/engine.ts";
import { openSpawnApp, type SpawnApp, type SpawnPlay, type Turn } from "../../kit/engine/spawn-app.ts";
import { whole } from "../../kit/live-text.ts";
import { until } from "../../kit/until.ts";
import { fakeWorld } from "../../kit/world.ts";
import { agentSettings, settingsWith } from "../../tools/app.ts";

const MAIN = "agent:main:main";
const CHAT = "agent:main:chat:one";

function settings(subagents: Partial<Settings["subagents"]> = {}, more: Partial<Settings> = {}): Settings {
  const base = settingsWith();
  return { ...base, ...more, subagents: { ...base.subagents, maxSpawnDepth: 2, ...subagents } };
}

function withBudget(maxChainTokens: number, subagents: Partial<Settings["subagents"]> = {}): Settings {
  const base = settings(subagents);
  const agentToAgent = { ...base.session.agentToAgent, maxChainTokens };
  return { ...base, session: { ...base.session, agentToAgent } };
}

const aborted = (turn: Turn): Promise<unknown> =>
  new Promise((resolve) => turn.handle.signal.addEventListener("abort", resolve));

/**
 * Returns the script of a model for three levels. The top session spawns a sub-agent with its message as the
 * task. The sub-agent with the task `outer` spawns one with the task `inner`. Every other sub-agent follows
 * `play`.
 */
const family =
  (play: SpawnPlay, args: Record<string, unknown> = {}): SpawnPlay =>
  async (turn) => {
    const { session, input, step, handle } = turn;
    if (session.spawnedBy === undefined) {
      if (handle.run.input.provenance !== undefined) return "heard";
      return JSON.stringify(await turn.tool("sessions_spawn", { task: input, ...args }));
    }
    if (step === "task" && input === "outer") {
      const { status } = await turn.tool("sessions_spawn", { task: "inner" });
      return `inner is ${status}`;
    }
    return play(turn);
  };

const plain: SpawnPlay = (turn) => (turn.step === "announce" ? "announced" : `did ${turn.input}`);

const endless: SpawnPlay = async (turn) => {
  if (turn.step === "announce") return "announced";
  await aborted(turn);
  return "";
};

async function spawned(app: SpawnApp, from: string, task: string): Promise<Record<string, unknown>> {
  const run = await app.tell(from, task);
  return JSON.parse((await endOf(app.engine, run.runId)).reply ?? "{}");
}

const only = (app: SpawnApp, of: string) => until(async () => (await app.children(of))[0]);

async function untilRuns(app: SpawnApp, key: string, state: string): Promise<void> {
  await until(async () => (await app.runs(key)).some((run) => run.state === state));
}

/** Returns a sub-agent of main that has finished its own work and waits for its own sub-agent. */
async function waitingChild(app: SpawnApp) {
  await app.route(MAIN);
  await spawned(app, MAIN, "outer");
  const child = await only(app, MAIN);
  const inner = await only(app, child.key);
  await untilRuns(app, inner.key, "running");
  await untilRuns(app, child.key, "ok");
  return { child, inner };
}

function facts(app: SpawnApp, own: Settings) {
  return {
    engine: app.engine,
    settings: own,
    dropTranscript: async () => {},
  };
}

describe("a child that only waits for its own children", () => {
  test("if the child is stopped, its job ends aborted, and the runtime announces it without another turn", async () => {
    const app = await openSpawnApp({ settings: settings(), play: family(endless) });
    const { child, inner } = await waitingChild(app);
    await app.engine.abort({ sessionKey: child.key });
    await app.quiet();
    expect((await app.runs(child.key)).map((run) => run.flow?.step)).toEqual(["task"]);
    expect((await app.runs(inner.key)).map((run) => run.state)).toEqual(["aborted"]);
    expect(app.sent.map(({ text }) => text)).toEqual([
      expect.stringMatching(/^Status: aborted\nResult: inner is accepted\nNotes: it was stopped while/),
    ]);
  });

  test("if the child is reset, its own children continue, and its job ends after theirs", async () => {
    const own = settings();
    const release = Promise.withResolvers<void>();
    const app = await openSpawnApp({
      settings: own,
      play: family(async (turn) => {
        if (turn.step !== "announce") await release.promise;
        return `done: ${turn.session.spawnDepth}`;
      }),
    });
    const { child, inner } = await waitingChild(app);
    await resetSession(facts(app, own), child);
    release.resolve();
    await app.quiet();
    expect((await app.runs(inner.key)).map((run) => run.state)).toEqual(["ok", "ok"]);
    expect(app.sent).toHaveLength(1);
    const kept = await app.store.db.selectFrom("deliveries").select(["state", "code", "text"]).execute();
    expect(kept.find((row) => row.state === "failed")).toMatchObject({
      code: "requester_reset",
      text: expect.stringContaining("done: 2"),
    });
  });
});

test("CN1: if a session is deleted, the jobs below it are cancelled without an announcement, and their ends are published", async () => {
  const own = settings();
  const app = await openSpawnApp({ settings: own, play: family(endless) });
  await app.store.transaction((tx) => insertSession(tx, sessionRow(CHAT)));
  await app.route(CHAT);
  await spawned(app, CHAT, "outer");
  const child = await only(app, CHAT);
  const inner = await only(app, child.key);
  await untilRuns(app, inner.key, "running");
  const chat = await app.session(CHAT);
  if (chat === undefined) throw new Error("no chat");
  await deleteSession(facts(app, own), chat);
  await app.quiet();
  expect(await app.store.db.selectFrom("deliveries").selectAll().execute()).toEqual([]);
  const ended = app.events.filter((event) => event.kind === "flow" && event.step === "ended");
  expect(new Set(ended.map((event) => event.kind === "flow" && event.from))).toEqual(
    new Set([child.key, inner.key]),
  );
});

test("if a session is deleted, a sub-agent below it starts no turn for a question that its own sub-agent cannot answer", async () => {
  const { tools } = settingsWith();
  const own = settings({}, { tools: { ...tools, subagents: { allow: ["sessions_*"], deny: [] } } });
  const asks: SpawnPlay = async (turn) => {
    const { session, input } = turn;
    if (session.spawnedBy === undefined)
      return JSON.stringify(await turn.tool("sessions_spawn", { task: "outer" }));
    if (input === "inner") return endless(turn);
    if (input !== "outer") return "a turn after the deletion";
    const { childSessionKey: sessionKey } = await turn.tool("sessions_spawn", { task: "inner" });
    await turn.tool("sessions_send", { sessionKey, message: "ready?", timeoutSeconds: 0 }, "ask");
    return "waits";
  };
  const app = await openSpawnApp({ settings: own, play: asks });
  await app.store.transaction((tx) => insertSession(tx, sessionRow(CHAT)));
  await spawned(app, CHAT, "go");
  const child = await only(app, CHAT);
  await untilRuns(app, child.key, "ok");
  await untilRuns(app, (await only(app, child.key)).key, "running");
  await deleteSession(facts(app, own), (await app.session(CHAT)) as Session);
  await app.quiet();
  const [task, ...later] = await app.runs(child.key);
  expect(task).toMatchObject({ state: "ok", reply: "waits" });
  expect(later.map(({ state, startedAt }) => ({ state, startedAt }))).toEqual([
    { state: "aborted", startedAt: undefined },
  ]);
});

describe("a deletion with much work below", () => {
  const JOBS = 150;
  const own = settings({ maxChildren: 1_000, maxConcurrent: 2 });
  const play: SpawnPlay = async (turn) => {
    if (turn.input !== "go" && turn.input !== "many") return endless(turn);
    for (let n = 0; n < JOBS; n += 1) await turn.tool("sessions_spawn", { task: `job ${n}` }, `call ${n}`);
    return "spawned";
  };
  /** Makes a session with many unfinished jobs, most of which wait for a slot. */
  async function makeBusy(app: SpawnApp): Promise<Session> {
    await app.store.transaction((tx) => insertSession(tx, sessionRow(CHAT)));
    await endOf(app.engine, (await app.tell(CHAT, "go")).runId);
    return (await app.session(CHAT)) as Session;
  }
  async function checkGone(app: SpawnApp): Promise<void> {
    await until(async () => (await app.session(CHAT)) === undefined);
    await app.quiet();
    const { db } = app.store;
    expect(await db.selectFrom("flows").select("flow_id").where("state", "=", "open").execute()).toEqual([]);
    expect(await db.selectFrom("deliveries").select("text").execute()).toEqual([]);
    const kinds = (await db.selectFrom("deadlines").select("kind").execute()).map(({ kind }) => kind);
    expect(kinds).not.toContain(DELETION_DEADLINE);
  }

  test("no transaction ends more than a hundred jobs, also if a sub-agent gave them", async () => {
    const disk = await openStore(temporaryFolder());
    const open = (tx: Tx) => tx.selectFrom("flows").select("flow_id").where("state", "=", "open").execute();
    let most = 0;
    const transaction: Store["transaction"] = (work) =>
      disk.transaction(async (tx) => {
        const before = (await open(tx)).length;
        const done = await work(tx);
        most = Math.max(most, before - (await open(tx)).length);
        return done;
      });
    const nested: SpawnPlay = async (turn) =>
      turn.session.spawnDepth === 0
        ? JSON.stringify(await turn.tool("sessions_spawn", { task: "many" }))
        : play(turn);
    const app = await openSpawnApp({ settings: own, play: nested, disk: { ...disk, transaction } });
    const chat = await makeBusy(app);
    const child = await only(app, CHAT);
    await untilRuns(app, child.key, "ok");
    expect((await deleteSession(facts(app, own), chat)).ok).toBe(true);
    await checkGone(app);
    expect(most).toBeGreaterThan(1);
    expect(most).toBeLessThanOrEqual(100);
  });

  test("if the process dies between two of these transactions, the next one finishes the deletion", async () => {
    const dir = temporaryFolder();
    const disk = await openStore(dir);
    let isDead = false;
    const transaction: Store["transaction"] = async (work) => {
      if (isDead) throw new Crash("the process is dead");
      return disk.transaction(work);
    };
    const app = await openSpawnApp({ settings: own, play, disk: { ...disk, transaction }, dies: true });
    const chat = await makeBusy(app);
    app.engine.bus.subscribe(() => {
      isDead = true;
    });
    await expect(deleteSession(facts(app, own), chat)).rejects.toThrow("the process is dead");
    // Time passes.
    await disk.transaction((tx) => tx.updateTable("deadlines").set({ due_at: 1 }).execute());
    await disk.close();
    const next = await openSpawnApp({ settings: own, play, dir });
    await checkGone(next);
  });
});

test("JB1: if a child spawns in its announce turn, it announces once, after the new job's result has arrived", async () => {
  const app = await openSpawnApp({
    settings: settings(),
    play: family(async (turn) => {
      if (turn.input === "inner") return "inner result";
      if (turn.step === "announce" && turn.session.spawnDepth === 1) {
        const announces = (await app.runs(turn.session.key)).filter((run) => run.flow?.step === "announce");
        if (announces.length === 1) await turn.tool("sessions_spawn", { task: "inner" });
        return `announce ${announces.length}`;
      }
      return turn.step === "announce" ? "inner announces" : "worked";
    }),
  });
  await app.route(MAIN);
  await spawned(app, MAIN, "plain");
  await app.quiet();
  const child = await only(app, MAIN);
  expect((await app.runs(child.key)).map((run) => run.flow?.step)).toEqual([
    "task",
    "announce",
    "task",
    "announce",
  ]);
  expect(app.sent.map(({ text }) => text)).toEqual([expect.stringContaining("Result: announce 2")]);
});

test("a job that exceeds its time limit is announced with its text so far", async () => {
  const app = await openSpawnApp({
    settings: settings(),
    play: family(
      async (turn) => {
        turn.handle.text(whole("half of it"));
        await aborted(turn);
        return "";
      },
      { runTimeoutSeconds: 0.03 },
    ),
  });
  await app.route(MAIN);
  await spawned(app, MAIN, "x");
  await app.quiet();
  expect(app.sent.map(({ text }) => text)).toEqual([
    expect.stringMatching(/^Status: timeout\nResult: half of it\nNotes: .*longer than its limit/),
  ]);
});

test("a job that never began has the duration 0, and does not get the result of another job", async () => {
  const world = fakeWorld();
  const app = await openSpawnApp({ settings: settings({ maxConcurrent: 1 }), play: family(endless), world });
  await app.route(MAIN);
  await spawned(app, MAIN, "first");
  const second = await spawned(app, MAIN, "second");
  await world.advance(60_000);
  await app.engine.abort({ sessionKey: String(second.childSessionKey) });
  while (app.sent.length === 0) await world.advance(1);
  await app.engine.abort({ sessionKey: MAIN });
  while ((await app.engine.load()).slots.taken > 0) await world.advance(1);
  expect(app.sent[0]?.text).toMatch(/^Status: aborted\nResult: \(none\)[\s\S]*runtime 0.0s/);
});

describe("chain budgets", () => {
  test("if the requester can't be woken any more, the result is posted and appended", async () => {
    const hold = Promise.withResolvers<void>();
    const own = withBudget(20, { announce: "wake" });
    const app = await openSpawnApp({
      settings: own,
      play: async (turn) => {
        if (turn.input === "wait") await hold.promise;
        return family(plain)(turn);
      },
    });
    await app.route(MAIN);
    await spawned(app, MAIN, "x");
    const busy = await app.tell(MAIN, "wait");
    // When the run that wakes the requester is accepted, 15 tokens are used. It has to wait for the other
    // message, and then 20 tokens are used.
    const child = await only(app, MAIN);
    await until(async () => (await app.runs(child.key)).filter((run) => run.state === "ok").length >= 2);
    await app.store.transaction((tx) => tx.updateTable("chains").set({ tokens: 20 }).execute());
    hold.resolve();
    await endOf(app.engine, busy.runId);
    await app.quiet();
    expect(
      app.sent.map(({ text }) => text).filter((text) => text.includes("Result: announced")),
    ).toHaveLength(1);
    const lines = (await app.texts(MAIN)).filter((line) => line.startsWith("user: Status: ok"));
    expect(lines).toHaveLength(1);
  });
});

describe("a daily budget that keeps the requester from being woken", () => {
  const daily = (dailyTokens: number): Settings =>
    settings({ announce: "wake" }, { agents: [{ ...agentSettings("main"), budget: { dailyTokens } }] });

  test("the result is posted and appended once", async () => {
    // Main's run and the child's task use 5 tokens each.
    const app = await openSpawnApp({ settings: daily(10), play: family(plain) });
    await app.route(MAIN);
    await spawned(app, MAIN, "x");
    await app.quiet();
    expect((await app.runs(MAIN)).map((run) => run.code)).toContain("budget_used");
    expect(app.sent.map(({ text }) => text)).toEqual([expect.stringMatching(/^Status: ok\nResult: did x\n/)]);
    const lines = (await app.texts(MAIN)).filter((line) => line.startsWith("user: Status: ok"));
    expect(lines).toHaveLength(1);
  });
});

test("if a reset ends the run that should wake the requester, the result is posted", async () => {
  const own = settings({ announce: "wake" });
  const app = await openSpawnApp({
    settings: own,
    play: async (turn) => {
      if (turn.input === "wait") return endless(turn);
      return family((child) => (child.step === "announce" ? "announced" : "did"))(turn);
    },
  });
  await app.route(MAIN);
  await spawned(app, MAIN, "x");
  await app.tell(MAIN, "wait");
  await until(async () => (await app.runs(MAIN)).some((run) => run.input.provenance !== undefined));
  const main = await app.session(MAIN);
  if (main === undefined) throw new Error("no main");
  await resetSession(facts(app, own), main);
  await app.quiet();
  expect(app.sent.map(({ text }) => text)).toEqual([expect.stringContaining("Result: announced")]);
  expect(await app.texts(MAIN)).toEqual([]);
});

test.each([
  ["wake", "a chat, which gets the result", true],
  ["wake", "no chat", false],
  ["post", "a chat, which gets the result", true],
  ["post", "no chat", false],
] as const)(
  "a stop before the requester reads the result (%s) leaves it in its transcript, once; it has %s",
  async (announce, _, hasChat) => {
    const app = await openSpawnApp({
      settings: settings({ announce }),
      play: (turn) => (turn.input === "wait" ? endless(turn) : family(plain)(turn)),
    });
    if (hasChat) await app.route(MAIN);
    await spawned(app, MAIN, "x");
    await app.tell(MAIN, "wait");
    await until(async () => (await app.runs(MAIN)).some((run) => run.input.provenance !== undefined));
    await app.engine.abort({ sessionKey: MAIN });
    await app.quiet();
    const results = (lines: string[]) => lines.filter((line) => line.includes("Result: announced"));
    expect(results(app.sent.map(({ text }) => text))).toHaveLength(hasChat ? 1 : 0);
    expect(results(await app.texts(MAIN))).toHaveLength(1);
    expect((await app.runs(MAIN)).filter((run) => run.kind === "turn").map((run) => run.state)).toEqual([
      ...["ok", "aborted", ...(announce === "wake" ? ["aborted"] : [])],
    ]);
  },
);

describe("an abort during a spawn", () => {
  test("I1: an aborted run spawns no session", async () => {
    const results: Record<string, unknown>[] = [];
    const app = await openSpawnApp({
      settings: settings(),
      play: async (turn) => {
        const stopping = app.engine.abort({ sessionKey: MAIN });
        const calls = [1, 2, 3].map((at) => turn.tool("sessions_spawn", { task: "late" }, `call${at}`));
        results.push(...(await Promise.all(calls)));
        await stopping;
        return "";
      },
    });
    await app.tell(MAIN, "go");
    await app.quiet();
    await until(() => results.length >= 3);
    expect(results.map((result) => result.code)).toEqual(["run_aborted", "run_aborted", "run_aborted"]);
    expect(await app.children(MAIN)).toEqual([]);
  });

  test("I4: the same tool call twice at the same moment creates one child", async () => {
    const app = await openSpawnApp({
      settings: settings(),
      play: async (turn) => {
        if (turn.session.key !== MAIN) return "done";
        if (turn.handle.run.kind !== "turn") return "";
        const calls = [1, 2].map(() => turn.tool("sessions_spawn", { task: "x" }, "same"));
        const [first, second] = await Promise.all(calls);
        return JSON.stringify([first?.childSessionKey, second?.childSessionKey]);
      },
    });
    const run = await app.tell(MAIN, "go");
    const [first, second] = JSON.parse((await endOf(app.engine, run.runId)).reply ?? "[]");
    await app.quiet();
    expect(first).toBe(second);
    expect(await app.children(MAIN)).toHaveLength(1);
  });
});

describe("attachments", () => {
  function withWorkspace() {
    const workspace = temporaryFolder();
    const own = { ...settings(), agents: [agentSettings("main", { workspace })] };
    const folder = join(workspace, ".parley", "attachments");
    return { own, workspace, names: () => readdir(folder).catch(() => [] as string[]) };
  }
  const attachments = [{ name: "a.txt", content: "a" }];

  test("after a crash, attachments of ended jobs are found for removal, but not those of running jobs", async () => {
    const { own, workspace, names } = withWorkspace();
    const app = await openSpawnApp({ settings: own, play: family(endless, { attachments }) });
    const { runId } = await spawned(app, MAIN, "x");
    expect(await lostAttachments(app.store.db, own, 0)).toEqual([]);
    await app.engine.abort({ sessionKey: (await only(app, MAIN)).key });
    await app.quiet();
    await until(async () => (await names()).length === 0);
    const plan = { files: [] };
    await writeAttachments(workspace, plan, String(runId), attachmentOwner(own.store));
    expect(await lostAttachments(app.store.db, own, 0)).toEqual([
      { workspace, dir: `.parley/attachments/${runId}` },
    ]);
  });
});
