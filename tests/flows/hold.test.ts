// A run that a person holds: where it stops, what happens after its release, a message instead of the call, and a
// process that dies meanwhile.

import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { textOf } from "../../src/core/shapes/message.ts";
import type { Engine } from "../../src/engine/engine.ts";
import { setHold } from "../../src/engine/run/hold.ts";
import { changeHold, type HoldChange } from "../../src/store/queries/runs/holds.ts";
import { factsOfRuns } from "../../src/store/queries/runs/run-facts.ts";
import { getRun } from "../../src/store/queries/runs/runs.ts";
import type { Store } from "../../src/store/sql.ts";
import type { World } from "../../src/world.ts";
import { cleanup, endOf, openStore, quietWorld, temporaryFolder } from "../kit/engine/engine.ts";
import { startRealEngine } from "../kit/engine/real-engine.ts";
import { type ScriptedAnswer, scriptedModel } from "../kit/scripted-model.ts";
import { until } from "../kit/until.ts";
import { fakeWorld } from "../kit/world.ts";
import { agentSettings, settingsWith } from "../tools/app.ts";

const MAIN = "agent:main:main";
const RESEARCH = "agent:research:main";

interface Life {
  readonly engine: Engine;
  readonly store: Store;
  readonly dir: string;
}

const AT_ONCE = Promise.resolve();

interface Story {
  /** The model's first answer waits for it. */
  readonly ready?: Promise<void>;
  /** The model's report waits for it. */
  readonly reported?: Promise<void>;
  readonly world?: World;
}

/** Starts a process with one slot. Its model makes two calls of `exec`, and reports. */
async function live(
  dir = temporaryFolder(),
  { ready = AT_ONCE, reported = AT_ONCE, world = quietWorld() }: Story = {},
): Promise<Life> {
  const workspace = join(dir, "workspace");
  mkdirSync(workspace, { recursive: true });
  const agents = ["main", "research"].map((id) => agentSettings(id, { workspace }));
  const { tools, ...settings } = settingsWith({ agents });
  const port = scriptedModel(async ({ entries }): Promise<ScriptedAnswer> => {
    const messages = entries.filter((entry) => "role" in entry);
    const last = messages.at(-1);
    const said = last === undefined ? "" : textOf(last);
    if (last?.role === "user" && !said.startsWith("write")) return `read: ${said}`;
    if (last?.role === "toolResult") {
      await reported;
      return messages.slice(2).map(textOf).join("\n");
    }
    await ready;
    const [, text] = said.split(" ");
    const call = { name: "exec", arguments: { command: `echo ${text} >> log.txt` } };
    return { toolCalls: [call, call] };
  });
  const store = await openStore(join(dir, "store"), world);
  const exec = { ...tools.exec, approval: "never" as const };
  const whole = {
    ...settings,
    tools: { ...tools, exec },
    store: { ...settings.store, dir: join(dir, "store") },
  };
  const engine = await startRealEngine({ settings: whole, store, world, port, maxConcurrent: 1 });
  cleanup(() => engine.stop(0));
  return { engine, store, dir };
}

async function say(
  { engine }: Life,
  text: string,
  { sessionKey = MAIN, steer = false, timeoutMs = 0 } = {},
): Promise<string> {
  const route = { channel: "webchat", to: sessionKey };
  const input = { text, ...(steer ? { steer } : {}) };
  const accepted = await engine.accept({ sessionKey, route, input, timeoutMs });
  if (!accepted.ok) throw new Error(accepted.error);
  return accepted.value.run.runId;
}

const hold = ({ engine }: Life, runId: string, change: HoldChange = "hold") =>
  engine.commit((unit) => setHold(unit, runId, change, () => true));

const stage = async ({ store }: Life, runId: string) => (await factsOfRuns(store.db, [runId]))[0]?.hold;

const log = ({ dir }: Life): string => {
  const path = join(dir, "workspace", "log.txt");
  return existsSync(path) ? readFileSync(path, "utf8") : "";
};

const LIMIT_MS = 60_000;

/** Holds a run while its model answers, and waits until it has stopped. */
async function stopped(story: Story = {}): Promise<{ life: Life; runId: string }> {
  const ready = Promise.withResolvers<void>();
  const life = await live(temporaryFolder(), { ...story, ready: ready.promise });
  const runId = await say(life, "write one", { timeoutMs: LIMIT_MS });
  expect(await hold(life, runId)).toMatchObject({ ok: true });
  expect(await stage(life, runId)).toBe("pending");
  ready.resolve();
  await until(async () => (await stage(life, runId)) === "held");
  return { life, runId };
}

test("I6: a held run stops before its next tool call, holds no slot, and continues after its release", async () => {
  const { life, runId } = await stopped();
  await until(async () => (await getRun(life.store.db, runId))?.state === "waiting");
  expect(await endOf(life.engine, await say(life, "hello", { sessionKey: RESEARCH }))).toMatchObject({
    reply: "read: hello",
  });
  expect(log(life)).toBe("");
  await hold(life, runId, "release");
  expect(await endOf(life.engine, runId)).toMatchObject({ state: "ok" });
  expect(log(life)).toBe("one\none\n");
  expect(await hold(life, runId)).toMatchObject({ ok: false, code: "run_not_found" });
});

test("a run that is released before it has stopped does not stop", async () => {
  const ready = Promise.withResolvers<void>();
  const life = await live(temporaryFolder(), { ready: ready.promise });
  const runId = await say(life, "write one");
  await hold(life, runId);
  await hold(life, runId, "release");
  ready.resolve();
  expect(await endOf(life.engine, runId)).toMatchObject({ state: "ok" });
  expect(log(life)).toBe("one\none\n");
});

test.each(["a message that follows is read", "the run ends"])(
  "H2: a held run that is released without its calls makes none of them, and %s",
  async (what) => {
    const steers = what !== "the run ends";
    const { life, runId } = await stopped();
    if (steers) await say(life, "rather look", { steer: true });
    await hold(life, runId, "skip");
    const { reply = "" } = await endOf(life.engine, runId);
    if (steers) expect(reply).toBe("read: rather look");
    else expect(reply.split("a person held this run before the call")).toHaveLength(3);
    expect(log(life)).toBe("");
    expect(await stage(life, runId)).toBeUndefined();
  },
);

test("a stop ends a held run without its call", async () => {
  const { life, runId } = await stopped();
  await life.engine.abort({ sessionKey: MAIN, runId });
  expect(await endOf(life.engine, runId)).toMatchObject({ state: "aborted" });
  expect(log(life)).toBe("");
});

test.each([
  ["release", "one\none\n"],
  ["skip", ""],
] as const)(
  "H1: a run that was held when its process ended stays held until the change %s, and no call is made twice",
  async (change, written) => {
    const { life: first, runId } = await stopped();
    await first.engine.stop(0);
    if (change === "skip")
      await first.store.transaction(async (tx) => void (await changeHold(tx, runId, change, 0)));
    await first.store.close();
    const life = await live(first.dir);
    await until(async () => (await getRun(life.store.db, runId))?.attempt === 2);
    if (change === "release") {
      await until(async () => (await getRun(life.store.db, runId))?.state === "waiting");
      expect(log(life)).toBe("");
      expect(await stage(life, runId)).toBe("held");
      await hold(life, runId, change);
    }
    expect(await endOf(life.engine, runId)).toMatchObject({ state: "ok" });
    expect(log(life)).toBe(written);
  },
);

const isWaiting = async ({ store }: Life, runId: string) =>
  (await getRun(store.db, runId))?.state === "waiting";

test("H3: a held run uses none of its time, and has the rest of it after its release", async () => {
  const world = fakeWorld();
  const { promise: reported, resolve } = Promise.withResolvers<void>();
  cleanup(resolve);
  const { life, runId } = await stopped({ world, reported });
  await until(() => isWaiting(life, runId));
  await world.advance(5 * LIMIT_MS);
  await hold(life, runId, "release");
  await until(() => log(life) === "one\none\n");
  await world.advance(LIMIT_MS - 1);
  expect(await getRun(life.store.db, runId)).toMatchObject({ state: "running" });
  await world.advance(1);
  expect(await endOf(life.engine, runId)).toMatchObject({ state: "timeout", code: "run_timeout" });
});

test.each(["before", "after"])(
  "H3: a run that was held when its process ended uses none of its time until a release %s the next start",
  async (when) => {
    const world = fakeWorld();
    const { life: first, runId } = await stopped({ world });
    await first.engine.stop(0);
    await world.advance(5 * LIMIT_MS);
    if (when === "before")
      await first.store.transaction(
        async (tx) => void (await changeHold(tx, runId, "release", world.clock.now())),
      );
    await first.store.close();
    const life = await live(first.dir, { world });
    await until(async () => (await getRun(life.store.db, runId))?.attempt === 2);
    await world.advance(0);
    if (when === "after") {
      await until(() => isWaiting(life, runId));
      await world.advance(5 * LIMIT_MS);
      await hold(life, runId, "release");
    }
    expect(await endOf(life.engine, runId)).toMatchObject({ state: "ok" });
  },
);
