// A run in the engine from its acceptance to its end: accepted, queued, claimed, executed, ended. Runs are
// also stopped, returned to their lane and resumed.

import { expect, test } from "vitest";
import type { Run } from "../../src/core/shapes/run.ts";
import type { LaneHandle } from "../../src/engine/run/execution.ts";
import type { EndFacts } from "../../src/engine/run/finish.ts";
import { activeRuns } from "../../src/store/queries/runs/runs.ts";
import { getSession } from "../../src/store/queries/sessions/sessions.ts";
import { readHistory } from "../../src/store/queries/transcripts/transcripts.ts";
import type { Store } from "../../src/store/sql.ts";
import { assistantText, endOf, makeSessions, openTestEngine, runRow } from "../kit/engine/engine.ts";
import { deltas, whole } from "../kit/live-text.ts";
import { type FakeWorld, fakeWorld } from "../kit/world.ts";

const ok = (reply: string): EndFacts => ({ state: "ok", reply });

/** Answers with the input in capitals, as one stored message. */
async function shout(handle: LaneHandle): Promise<EndFacts> {
  const reply = handle.run.input.text.toUpperCase();
  await handle.append(assistantText(`m-${handle.run.runId}`, reply));
  return ok(reply);
}

/** Returns an executor whose runs end when the test releases them. */
function gated() {
  const gates = new Map<string, PromiseWithResolvers<EndFacts>>();
  const started: string[] = [];
  const waiting = new Map<string, () => void>();
  return {
    started,
    async execute(handle: LaneHandle): Promise<EndFacts> {
      const name = handle.run.input.text;
      const gate = Promise.withResolvers<EndFacts>();
      gates.set(name, gate);
      started.push(name);
      waiting.get(name)?.();
      handle.signal.addEventListener("abort", () => gate.resolve({ state: "aborted" }), { once: true });
      return gate.promise;
    },
    async hasStarted(name: string): Promise<void> {
      if (started.includes(name)) return;
      await new Promise<void>((resolve) => waiting.set(name, resolve));
    },
    end(name: string, facts: EndFacts = ok(name)): void {
      gates.get(name)?.resolve(facts);
    },
  };
}

async function texts(store: Store, key: string): Promise<string[]> {
  const session = await getSession(store.db, key);
  const page = await readHistory(store.db, {
    sessionId: session?.sessionId ?? "",
    limit: 100,
    includeTools: true,
  });
  if (!page.ok) throw new Error(page.error);
  return page.value.messages.map(
    (m) => `${m.role}: ${m.content.map((b) => (b.type === "text" ? b.text : b.type)).join()}`,
  );
}

async function accept(
  engine: Awaited<ReturnType<typeof openTestEngine>>["engine"],
  sessionKey: string,
  text: string,
): Promise<Run> {
  const accepted = await engine.accept({ sessionKey, input: { text } });
  if (!accepted.ok) throw new Error(accepted.error);
  return accepted.value.run;
}

test("I2: an accepted message is on disk before its caller is answered, and its run ends ok", async () => {
  const { engine, store } = await openTestEngine({ execute: shout });
  await makeSessions(store, "a");
  const run = await accept(engine, "a", "hello");
  expect((await runRow(store, run.runId)).input.text).toBe("hello");
  const ended = await endOf(engine, run.runId);
  expect(ended).toMatchObject({ state: "ok", reply: "HELLO", attempt: 1 });
  expect(await texts(store, "a")).toEqual(["user: hello", "assistant: HELLO"]);
});

test("I3: messages to one session run in the order in which they were accepted, one at a time", async () => {
  let inside = 0;
  let most = 0;
  const seen: string[] = [];
  const { engine, store } = await openTestEngine({
    async execute(handle) {
      inside += 1;
      most = Math.max(most, inside);
      seen.push(handle.run.input.text);
      await handle.append(assistantText(`m-${handle.run.runId}`, "x"));
      inside -= 1;
      return ok("x");
    },
  });
  await makeSessions(store, "a");
  const names = Array.from({ length: 40 }, (_, at) => `n${at}`);
  const runs = await Promise.all(names.map((name) => accept(engine, "a", name)));
  await Promise.all(runs.map((run) => endOf(engine, run.runId)));
  expect(most).toBe(1);
  const byLane = [...runs].sort((x, y) => x.laneSeq - y.laneSeq).map((run) => run.input.text);
  expect(seen).toEqual(byLane);
});

test("I1: the database itself refuses a second active run in the same lane", async () => {
  const gate = gated();
  const { engine, store } = await openTestEngine({ execute: gate.execute });
  await makeSessions(store, "a");
  await accept(engine, "a", "one");
  const second = await accept(engine, "a", "two");
  await gate.hasStarted("one");
  const steal = store.transaction((tx) =>
    tx.updateTable("runs").set({ state: "running" }).where("run_id", "=", second.runId).execute(),
  );
  await expect(steal).rejects.toThrow(/UNIQUE/i);
  gate.end("one");
  await gate.hasStarted("two");
  gate.end("two");
  await endOf(engine, second.runId);
});

test("a run id is accepted once; another request with the same id is a conflict", async () => {
  const { engine, store } = await openTestEngine({ execute: shout });
  await makeSessions(store, "a");
  const first = await engine.accept({ runId: "r1", sessionKey: "a", input: { text: "hello" } });
  const again = await engine.accept({ runId: "r1", sessionKey: "a", input: { text: "hello" } });
  const other = await engine.accept({ runId: "r1", sessionKey: "a", input: { text: "different" } });
  expect(first).toMatchObject({ ok: true, value: { fresh: true } });
  expect(again).toMatchObject({ ok: true, value: { fresh: false, run: { runId: "r1" } } });
  expect(other).toMatchObject({ ok: false, code: "idempotency_conflict" });
});

test("a full queue refuses new runs with queue_full", async () => {
  const gate = gated();
  const { engine, store } = await openTestEngine({ execute: gate.execute, settings: { queueMax: 2 } });
  await makeSessions(store, "a");
  await accept(engine, "a", "running");
  await gate.hasStarted("running");
  await accept(engine, "a", "q1");
  await accept(engine, "a", "q2");
  const refused = await engine.accept({ sessionKey: "a", input: { text: "q3" } });
  expect(refused).toMatchObject({ ok: false, code: "queue_full" });
  expect((await activeRuns(store.db, "a")).map((run) => run.input.text)).toEqual(["running", "q1", "q2"]);
});

test("I8: a chain accepts no runs beyond its hop limit and its run limit", async () => {
  const { engine, store } = await openTestEngine({
    execute: shout,
    settings: { maxHops: 2, maxChainRuns: 3 },
  });
  await makeSessions(store, "a");
  const send = (hop: number) =>
    engine.accept({ sessionKey: "a", input: { text: "x" }, chain: { chainId: "c", hop } });
  expect(await send(3)).toMatchObject({ ok: false, code: "chain_limit" });
  for (let at = 0; at < 3; at += 1) expect(await send(2)).toMatchObject({ ok: true });
  expect(await send(1)).toMatchObject({ ok: false, code: "chain_limit" });
});

test("an abort ends queued and running runs, and later runs of the lane execute", async () => {
  const gate = gated();
  const { engine, store } = await openTestEngine({ execute: gate.execute });
  await makeSessions(store, "a");
  const running = await accept(engine, "a", "one");
  const queued = await accept(engine, "a", "two");
  await gate.hasStarted("one");
  const aborted = await engine.abort({ sessionKey: "a" });
  expect(aborted).toEqual({ aborted: true, runIds: [running.runId, queued.runId] });
  expect((await runRow(store, running.runId)).state).toBe("aborted");
  expect((await runRow(store, queued.runId)).state).toBe("aborted");
  const later = await accept(engine, "a", "three");
  await gate.hasStarted("three");
  gate.end("three");
  expect((await endOf(engine, later.runId)).state).toBe("ok");
  expect(gate.started).toEqual(["one", "three"]);
  expect((await getSession(store.db, "a"))?.abortedLastRun).toBe(false);
});

test("only the end that is committed first counts; a later abort changes nothing", async () => {
  const { engine, store } = await openTestEngine({ execute: shout });
  await makeSessions(store, "a");
  const run = await accept(engine, "a", "hi");
  await endOf(engine, run.runId);
  expect(await engine.abort({ sessionKey: "a", runId: run.runId })).toEqual({ aborted: false, runIds: [] });
  expect((await runRow(store, run.runId)).state).toBe("ok");
});

test("an aborted run keeps its text and leaves no tool call without a result", async () => {
  const writing = Promise.withResolvers<void>();
  const { engine, store } = await openTestEngine({
    async execute(handle) {
      const call = { type: "toolCall" as const, id: "t1", name: "exec", arguments: {} };
      await handle.append({ ...assistantText("m1", ""), content: [call], stopReason: "toolUse" });
      handle.text(whole("half a sen"));
      writing.resolve();
      await new Promise((resolve) => handle.signal.addEventListener("abort", resolve));
      return { state: "aborted" };
    },
  });
  await makeSessions(store, "a");
  const run = await accept(engine, "a", "go");
  await writing.promise;
  await engine.abort({ sessionKey: "a", runId: run.runId });
  const lines = await texts(store, "a");
  expect(lines).toEqual([
    "user: go",
    "assistant: toolCall",
    "toolResult: The run ended (aborted) before this call was answered.",
    "assistant: half a sen",
  ]);
});

/** Opens an engine whose run writes by its handle until `done` is resolved, and then ends with this reply. */
async function openWriting(world: FakeWorld, reply: string) {
  const writing = Promise.withResolvers<LaneHandle>();
  const done = Promise.withResolvers<void>();
  const opened = await openTestEngine({
    world,
    async execute(handle) {
      writing.resolve(handle);
      await done.promise;
      return ok(reply);
    },
  });
  return { ...opened, writing, done };
}

test("X3: if text arrives fast, it is published at intervals, and the last part follows at the end of an interval", async () => {
  const world = fakeWorld();
  const { engine, store, writing, done } = await openWriting(world, "one two three");
  const shown: string[] = [];
  engine.bus.subscribe((event) => {
    if (event.kind === "text") shown.push(`${event.offset}:${event.text}`);
  });
  await makeSessions(store, "a");
  const run = await accept(engine, "a", "count");
  const handle = await writing.promise;
  const delta = deltas();
  for (const text of ["one", "one two", "one two three"]) handle.text(delta(text));
  expect(shown).toEqual(["0:one"]);
  await world.advance(49);
  expect(shown).toEqual(["0:one"]);
  await world.advance(1);
  expect(shown).toEqual(["0:one", "3: two three"]);
  handle.text(delta("one two three and what nobody waits for"));
  done.resolve();
  await endOf(engine, run.runId);
  await world.advance(50);
  expect(shown).toEqual(["0:one", "3: two three"]);
});

test("X3: live thinking is published at intervals like text, at most 256 KiB of each message", async () => {
  const world = fakeWorld();
  const { engine, store, writing, done } = await openWriting(world, "done");
  const shown: string[] = [];
  engine.bus.subscribe((event) => {
    if (event.kind === "thinking") shown.push(`${event.part} ${event.offset}:${event.text.slice(0, 9)}`);
  });
  await makeSessions(store, "a");
  const run = await accept(engine, "a", "think");
  const handle = await writing.promise;
  const delta = deltas();
  for (const text of ["one", "one two", "one two three"]) handle.thinking(delta(text));
  expect(shown).toEqual(["1.0 0:one"]);
  await world.advance(50);
  expect(shown.splice(0)).toEqual(["1.0 0:one", "1.0 3: two thre"]);
  // A retry of the model call starts the thinking again.
  handle.thinking(whole("again"));
  await world.advance(50);
  expect(shown.splice(0)).toEqual(["1.0 0:again"]);
  handle.thinking({ offset: 5, text: "é".repeat(128 * 1024) });
  handle.thinking({ offset: 5 + 128 * 1024, text: "more" });
  await world.advance(200);
  expect(shown).toEqual([]);
  const call = { type: "toolCall" as const, id: "t1", name: "exec", arguments: {} };
  await handle.append({ ...assistantText("m1", ""), content: [call], stopReason: "toolUse" });
  handle.thinking(whole("next"));
  await world.advance(50);
  expect(shown).toEqual(["1.1 0:next"]);
  done.resolve();
  await endOf(engine, run.runId);
});

test("I1: a run that lost its lane commits nothing", async () => {
  const started = Promise.withResolvers<LaneHandle>();
  const go = Promise.withResolvers<void>();
  let outcome: unknown;
  const { engine, store } = await openTestEngine({
    async execute(handle) {
      if (handle.run.input.text !== "one") return ok("later");
      started.resolve(handle);
      await go.promise;
      const call = { type: "toolCall" as const, id: "t1", name: "exec", arguments: {} };
      const late = { ...assistantText("late", ""), content: [call], stopReason: "toolUse" };
      outcome = await handle.append(late).then(
        () => "written",
        (error: unknown) => (error as Error).constructor.name,
      );
      // The final text would be stored together with the end of the run. The end is refused, so the text is,
      // too.
      await handle.append(assistantText("final", "too late"));
      return ok("too late");
    },
  });
  await makeSessions(store, "a");
  const run = await accept(engine, "a", "one");
  await started.promise;
  await engine.abort({ sessionKey: "a" });
  const next = await accept(engine, "a", "two");
  go.resolve();
  await endOf(engine, next.runId);
  expect(outcome).toBe("LostLane");
  expect((await runRow(store, run.runId)).state).toBe("aborted");
  expect(await texts(store, "a")).toEqual(["user: one", "user: two"]);
});

test("a run that exceeds its time limit ends as timeout with its text so far", async () => {
  const { engine, store } = await openTestEngine({
    async execute(handle) {
      handle.text(whole("thinking about"));
      await new Promise((resolve) => handle.signal.addEventListener("abort", resolve));
      return { state: "aborted" };
    },
  });
  await makeSessions(store, "a");
  const accepted = await engine.accept({ sessionKey: "a", input: { text: "slow" }, timeoutMs: 20 });
  if (!accepted.ok) throw new Error(accepted.error);
  const ended = await endOf(engine, accepted.value.run.runId);
  expect(ended).toMatchObject({ state: "timeout", code: "run_timeout" });
  expect(await texts(store, "a")).toEqual(["user: slow", "assistant: thinking about"]);
});

test("a wait for a run returns its end, before, during and after the run; for an unknown run it returns undefined", async () => {
  const gate = gated();
  const { engine, store } = await openTestEngine({ execute: gate.execute });
  await makeSessions(store, "a");
  const run = await accept(engine, "a", "one");
  await gate.hasStarted("one");
  const early = await engine.waitForRun(run.runId, engine.now() + 5);
  expect(early?.state).toBe("running");
  const during = engine.waitForRun(run.runId, engine.now() + 10_000);
  gate.end("one");
  expect((await during)?.state).toBe("ok");
  expect((await engine.waitForRun(run.runId, engine.now() + 10_000))?.state).toBe("ok");
  expect(await engine.waitForRun("nobody", engine.now() + 10_000)).toBeUndefined();
});

test("a planned stop returns unfinished runs to their lanes, and the next start resumes them", async () => {
  const gate = gated();
  const first = await openTestEngine({ execute: gate.execute });
  await makeSessions(first.store, "a");
  const run = await accept(first.engine, "a", "one");
  const next = await accept(first.engine, "a", "two");
  await gate.hasStarted("one");
  await first.engine.stop(5);
  expect((await runRow(first.store, run.runId)).state).toBe("queued");
  expect(await first.engine.accept({ sessionKey: "a", input: { text: "late" } })).toMatchObject({
    code: "shutting_down",
  });
  await first.store.close();
  const second = await openTestEngine({ dir: first.dir, execute: shout });
  const ended = await endOf(second.engine, run.runId);
  expect(ended).toMatchObject({ state: "ok", reply: "ONE", crashes: 0, attempt: 2 });
  await endOf(second.engine, next.runId);
  expect(await texts(second.store, "a")).toEqual([
    "user: one",
    "assistant: ONE",
    "user: two",
    "assistant: TWO",
  ]);
});
