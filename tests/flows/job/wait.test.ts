// A requester waits for its sub-agents with `subagents {action: "wait"}`.

import { describe, expect, test } from "vitest";
import type { Settings } from "../../../src/core/shapes/settings/settings.ts";
import { insertSession } from "../../../src/store/queries/sessions/sessions.ts";
import { gate } from "../../contract/cluster-stage.ts";
import { assistantText, endOf, sessionRow, temporaryFolder } from "../../kit/engine/engine.ts";
import { openSpawnApp, type SpawnApp, type SpawnPlay, type Turn } from "../../kit/engine/spawn-app.ts";
import { until } from "../../kit/until.ts";
import { settingsWith } from "../../tools/app.ts";

const MAIN = "agent:main:main";

function settings(subagents: Partial<Settings["subagents"]> = {}, more: Partial<Settings> = {}): Settings {
  const base = settingsWith();
  return { ...base, ...more, subagents: { ...base.subagents, ...subagents } };
}

interface Waited {
  readonly status: string;
  readonly code?: string;
  readonly error?: string;
  readonly results: { sessionKey: string; label?: string; status: string; result: string; notes?: string }[];
  readonly unfinished: { sessionKey: string }[];
}

async function waits(turn: Turn, args: Record<string, unknown> = {}, call = "wait"): Promise<Waited> {
  return (await turn.tool("subagents", { action: "wait", ...args }, call)) as unknown as Waited;
}

async function spawns(turn: Turn, tasks: readonly string[], args: Record<string, unknown> = {}) {
  const made = tasks.map((task) => turn.tool("sessions_spawn", { task, label: task, ...args }, task));
  return (await Promise.all(made)).map((result) => String(result.childSessionKey));
}

const worker: SpawnPlay = (turn) => {
  if (turn.step !== "announce") return `did ${turn.input}`;
  return `Result: ${/Your result so far:\n\| (.*)/.exec(turn.handle.run.input.context ?? "")?.[1]}`;
};

/** Returns a play: main plays `boss` for a person's message, and answers "woken" if a result woke it. */
const play =
  (boss: SpawnPlay, child: SpawnPlay = worker): SpawnPlay =>
  (turn) => {
    if (turn.session.key !== MAIN) return child(turn);
    return turn.handle.run.input.provenance === undefined ? boss(turn) : "woken";
  };

async function ask(app: SpawnApp): Promise<Waited> {
  const run = await app.tell(MAIN, "go");
  const end = await endOf(app.engine, run.runId);
  return JSON.parse(end.reply ?? "{}");
}

const kinds = async (app: SpawnApp): Promise<string[]> => (await app.runs(MAIN)).map((run) => run.kind);

describe("waiting for sub-agents", () => {
  test("a wait returns all results when all sub-agents have finished", async () => {
    const app = await openSpawnApp({
      settings: settings(),
      play: play(async (turn) => {
        await spawns(turn, ["one", "two", "three"]);
        return JSON.stringify(await waits(turn));
      }),
    });
    const { status, results, unfinished } = await ask(app);
    expect(status).toBe("ok");
    expect(results.map(({ label, status, result }) => `${label} ${status}: ${result}`).sort()).toEqual([
      "one ok: did one",
      "three ok: did three",
      "two ok: did two",
    ]);
    expect(unfinished).toEqual([]);
  });

  test("with `any: true` a wait returns when the first sub-agent has finished, and the next call returns the rest", async () => {
    const held = gate();
    const app = await openSpawnApp({
      settings: settings(),
      play: play(
        async (turn) => {
          await spawns(turn, ["slow", "fast"]);
          const first = await waits(turn, { any: true }, "first");
          held.open();
          return JSON.stringify([
            first,
            await waits(turn, { any: true }, "second"),
            await waits(turn, {}, "third"),
          ]);
        },
        async (turn) => {
          if (turn.step !== "announce" && turn.input === "slow") await held.pass();
          return worker(turn);
        },
      ),
    });
    const [first, second, third] = (await ask(app)) as unknown as Waited[];
    expect(first?.results.map(({ label }) => label)).toEqual(["fast"]);
    expect(first?.unfinished).toMatchObject([{ label: "slow" }]);
    expect(second?.results.map(({ label }) => label)).toEqual(["slow"]);
    expect(third).toMatchObject({ status: "ok", results: [], unfinished: [] });
  });

  test("a wait also returns a result that arrived before it began", async () => {
    const app = await openSpawnApp({
      settings: settings(),
      play: play(async (turn) => {
        const [key] = await spawns(turn, ["quick"]);
        await expect
          .poll(async () => (await turn.tool("subagents", {}, "list")).subagents)
          .toMatchObject([{ sessionKey: key, finished: true }]);
        return JSON.stringify(await waits(turn));
      }),
    });
    expect((await ask(app)).results).toMatchObject([{ status: "ok", result: "did quick" }]);
  });

  test("I6: a waiting requester holds no slot, so its sub-agents can run even if there is only one slot", async () => {
    const app = await openSpawnApp({
      settings: settings({}, { maxConcurrent: 1 }),
      play: play(async (turn) => {
        await spawns(turn, ["one", "two"]);
        return JSON.stringify(await waits(turn));
      }),
    });
    expect((await ask(app)).results).toHaveLength(2);
  });

  test("if a wait times out, the job continues and is announced", async () => {
    const held = gate();
    const app = await openSpawnApp({
      settings: settings(),
      play: play(
        async (turn) => {
          await spawns(turn, ["slow", "fast"]);
          await waits(turn, { any: true }, "first");
          return JSON.stringify(await waits(turn, { timeoutSeconds: 0.01 }));
        },
        async (turn) => {
          if (turn.step !== "announce" && turn.input === "slow") await held.pass();
          return worker(turn);
        },
      ),
    });
    const waited = await ask(app);
    expect(waited).toMatchObject({ status: "timeout", results: [], unfinished: [{ label: "slow" }] });
    expect(waited.error).toContain("They still run: do not start them again.");
    held.open();
    await app.quiet();
    expect((await app.texts(MAIN)).filter((line) => line.includes("Result: did slow"))).toHaveLength(1);
  });

  test("a wait reports a failed or cancelled job with its text so far", async () => {
    const held = gate();
    const app = await openSpawnApp({
      settings: settings(),
      play: play(
        async (turn) => {
          const [, never] = await spawns(turn, ["breaks", "never"]);
          await held.reached;
          await turn.tool("subagents", { action: "cancel", sessionKey: never }, "cancel");
          return JSON.stringify(
            await waits(turn, { sessionKeys: (await app.children(MAIN)).map((c) => c.key) }),
          );
        },
        async (turn) => {
          if (turn.input === "breaks") throw new Error("the tool broke");
          await held.pass();
          return "too late";
        },
      ),
    });
    const { results } = await ask(app);
    held.open();
    expect(results.find(({ label }) => label === "breaks")).toMatchObject({
      status: "error",
      notes: "the tool broke",
    });
    expect(results.find(({ label }) => label === "never")).toMatchObject({
      status: "aborted",
      notes: "it was cancelled",
    });
  });

  test("a wait for a session that is not the caller's sub-agent is refused, and the error lists the caller's sub-agents", async () => {
    const app = await openSpawnApp({
      settings: settings(),
      play: play(async (turn) => {
        const [key] = await spawns(turn, ["one"]);
        const refused = await waits(turn, { sessionKeys: ["agent:main:main"] });
        return JSON.stringify({ ...refused, key });
      }),
    });
    const refused = (await ask(app)) as unknown as { code: string; hint: string; key: string };
    expect(refused.code).toBe("not_visible");
    expect(refused.hint).toContain(refused.key);
  });

  test("an operator who acts for a session can wait for its sub-agents", async () => {
    const app = await openSpawnApp({ settings: settings(), play: play(() => "", worker) });
    await app.call(MAIN, "sessions_spawn", { task: "one" });
    expect(await app.call(MAIN, "subagents", { action: "wait" })).toMatchObject({
      status: "ok",
      results: [{ status: "ok", result: "did one" }],
    });
  });
});

describe("a result that a wait returned", () => {
  const bossOf =
    (announce: string): SpawnPlay =>
    async (turn) => {
      await spawns(turn, ["one", "two"], { announce });
      return JSON.stringify(await waits(turn));
    };

  test('with announce: "wake", does not wake the requester again; its transcript has it once', async () => {
    const app = await openSpawnApp({ settings: settings(), play: play(bossOf("wake")) });
    await app.route(MAIN);
    expect((await ask(app)).results).toHaveLength(2);
    await app.quiet();
    expect(await kinds(app)).toEqual(["turn", "append", "append"]);
    expect((await app.texts(MAIN)).filter((line) => line.startsWith("user: Status: ok"))).toHaveLength(2);
  });

  test("if a run is stopped before its wait ends, the results that have arrived wake its session", async () => {
    const held = gate();
    const app = await openSpawnApp({
      settings: settings(),
      play: play(
        async (turn) => {
          await spawns(turn, ["fast", "slow"], { announce: "wake" });
          return JSON.stringify(await waits(turn));
        },
        async (turn) => {
          if (turn.step !== "announce" && turn.input === "slow") await held.pass();
          return worker(turn);
        },
      ),
    });
    const run = await app.tell(MAIN, "go");
    await expect.poll(async () => (await app.runs(MAIN)).length).toBe(2);
    await app.engine.abort({ sessionKey: MAIN, runId: run.runId });
    held.open();
    await app.quiet();
    expect((await app.runs(MAIN)).map(({ kind, state }) => `${kind} ${state}`)).toEqual([
      "turn aborted",
      "turn ok",
    ]);
  });

  test("a sub-agent that waits for its own sub-agents answers once, with their combined results", async () => {
    const app = await openSpawnApp({
      settings: settings({ maxSpawnDepth: 2 }),
      play: play(
        async (turn) => {
          await spawns(turn, ["parent"]);
          return JSON.stringify(await waits(turn));
        },
        async (turn) => {
          if (turn.step === "announce" || turn.input !== "parent") return worker(turn);
          await spawns(turn, ["a", "b"]);
          return `made of ${(await waits(turn)).results
            .map(({ result }) => result)
            .sort()
            .join(" and ")}`;
        },
      ),
    });
    const { results } = await ask(app);
    expect(results).toMatchObject([{ status: "ok", result: "made of did a and did b" }]);
    const [parent] = await app.children(MAIN);
    expect((await app.runs(parent?.key ?? "")).map(({ kind, flow }) => `${kind} ${flow?.step}`)).toEqual([
      "turn task",
      "append undefined",
      "append undefined",
      "turn announce",
    ]);
  });
});

describe("I7: waits for jobs are edges of the wait graph", () => {
  /** Allows sub-agents to send messages and to spawn, also while their requester waits for them. */
  const withSend = (): Settings => {
    const base = settings({ maxSpawnDepth: 2 });
    const tools = {
      ...base.tools,
      subagents: { allow: ["sessions_send", "sessions_spawn", "subagents"], deny: [] },
    };
    return { ...base, tools: { ...tools, visibility: "agent" } };
  };

  /**
   * Returns a play in which a grandchild runs `leaf`, because a sub-agent may not send to its own
   * requester.
   */
  const nested = (boss: SpawnPlay, leaf: SpawnPlay): SpawnPlay =>
    play(boss, async (turn) => {
      if (turn.step === "announce") return "Result: done";
      if (turn.input === "leaf") return leaf(turn);
      if (turn.input !== "nest") return "heard";
      await spawns(turn, ["leaf"]);
      return "spawned";
    });
  const statesOf = async (app: SpawnApp, key: string) => (await app.runs(key)).map(({ state }) => state);
  const askBoss = (turn: Turn) =>
    turn.tool("sessions_send", { sessionKey: MAIN, message: "and you?", timeoutSeconds: 30 });

  test("a wait does not return a sub-agent's result under the name of the sub-agent that waited for it", async () => {
    const app = await openSpawnApp({
      settings: settings({ maxSpawnDepth: 2 }),
      play: play(
        async (turn) => {
          await spawns(turn, ["child"]);
          return JSON.stringify(await waits(turn));
        },
        async (turn) => {
          if (turn.session.spawnDepth === 2) return "words of the grandchild";
          if (turn.step === "announce") return "";
          await spawns(turn, ["grandchild"]);
          const text = JSON.stringify(await waits(turn));
          const call = { type: "toolCall" as const, id: "call", name: "subagents", arguments: {} };
          await turn.handle.append({
            ...assistantText(`calls-${turn.handle.run.runId}`, ""),
            content: [call],
          });
          await turn.handle.append({
            ...{
              id: `result-${turn.handle.run.runId}`,
              role: "toolResult",
              toolCallId: "call",
              timestamp: 1,
            },
            ...{ toolName: "subagents", content: [{ type: "text", text }], isError: false },
          });
          return "";
        },
      ),
    });
    const { results } = await ask(app);
    expect(results).toMatchObject([{ label: "child", status: "ok" }]);
    expect(results[0]?.result).not.toContain("words of the grandchild");
  });

  test("a sub-agent at any depth can't wait for a session that waits for a job which contains the sub-agent", async () => {
    const told: Record<string, unknown>[] = [];
    const app = await openSpawnApp({
      settings: withSend(),
      play: nested(
        async (turn) => {
          await spawns(turn, ["nest"]);
          return JSON.stringify(await waits(turn));
        },
        async (turn) => {
          await expect.poll(() => statesOf(app, MAIN)).toContain("waiting");
          told.push(await askBoss(turn));
          return "asked";
        },
      ),
    });
    expect((await ask(app)).status).toBe("ok");
    const [child] = await app.children(MAIN);
    const [leaf] = await app.children(child?.key ?? "");
    expect(told).toMatchObject([{ code: "wait_cycle", status: "forbidden" }]);
    expect(told[0]).toMatchObject({ cycle: [leaf?.key, MAIN, child?.key, leaf?.key] });
  });

  describe("of an external client", () => {
    const CLIENT = "agent:main:mcp:desk";
    const OWN = { confirmsAnswers: true } as const;
    const askClient = (turn: Turn, timeoutSeconds = 30) =>
      turn.tool("sessions_send", { sessionKey: CLIENT, message: "and you?", timeoutSeconds });

    /** Opens an app whose external client has started a sub-agent, and that a sub-agent of its own. */
    async function withClient(leaf: SpawnPlay, more: { dir?: string; dies?: boolean } = {}) {
      const app = await openSpawnApp({ settings: withSend(), play: nested(() => "", leaf), ...more });
      await app.store.transaction((tx) => insertSession(tx, sessionRow(CLIENT, { external: true })));
      await app.call(CLIENT, "sessions_spawn", { task: "nest" });
      return app;
    }
    const isWaiting = (app: SpawnApp) => until(async () => (await jobWaits(app)).includes("open"));
    const jobWaits = async ({ store }: SpawnApp) =>
      (await store.db.selectFrom("waits").select("state").execute()).map(({ state }) => state);

    test("the client can't wait for a job while a sub-agent of that job waits for the client's answer", async () => {
      const app = await withClient(async (turn) => String((await askClient(turn)).status));
      await until(async () => (await app.texts(CLIENT)).some((line) => line.includes("and you?")));
      expect(await app.call(CLIENT, "subagents", { action: "wait" }, OWN)).toMatchObject({
        ...{ status: "forbidden", code: "wait_cycle" },
      });
      const [child] = await app.children(CLIENT);
      const [leaf] = await app.children(child?.key ?? "");
      await app.call(CLIENT, "sessions_send", { sessionKey: leaf?.key, message: "yes", timeoutSeconds: 0 });
      await app.quiet();
    });

    test("a wait ends with its call, and with its process", async () => {
      const dir = temporaryFolder();
      const [begun, gone] = [Promise.withResolvers<void>(), new AbortController()];
      const leaf: SpawnPlay = async (turn) => {
        await begun.promise;
        return JSON.stringify(await askClient(turn, 0.01));
      };
      const first = await withClient(leaf, { dir, dies: true });
      const left = first.call(CLIENT, "subagents", { action: "wait" }, { ...OWN, signal: gone.signal });
      await isWaiting(first);
      gone.abort(new Error("gone"));
      await expect(left).rejects.toThrow("gone");
      expect(await jobWaits(first)).toEqual(["ended"]);
      void first.call(CLIENT, "subagents", { action: "wait" }, OWN).catch(() => {});
      await isWaiting(first);
      await first.store.close();
      const second = await openSpawnApp({ settings: withSend(), play: nested(() => "", leaf), dir });
      expect(await jobWaits(second)).toEqual(["ended", "ended"]);
      begun.resolve();
      await second.quiet();
      const [child] = await second.children(CLIENT);
      const [asked] = await second.children(child?.key ?? "");
      expect((await second.texts(asked?.key ?? "")).join("\n")).toContain('"status":"timeout"');
    });
  });
});
