// Crashes before and after every commit of a run that waits for its sub-agents (I2, I4, I7).

import { describe, expect, test } from "vitest";
import { isEnded } from "../../../src/core/shapes/run.ts";
import { crashAtEach } from "../../kit/engine/engine.ts";
import { type CrashStory, crashIn, type SpawnApp, type SpawnPlay } from "../../kit/engine/spawn-app.ts";
import { settingsWith } from "../../tools/app.ts";

const MAIN = "agent:main:main";
const COMMITS_MAX = 200;
const TASKS = ["one", "two"];
const settings = settingsWith();

interface Waited {
  readonly status: string;
  readonly results: { result: string }[];
}

/** Main spawns two children, waits for them, and answers with the result. */
const play: SpawnPlay = async (turn) => {
  if (turn.session.key !== MAIN) return turn.step === "announce" ? "Result: announced" : `did ${turn.input}`;
  if (turn.handle.run.input.provenance !== undefined) return "woken";
  await Promise.all(TASKS.map((task) => turn.tool("sessions_spawn", { task, announce: "wake" }, task)));
  const { status, results } = (await turn.tool("subagents", { action: "wait" })) as unknown as Waited;
  return `${status}: ${results.map(({ result }) => result).join()}`;
};

async function checkFinished(app: SpawnApp): Promise<void> {
  const runs = await app.runs(MAIN);
  if (runs.length === 0) return;
  for (const run of runs) expect(isEnded(run.state), `I2: run ${run.runId} is ${run.state}`).toBe(true);
  expect(await app.children(MAIN), "each call made one child").toHaveLength(TASKS.length);
  expect(runs[0]).toMatchObject({ state: "ok", reply: "ok: announced,announced" });
  // Each result is returned by the wait once and appended once, and starts no run.
  expect(runs.map(({ kind, state }) => `${kind} ${state}`)).toEqual(["turn ok", "append ok", "append ok"]);
}

const story: CrashStory = {
  app: { settings, play },
  begin: (app: SpawnApp) => app.tell(MAIN, "go", "from-a-person"),
  check: checkFinished,
};

describe.each(["before", "after"] as const)("a crash %s any commit of a wait for sub-agents", (when) => {
  test("I2, I4: after the crash the wait continues, and each result arrives once", async () => {
    expect(await crashAtEach(when, COMMITS_MAX, (point) => crashIn(story, point))).toBeGreaterThan(12);
  });
});
