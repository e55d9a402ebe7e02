// A process's right to execute a run, and the decision that another process is dead, while the database and
// its clock have faults.

import { expect, test } from "vitest";
import type { ModelPort } from "../../src/agent/model/model.ts";
import { openModelPort } from "../../src/agent/model/port.ts";
import { Accounts } from "../../src/channels/accounts.ts";
import { ok } from "../../src/core/shapes/errors.ts";
import type { LaneHandle } from "../../src/engine/run/execution.ts";
import { LostLane } from "../../src/engine/run/transcript-writer.ts";
import { createExecutor } from "../../src/execute.ts";
import { answerPermission } from "../../src/flows/permission.ts";
import { backendFailure, type Sandbox } from "../../src/sandbox/sandbox.ts";
import { StoreProblem } from "../../src/store/problems.ts";
import { insertDelivery } from "../../src/store/queries/channels/deliveries.ts";
import { LEASE_MS } from "../../src/store/queries/processes.ts";
import { getRun } from "../../src/store/queries/runs/runs.ts";
import type { SharedStore, Store } from "../../src/store/sql.ts";
import type { World } from "../../src/world.ts";
import { openTurnApp } from "../flows/turn-app.ts";
import { type Cluster, type ClusterProcess, embeddedGround, openCluster } from "../kit/engine/cluster.ts";
import { cleanup, makeSessions } from "../kit/engine/engine.ts";
import type { Play } from "../kit/engine/flow-app.ts";
import { startModelServer, TEST_MODEL } from "../kit/model-server/server.ts";
import { rateLimited } from "../kit/model-server/steps.ts";
import { scriptedModel } from "../kit/scripted-model.ts";
import { type FakeWorld, fakeWorld } from "../kit/world.ts";
import { agentSettings, type Choices, settingsWith } from "../tools/app.ts";

const MAIN = "agent:main:main";
const OTHER = "agent:main:chat:other";

/** The connection of a process to the database. */
interface Link {
  /** Whether heartbeats pass, are refused, or get no answer. */
  beats: "pass" | "fail" | "hang";
  through(shared: SharedStore): SharedStore;
}

function link(): Link {
  const waiting = new Set<() => void>();
  let beats: Link["beats"] = "pass";
  return {
    get beats() {
      return beats;
    },
    set beats(value) {
      beats = value;
      if (value !== "hang") for (const goOn of waiting) goOn();
      waiting.clear();
    },
    through: (shared) => ({
      ...shared,
      async urgently(work) {
        if (beats === "hang") await new Promise<void>((resolve) => waiting.add(resolve));
        if (beats === "fail") throw new StoreProblem("unreachable", "store", { detail: "it is away" });
        return shared.urgently(work);
      },
    }),
  };
}

/** Returns a turn that waits until the test releases it, and the handle of the turn's run. */
function midway(then: (handle: LaneHandle) => Promise<string> = async () => "done") {
  const began = Promise.withResolvers<LaneHandle>();
  const goOn = Promise.withResolvers<void>();
  const play: Play = async ({ handle }) => {
    began.resolve(handle);
    await goOn.promise;
    return then(handle);
  };
  return { play, began: began.promise, goOn: () => goOn.resolve() };
}

interface Stage {
  readonly world: FakeWorld;
  readonly cluster: Cluster;
  /** Advances the clock in small steps, so that callers that wait for the store get their answers. */
  pass(ms: number): Promise<void>;
  until(isSo: () => Promise<boolean> | boolean): Promise<void>;
}

async function openStage(): Promise<Stage> {
  const world = fakeWorld();
  const ground = await openCluster(embeddedGround);
  // Processes cannot stop while the clock stands still, so it advances automatically at the end of the test.
  let isOver = false;
  cleanup(() => {
    isOver = true;
  });
  const run = (): void => {
    if (!isOver) void world.advance(50).then(() => setImmediate(run));
  };
  const cluster: Cluster = {
    ...ground,
    async join(...how) {
      const process = await ground.join(...how);
      cleanup(run);
      return process;
    },
  };
  const pass = async (ms: number): Promise<void> => {
    for (let left = ms; left > 0; left -= 50) await world.advance(Math.min(50, left));
  };
  const until: Stage["until"] = async (isSo) => {
    while (!(await isSo())) await pass(50);
  };
  return { world, cluster, pass, until };
}

const ended = async (process: ClusterProcess, runId: string): Promise<boolean> =>
  (await getRun(process.app.store.db, runId))?.endedAt !== undefined;
const runOf = (process: ClusterProcess, runId: string) => getRun(process.app.store.db, runId);

test("a lease is renewed even if a read of the database's clock gets no answer", async () => {
  const { world, cluster, pass, until } = await openStage();
  const work = midway();
  const plays = { [MAIN]: work.play };
  const silent = (shared: SharedStore): SharedStore => ({
    ...shared,
    syncClock: () => new Promise<never>(() => {}),
  });
  const a = await cluster.join({ plays }, world, silent);
  await cluster.join({ plays }, world);
  const { runId } = await a.app.tell(MAIN, "work");
  await work.began;
  await pass(3 * LEASE_MS);
  work.goOn();
  await until(() => ended(a, runId));
  expect(await runOf(a, runId)).toMatchObject({ state: "ok", attempt: 1, crashes: 0 });
});

test("after an outage no process counts as dead until the database has answered for the duration of a lease", async () => {
  const { world, cluster, pass, until } = await openStage();
  const work = midway();
  const plays = { [MAIN]: work.play };
  const [ofA, ofB] = [link(), link()];
  const a = await cluster.join({ plays }, world, ofA.through);
  const b = await cluster.join({ plays }, world, ofB.through);
  const { runId } = await a.app.tell(MAIN, "work");
  await work.began;
  for (const how of ["fail", "hang"] as const) {
    ofA.beats = how;
    ofB.beats = how;
    await pass(2 * LEASE_MS);
    // The other process reaches the database first, and has it alone for several intervals.
    ofB.beats = "pass";
    await pass(LEASE_MS - 500);
    ofA.beats = "pass";
    await pass(LEASE_MS);
  }
  work.goOn();
  await until(() => ended(b, runId));
  expect(await runOf(b, runId)).toMatchObject({ state: "ok", attempt: 1, crashes: 0 });
});

test("if a process's heartbeats no longer arrive, it counts as dead when its lease expires, and stops its runs", async () => {
  const { world, cluster, until } = await openStage();
  const work = midway();
  const ofA = link();
  const a = await cluster.join({ plays: { [MAIN]: work.play } }, world, ofA.through);
  const b = await cluster.join({ plays: { [MAIN]: () => "by b" } }, world);
  const { runId } = await a.app.tell(MAIN, "work");
  const handle = await work.began;
  ofA.beats = "fail";
  const from = world.clock.monotonic();
  await until(() => ended(b, runId));
  const afterMs = world.clock.monotonic() - from;
  expect(afterMs).toBeGreaterThanOrEqual(LEASE_MS - 1_000);
  expect(afterMs).toBeLessThanOrEqual(LEASE_MS + 2_000);
  expect(await runOf(b, runId)).toMatchObject({ reply: "by b", attempt: 2, crashes: 1 });
  ofA.beats = "pass";
  await until(() => handle.signal.aborted);
  work.goOn();
  await makeSessions(a.app.store, OTHER);
  const next = await a.app.tell(OTHER, "again");
  await until(() => ended(b, next.runId));
  expect(await b.app.texts(MAIN)).toEqual(["user: work", "assistant: by b"]);
});

test("no process counts as dead after a jump of the database's clock", async () => {
  const { world, cluster, pass, until } = await openStage();
  let jumpMs = 0;
  const { clock } = world;
  const jumpy: World = { ...world, clock: { ...clock, now: () => clock.now() + jumpMs, at: clock.at } };
  const at: World["clock"]["at"] = (atMs, fire) => clock.at(atMs - jumpMs, fire);
  const own = { ...jumpy, clock: { ...jumpy.clock, at } };
  const work = midway();
  const plays = { [MAIN]: work.play };
  const a = await cluster.join({ plays }, own);
  await cluster.join({ plays }, own);
  const { runId } = await a.app.tell(MAIN, "work", { timeoutMs: 0 });
  await work.began;
  for (const jump of [7_200_000, -3_600_000]) {
    jumpMs = jump;
    await pass(2 * LEASE_MS);
  }
  work.goOn();
  await until(() => ended(a, runId));
  expect(await runOf(a, runId)).toMatchObject({ state: "ok", attempt: 1, crashes: 0 });
});

test.each([
  ["a model call", (handle: LaneHandle) => handle.confirm()],
  ["a tool call", (handle: LaneHandle) => handle.duringCall(async () => {})],
  [
    "a write",
    (handle: LaneHandle) =>
      handle.append({
        ...{ role: "toolResult", id: "result", toolCallId: "c", toolName: "t", isError: false },
        ...{ content: [{ type: "text", text: "x" }], timestamp: 1 },
      }),
  ],
] as const)(
  "%s waits until the lease is renewed, if the lease has expired or its heartbeat failed",
  async (_what, act) => {
    for (const how of ["fail", "hang"] as const) {
      const { world, cluster, pass, until } = await openStage();
      let acted = false;
      const work = midway(async (handle) => {
        await act(handle);
        acted = true;
        return "done";
      });
      const ofA = link();
      const a = await cluster.join({ plays: { [MAIN]: work.play } }, world, ofA.through);
      const { runId } = await a.app.tell(MAIN, "work");
      await work.began;
      ofA.beats = how;
      // A failed heartbeat counts at once; a heartbeat without an answer counts when the lease expires.
      await pass(how === "fail" ? 1_200 : LEASE_MS);
      work.goOn();
      await pass(LEASE_MS);
      expect(acted).toBe(false);
      ofA.beats = "pass";
      await until(() => ended(a, runId));
      expect(acted).toBe(true);
      expect(await runOf(a, runId)).toMatchObject({ state: "ok", attempt: 1 });
    }
  },
);

test("if a run is stopped while it waits for its right to execute, it makes no further call", async () => {
  const { world, cluster, pass, until } = await openStage();
  const lost = Promise.withResolvers<unknown>();
  const work = midway(async (handle) => {
    await handle.duringCall(async () => {}).catch(lost.resolve);
    throw new LostLane("over");
  });
  const ofA = link();
  const a = await cluster.join({ plays: { [MAIN]: work.play } }, world, ofA.through);
  const { runId } = await a.app.tell(MAIN, "work");
  await work.began;
  ofA.beats = "fail";
  await pass(1_200);
  work.goOn();
  await pass(500);
  await a.app.engine.abort({ sessionKey: MAIN });
  expect(await lost.promise).toBeInstanceOf(LostLane);
  await until(() => ended(a, runId));
});

test("a run starts only if the lease was renewed recently; an older lease is renewed first", async () => {
  const { world, cluster, pass, until } = await openStage();
  const ofA = link();
  const a = await cluster.join({ plays: {} }, world, ofA.through);
  ofA.beats = "hang";
  // The lease is still valid, but more than half of it is over.
  await pass(LEASE_MS / 2 + 300);
  const { runId } = await a.app.tell(MAIN, "work");
  await pass(300);
  expect(await runOf(a, runId)).toMatchObject({ state: "queued" });
  ofA.beats = "pass";
  await until(() => ended(a, runId));
  expect(await runOf(a, runId)).toMatchObject({ state: "ok", attempt: 1 });
});

/** Returns a turn that counts how often it begins. */
function counted(reply: string) {
  let begun = 0;
  const play: Play = () => {
    begun += 1;
    return reply;
  };
  return { play, begun: () => begun };
}

/** Starts a run on a process whose claim is committed, but gets its answer only after `answer` is called. */
async function claimWithLateAnswer(a: ClusterProcess) {
  const answer = a.holdNextAnswer();
  const told = a.app.tell(MAIN, "work");
  const runId = async (): Promise<string> => {
    const rows = await a.app.store.db.selectFrom("runs").select("run_id").execute();
    return rows[0]?.run_id ?? "";
  };
  return { answer, told, runId };
}

test("a run does not start on a lease that became too old before the claim was answered", async () => {
  const { world, cluster, pass, until } = await openStage();
  const [ofA, work] = [link(), counted("done")];
  const a = await cluster.join({ plays: { [MAIN]: work.play } }, world, ofA.through);
  const { answer, told } = await claimWithLateAnswer(a);
  ofA.beats = "hang";
  await pass(LEASE_MS / 2 + 300);
  answer();
  const { runId } = await told;
  await pass(300);
  expect(work.begun()).toBe(0);
  ofA.beats = "pass";
  await until(() => ended(a, runId));
  expect(await runOf(a, runId)).toMatchObject({ state: "ok", crashes: 0 });
  expect(await a.app.texts(MAIN)).toEqual(["user: work", "assistant: done"]);
  expect(work.begun()).toBe(1);
});

test("a process that lost its lease before its claim was answered leaves the run to the others", async () => {
  const { world, cluster, pass, until } = await openStage();
  const [ofA, workOfA, work] = [link(), counted("by a"), midway(async () => "by b")];
  const a = await cluster.join({ plays: { [MAIN]: workOfA.play } }, world, ofA.through);
  const b = await cluster.join({ plays: { [MAIN]: work.play } }, world);
  const { answer, told, runId } = await claimWithLateAnswer(a);
  ofA.beats = "fail";
  await until(async () => (await runOf(b, await runId()))?.attempt === 2);
  await work.began;
  ofA.beats = "pass";
  // The process joins again, so its new lease is fresh when the answer arrives.
  await pass(1_000);
  answer();
  await told;
  await pass(1_000);
  expect(workOfA.begun()).toBe(0);
  work.goOn();
  await until(async () => ended(b, await runId()));
  expect(await runOf(b, await runId())).toMatchObject({ reply: "by b", attempt: 2, crashes: 1 });
});

/** Holds the answer to the commit that begins the first delivery of a process. */
function lateAttempt() {
  const asked = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<void>();
  const committed = async ({ db }: Store): Promise<void> => {
    const open = db.selectFrom("deliveries").select("id").where("attempt_open", "=", 1);
    if ((await open.executeTakeFirst()) === undefined) return;
    asked.resolve();
    await answer.promise;
  };
  return { committed, asked: asked.promise, answer: answer.resolve };
}

/** Makes a conversation whose announcement goes to people. */
async function announced({ app }: ClusterProcess, asked: Promise<void>): Promise<void> {
  await makeSessions(app.store, OTHER);
  await app.route(MAIN);
  await app.send(OTHER, MAIN, "tell them", 0);
  await asked;
}

async function deliveryOf({ app }: ClusterProcess) {
  return app.store.db.selectFrom("deliveries").selectAll().executeTakeFirstOrThrow();
}

test("a text is sent only while the lease is valid, if the attempt was answered late", async () => {
  const { world, cluster, pass, until } = await openStage();
  const [ofA, attempt] = [link(), lateAttempt()];
  const a = await cluster.join({ plays: {}, committed: attempt.committed }, world, ofA.through);
  await announced(a, attempt.asked);
  ofA.beats = "hang";
  await pass(LEASE_MS);
  attempt.answer();
  await pass(LEASE_MS);
  expect(a.app.sent).toEqual([]);
  ofA.beats = "pass";
  await until(async () => (await deliveryOf(a)).state === "sent");
  expect(a.app.sent).toHaveLength(1);
  expect(await deliveryOf(a)).toMatchObject({ attempts: 1 });
});

test("a process that lost its lease before its attempt was answered does not send the text", async () => {
  const { world, cluster, pass, until } = await openStage();
  const [ofA, attempt] = [link(), lateAttempt()];
  const options = { plays: {}, committed: attempt.committed, deduplicates: false };
  const a = await cluster.join(options, world, ofA.through);
  const b = await cluster.join({ plays: {}, deduplicates: false }, world);
  await announced(a, attempt.asked);
  ofA.beats = "fail";
  await until(async () => (await deliveryOf(b)).state !== "pending");
  expect(await deliveryOf(b)).toMatchObject({ state: "failed", code: "ambiguous" });
  ofA.beats = "pass";
  // The process joins again, so its new lease is valid when the answer arrives.
  await pass(1_000);
  attempt.answer();
  await pass(LEASE_MS);
  expect(a.app.sent).toEqual([]);
});

test("a run that another process takes while it waits for the lease is not confirmed afterwards", async () => {
  const { world, cluster, pass, until } = await openStage();
  const ofA = link();
  const ends: string[] = [];
  const work = midway(async (handle) => {
    await handle.confirm().then(
      () => ends.push("confirmed"),
      () => ends.push("refused"),
    );
    return "by a";
  });
  const a = await cluster.join({ plays: { [MAIN]: work.play } }, world, ofA.through);
  const b = await cluster.join({ plays: { [MAIN]: async () => "by b" } }, world);
  const { runId } = await a.app.tell(MAIN, "work");
  await work.began;
  ofA.beats = "hang";
  await pass(LEASE_MS);
  work.goOn();
  await until(() => ended(b, runId));
  ofA.beats = "pass";
  await until(() => ends.length > 0);
  expect(ends).toEqual(["refused"]);
  expect(await runOf(b, runId)).toMatchObject({ reply: "by b", attempt: 2 });
});

test("a process that stops leaves the others only after its last text is sent", async () => {
  const { world, cluster, pass, until } = await openStage();
  const [asked, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const channel = async () => {
    asked.resolve();
    await answer.promise;
    return { kind: "sent" as const };
  };
  const a = await cluster.join({ plays: {}, deduplicates: false, channel }, world);
  const b = await cluster.join({ plays: {}, deduplicates: false }, world);
  await announced(a, asked.promise);
  let isOver = false;
  const over = a.app.engine.stop(0).then(() => {
    isOver = true;
  });
  await pass(2 * LEASE_MS);
  expect(await deliveryOf(b)).toMatchObject({ state: "pending", attempt_open: 1 });
  answer.resolve();
  await until(() => isOver);
  await over;
  expect(await deliveryOf(b)).toMatchObject({ state: "sent", attempts: 1 });
  expect([a.app.sent.length, b.app.sent.length]).toEqual([1, 0]);
});

test("a process begins to send a text only after it has joined the others", async () => {
  const { world, cluster, pass, until } = await openStage();
  const [first, ofA] = [await cluster.join({ plays: {} }, world), link()];
  await makeSessions(first.app.store, OTHER);
  await first.app.route(MAIN);
  first.die();
  const disk = await cluster.ground.open(world);
  const route = { channel: "webchat", to: MAIN };
  await disk.transaction((tx) =>
    insertDelivery(tx, {
      ...{ id: "waits", sessionKey: MAIN, kind: "send", route, text: "hello", state: "pending" },
      createdAt: world.clock.now(),
    }),
  );
  ofA.beats = "hang";
  const joining = cluster.join({ plays: {} }, world, ofA.through);
  await pass(1_000);
  const pending = await disk.db.selectFrom("deliveries").selectAll().executeTakeFirstOrThrow();
  expect(pending).toMatchObject({ state: "pending", attempt_open: 0 });
  ofA.beats = "pass";
  const a = await joining;
  await until(async () => (await deliveryOf(a)).state === "sent");
});

test("a process that lost its lease before its hold on an account was answered does not listen to it", async () => {
  const { world, cluster, pass, until } = await openStage();
  const ofA = link();
  const a = await cluster.join({ plays: {} }, world, ofA.through);
  const b = await cluster.join({ plays: {} }, world);
  const began: string[] = [];
  const listenIn = (name: string, { app, world: own }: ClusterProcess): void => {
    const { commit, processId: owner, leaseUntil } = app.engine;
    const accounts = new Accounts({ commit, world: own, owner, leaseUntil });
    cleanup(() => accounts.stop());
    const listen = async ({ signal }: { signal: AbortSignal }): Promise<void> => {
      began.push(name);
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
    };
    accounts.start([{ name: "telegram:1", listen }]);
  };
  const answer = a.holdNextAnswer();
  listenIn("a", a);
  await pass(50);
  ofA.beats = "fail";
  listenIn("b", b);
  await until(() => began.length > 0);
  ofA.beats = "pass";
  // The process joins again, so its new lease is valid when the answer arrives.
  await pass(1_000);
  answer();
  await pass(2 * LEASE_MS);
  expect(began).toEqual(["b"]);
});

/** Returns a turn that the real executor makes with this model. Commands run in `sandbox`. */
function executed(process: () => ClusterProcess, port: ModelPort, sandbox?: Sandbox): Play {
  return async ({ handle }) => {
    const { app, world } = process();
    const executor = createExecutor({
      ...{ settings: app.settings, store: app.store, world, port },
      sandboxFor: async () => ok(sandbox),
      engine: () => app.engine,
    });
    const { state, error } = await executor.execute(handle);
    if (state !== "ok") throw new Error(error);
    return "";
  };
}

/** A command that an owner has to allow. Holds the answer to the commit with which it begins. */
function lateCommand(process: () => ClusterProcess) {
  const answer = Promise.withResolvers<void>();
  let asked: string | undefined;
  let isAnswering = false;
  let started = 0;
  const committed = async ({ db }: Store): Promise<void> => {
    const open = await db.selectFrom("permissions").select("id").executeTakeFirst();
    asked ??= open?.id;
    if (asked === undefined || open !== undefined) return;
    isAnswering = true;
    await answer.promise;
  };
  const model = scriptedModel(({ entries }) =>
    entries.some((entry) => "role" in entry && entry.role === "toolResult")
      ? "done"
      : { toolCalls: [{ name: "exec", arguments: { command: "date" } }] },
  );
  const sandbox: Sandbox = {
    kind: "bubblewrap",
    async run() {
      started += 1;
      return backendFailure("this sandbox only counts");
    },
  };
  const { exec } = settingsWith().tools;
  const choices: Choices = { tools: { exec: { ...exec, approval: "always" } } };
  return {
    options: { plays: { [MAIN]: executed(process, model, sandbox) }, committed, choices },
    started: () => started,
    answer: answer.resolve,
    /** Starts a run that asks, and allows its command. */
    async allowed({ until }: Stage): Promise<string> {
      const { app } = process();
      const { runId } = await app.tell(MAIN, "work");
      await until(() => asked !== undefined);
      const given = { id: asked ?? "", decision: "allow", scope: "once", by: "ann" } as const;
      const rights = { covers: () => true, everySession: true };
      await app.engine.commit((unit) => answerPermission(unit, given, rights));
      await until(() => isAnswering);
      return runId;
    },
  };
}

test.each(["unaware of it", "that has joined again"])(
  "a process that lost its lease before the start of a command was answered, %s, does not run it",
  async (how) => {
    const stage = await openStage();
    const { world, cluster, pass, until } = stage;
    const [ofA, work] = [link(), midway(async () => "by b")];
    const command = lateCommand(() => a);
    const a = await cluster.join(command.options, world, ofA.through);
    const b = await cluster.join({ plays: { [MAIN]: work.play } }, world);
    const runId = await command.allowed(stage);
    ofA.beats = "fail";
    await until(async () => (await runOf(b, runId))?.attempt === 2);
    await work.began;
    if (how === "that has joined again") {
      ofA.beats = "pass";
      await pass(1_000);
    }
    command.answer();
    await pass(LEASE_MS);
    ofA.beats = "pass";
    await pass(LEASE_MS);
    expect(command.started()).toBe(0);
    work.goOn();
    await until(() => ended(b, runId));
    expect(await runOf(b, runId)).toMatchObject({ reply: "by b", attempt: 2, crashes: 1 });
  },
);

test("a command runs only while the lease is valid, if its start was answered late", async () => {
  const stage = await openStage();
  const { world, cluster, pass, until } = stage;
  const ofA = link();
  const command = lateCommand(() => a);
  const a = await cluster.join(command.options, world, ofA.through);
  const runId = await command.allowed(stage);
  ofA.beats = "hang";
  await pass(LEASE_MS);
  command.answer();
  await pass(LEASE_MS);
  expect(command.started()).toBe(0);
  ofA.beats = "pass";
  await until(() => ended(a, runId));
  expect(command.started()).toBe(1);
  expect(await runOf(a, runId)).toMatchObject({ state: "ok", attempt: 1 });
});

test("a model call is repeated only after the lease was renewed", async () => {
  const { world, cluster, pass, until } = await openStage();
  const served = await startModelServer((_, index) => (index === 0 ? rateLimited(10) : "done"));
  cleanup(() => served.close());
  const ofA = link();
  const provider = served.provider("openai-completions");
  const agents = [agentSettings("main", { model: `${provider.id}/${TEST_MODEL.id}` })];
  const choices: Choices = { agents, providers: [provider] };
  const play = executed(() => a, openModelPort(world));
  const a = await cluster.join({ plays: { [MAIN]: play }, choices }, world, ofA.through);
  const { runId } = await a.app.tell(MAIN, "work");
  await until(() => a.app.events.some(({ kind }) => kind === "retry"));
  ofA.beats = "fail";
  await pass(10_000 + 2 * LEASE_MS);
  expect(served.requests).toHaveLength(1);
  ofA.beats = "pass";
  await until(() => ended(a, runId));
  expect(served.requests).toHaveLength(2);
  expect(await runOf(a, runId)).toMatchObject({ state: "ok", attempt: 1 });
});

test("a model is called only after the process has confirmed its right to execute the run", async () => {
  const gate = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  const app = await openTurnApp({
    script: () => "the answer",
    sessionKey: MAIN,
    handed: (handle) => ({
      ...handle,
      confirm: () => {
        asked.resolve();
        return gate.promise;
      },
    }),
  });
  await app.says("a question", { channel: "webchat", to: "x" }, "followup");
  await asked.promise;
  expect(app.model.requests).toHaveLength(0);
  gate.resolve();
  await app.quiet();
  expect(app.model.requests).toHaveLength(1);
});
