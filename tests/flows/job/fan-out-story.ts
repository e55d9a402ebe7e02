// A session that spawns three sub-agents, one of which spawns another, and the checks at the end.

import { expect } from "vitest";
import { isEnded } from "../../../src/core/shapes/run.ts";
import type { CrashStory, SpawnApp, SpawnPlay } from "../../kit/engine/spawn-app.ts";
import { settingsWith } from "../../tools/app.ts";

const MAIN = "agent:main:main";
const TASKS = ["one", "two", "nest"];

const base = settingsWith();
const settings = { ...base, subagents: { ...base.subagents, maxSpawnDepth: 2, maxConcurrent: 2 } };

/** Main spawns three children. One of them spawns another child and uses its result. */
const play: SpawnPlay = async (turn) => {
  if (turn.session.key === MAIN) {
    const calls = TASKS.map((task) => turn.tool("sessions_spawn", { task }, task));
    return (await Promise.all(calls)).map((result) => result.status).join();
  }
  if (turn.step === "announce") return `Result: from ${turn.session.spawnDepth}`;
  if (turn.input !== "nest") return turn.input.startsWith("Status:") ? "worked in" : `did ${turn.input}`;
  return `started: ${(await turn.tool("sessions_spawn", { task: "leaf" })).status}`;
};

async function begin(app: SpawnApp): Promise<void> {
  await app.route(MAIN);
  await app.tell(MAIN, "go", "from-a-person");
}

async function steps(app: SpawnApp, key: string): Promise<string> {
  const runs = await app.runs(key);
  for (const run of runs) expect(isEnded(run.state), `I2: run ${run.runId} is ${run.state}`).toBe(true);
  return runs.map((run) => `${run.flow?.step ?? run.kind} ${run.state}`).join(", ");
}

async function checkFinished(app: SpawnApp): Promise<void> {
  if ((await app.runs(MAIN)).length === 0) return;
  const children = await app.children(MAIN);
  expect(children, "each call made one child").toHaveLength(TASKS.length);
  const plain = "task ok, announce ok";
  for (const child of children) {
    const [leaf, ...others] = await app.children(child.key);
    expect(others).toEqual([]);
    expect(await steps(app, child.key)).toBe(leaf === undefined ? plain : "task ok, task ok, announce ok");
    if (leaf !== undefined) expect(await steps(app, leaf.key)).toBe(plain);
  }
  expect(await steps(app, MAIN)).toBe("turn ok, append ok, append ok, append ok");
  const deliveries = await app.store.db.selectFrom("deliveries").select(["state", "text"]).execute();
  expect(deliveries.map((row) => row.state)).toEqual(["sent", "sent", "sent"]);
  const told = (await app.texts(MAIN)).filter((line) => line.includes("Result: from 1"));
  expect(told).toHaveLength(TASKS.length);
}

export const fanOut: CrashStory = { app: { settings, play }, begin, check: checkFinished };
