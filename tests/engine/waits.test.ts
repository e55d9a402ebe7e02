// Runs that wait for runs of other sessions: they hold no slot, form no cycle, and continue after a crash.

import { expect, test } from "vitest";
import { optional } from "../../src/core/optional.ts";
import type { Result } from "../../src/core/shapes/errors.ts";
import type { Run } from "../../src/core/shapes/run.ts";
import type { Engine } from "../../src/engine/engine.ts";
import type { Accepted } from "../../src/engine/run/accept.ts";
import type { LaneHandle } from "../../src/engine/run/execution.ts";
import type { EndFacts } from "../../src/engine/run/finish.ts";
import { isAnswered, waitsOfCall } from "../../src/store/queries/runs/waits.ts";
import { endOf, makeSessions, openTestEngine, runRow } from "../kit/engine/engine.ts";

type Script = (handle: LaneHandle, engine: Engine) => Promise<EndFacts>;

const ok = (reply: string): EndFacts => ({ state: "ok", reply });

/** Sends to another session from the current run and waits, as `sessions_send` does. */
async function sendAndWait(
  handle: LaneHandle,
  engine: Engine,
  args: { to: string; text: string; call?: string; waitMs?: number },
): Promise<string> {
  const callId = `${handle.run.runId}:${args.call ?? args.to}`;
  return handle.duringCall(async () => {
    const sent = await engine.commit(async (unit): Promise<Result<Accepted>> => {
      const accepted = await engine.acceptIn(unit, {
        sessionKey: args.to,
        input: { text: args.text },
        callId,
      });
      if (!accepted.ok || !accepted.value.fresh) return accepted;
      const deadlineAt = unit.now + (args.waitMs ?? 10_000);
      const opened = await handle.wait.open(unit, {
        callId,
        kind: "run",
        targets: [{ id: accepted.value.run.runId, sessionKey: args.to }],
        deadlineAt,
      });
      return opened.ok ? accepted : opened;
    });
    if (!sent.ok) return `${sent.code}: ${sent.error}`;
    const waits = await waitsOfCall(engine.store.db, callId);
    const [answered] = (await handle.wait.settle(waits, "all")).filter(isAnswered);
    const run = await engine.waitForRun(answered?.targetId ?? "", 0);
    return run === undefined ? "timeout" : `${run.state} ${run.reply ?? ""}`;
  });
}

async function open(
  scripts: Record<string, Script>,
  settings: { maxConcurrent?: number } = {},
  dir?: string,
) {
  let engine: Engine | undefined;
  const opened = await openTestEngine({
    ...optional({ dir }),
    settings,
    start: false,
    async execute(handle) {
      const script = scripts[handle.run.sessionKey];
      if (engine === undefined || script === undefined) return ok(`echo ${handle.run.input.text}`);
      return script(handle, engine);
    },
  });
  engine = opened.engine;
  await makeSessions(opened.store, "a", "b", "c", "d");
  await opened.engine.start();
  return opened;
}

async function tell(engine: Engine, sessionKey: string, text = "go"): Promise<Run> {
  const accepted = await engine.accept({ sessionKey, input: { text } });
  if (!accepted.ok) throw new Error(accepted.error);
  return accepted.value.run;
}

test("I6: with one slot, a chain of waiting runs still finishes", async () => {
  const { engine } = await open(
    {
      a: async (handle, e) => ok(await sendAndWait(handle, e, { to: "b", text: "hi" })),
      b: async (handle, e) => ok(await sendAndWait(handle, e, { to: "c", text: "hi" })),
      c: async (handle, e) => ok(await sendAndWait(handle, e, { to: "d", text: "deep" })),
    },
    { maxConcurrent: 1 },
  );
  const run = await tell(engine, "a");
  expect((await endOf(engine, run.runId)).reply).toBe("ok ok ok echo deep");
  expect((await engine.load()).slots.taken).toBe(0);
});

test("I6: a run with several parallel sends waits for all of them, holds no slot while it waits, and is shown as waiting", async () => {
  const release = Promise.withResolvers<void>();
  const inside = new Set<string>();
  const both = Promise.withResolvers<void>();
  const leaf: Script = async (handle) => {
    inside.add(handle.run.sessionKey);
    if (inside.size === 2) both.resolve();
    await release.promise;
    return ok(handle.run.sessionKey);
  };
  const { engine, store } = await open(
    {
      a: async (handle, e) => {
        const replies = await Promise.all(["b", "c"].map((to) => sendAndWait(handle, e, { to, text: "x" })));
        return ok(replies.join());
      },
      b: leaf,
      c: leaf,
    },
    { maxConcurrent: 2 },
  );
  const run = await tell(engine, "a");
  await both.promise;
  expect((await runRow(store, run.runId)).state).toBe("waiting");
  expect((await engine.load()).slots).toEqual({ max: 2, taken: 2 });
  release.resolve();
  expect((await endOf(engine, run.runId)).reply).toBe("ok b,ok c");
});

test("I7: a wait that would close a cycle is refused, and its message is not queued", async () => {
  const { engine, store } = await open({
    a: async (handle, e) => ok(await sendAndWait(handle, e, { to: "b", text: "question" })),
    b: async (handle, e) => ok(await sendAndWait(handle, e, { to: "c", text: "question" })),
    c: async (handle, e) => ok(await sendAndWait(handle, e, { to: "a", text: "back" })),
  });
  const run = await tell(engine, "a");
  const reply = (await endOf(engine, run.runId)).reply ?? "";
  expect(reply).toContain("wait_cycle");
  expect(reply).toContain("c -> a -> b -> c");
  const rows = await store.db
    .selectFrom("runs")
    .select("input_json")
    .where("session_key", "=", "a")
    .execute();
  expect(rows).toHaveLength(1);
});

test("I7: if two sessions send to each other at the same moment and wait, exactly one send is refused", async () => {
  for (let round = 0; round < 20; round += 1) {
    const arrived: (() => void)[] = [];
    const meet = async (): Promise<void> => {
      await new Promise<void>((resolve) => {
        arrived.push(resolve);
        if (arrived.length === 2) for (const go of arrived) go();
      });
    };
    const asks =
      (to: string): Script =>
      async (handle, e) => {
        if (handle.run.input.text !== "go") return ok("answer");
        await meet();
        return ok(await sendAndWait(handle, e, { to, text: "question" }));
      };
    const { engine, store } = await open({ a: asks("b"), b: asks("a") });
    const runs = await Promise.all([tell(engine, "a"), tell(engine, "b")]);
    const replies = await Promise.all(runs.map(async (run) => (await endOf(engine, run.runId)).reply ?? ""));
    expect(replies.filter((reply) => reply.startsWith("wait_cycle"))).toHaveLength(1);
    expect(replies.filter((reply) => reply === "ok answer")).toHaveLength(1);
    await engine.stop(0);
    await store.close();
  }
});

test("aborting a waiting run ends its wait, but not the run that it waited for", async () => {
  const release = Promise.withResolvers<void>();
  const started = Promise.withResolvers<string>();
  const { engine, store } = await open({
    a: async (handle, e) => ok(await sendAndWait(handle, e, { to: "b", text: "x" })),
    b: async (handle) => {
      started.resolve(handle.run.runId);
      await release.promise;
      return ok("done");
    },
  });
  const run = await tell(engine, "a");
  const peer = await started.promise;
  expect(await engine.abort({ sessionKey: "a", runId: run.runId })).toMatchObject({ aborted: true });
  expect((await waitsOfCall(store.db, `${run.runId}:b`))[0]?.state).toBe("ended");
  // Session a no longer waits, so b may wait for a.
  release.resolve();
  expect((await endOf(engine, peer)).state).toBe("ok");
});

test("a run that is resumed after a crash waits for the same run again, with its original deadline", async () => {
  let answer = false;
  const started = Promise.withResolvers<void>();
  const scripts: Record<string, Script> = {
    a: async (handle, e) => ok(await sendAndWait(handle, e, { to: "b", text: "x" })),
    b: async (handle) => {
      started.resolve();
      if (!answer) await new Promise((resolve) => handle.signal.addEventListener("abort", resolve));
      return answer ? ok("after the crash") : { state: "aborted" };
    },
  };
  const first = await open(scripts);
  const run = await tell(first.engine, "a");
  await started.promise;
  const [before] = await waitsOfCall(first.store.db, `${run.runId}:b`);
  await first.store.close();
  answer = true;
  const second = await open(scripts, {}, first.dir);
  expect((await endOf(second.engine, run.runId)).reply).toBe("ok after the crash");
  expect(await waitsOfCall(second.store.db, `${run.runId}:b`)).toEqual([{ ...before, state: "answered" }]);
  const rows = await second.store.db
    .selectFrom("runs")
    .select("run_id")
    .where("session_key", "=", "b")
    .execute();
  expect(rows).toHaveLength(1);
});
