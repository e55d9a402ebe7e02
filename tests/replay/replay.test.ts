// Chains that a gateway recorded in real time are replayed without a difference, and planted differences are
// found.

import { describe, expect } from "vitest";
import type { ChainRecord } from "../../src/core/shapes/record/chain.ts";
import { type Replayed, replayChain } from "../../src/replay.ts";
import { type House, openHouse } from "../gateway/kit.ts";
import { both, rounds, share, test } from "../kit/deep.ts";
import { cleanup, quietWorld } from "../kit/engine/engine.ts";
import type { ScriptedModel } from "../kit/scripted-model.ts";
import { openPostgresStore } from "../kit/store/postgres.ts";
import { doing, inTurn, sending, spawning, talkingModel } from "../kit/talking-model.ts";
import { randomModel } from "./random-chains.ts";
import { recordOf } from "./record-of.ts";

const RANDOM_CHAINS = 25;
const MAIN = "agent:main:main";
const RESEARCH = "agent:research:main";
const WRITER = "agent:writer:main";
const TOOLS = {
  visibility: "all" as const,
  agentToAgent: { enabled: true, allow: [] },
};

async function houseOn(kind: string, model: ScriptedModel = talkingModel()): Promise<House> {
  const session = { agentToAgent: { maxPingPongTurns: 2, maxHops: 16, maxChainRuns: 200 } };
  const more = { model, choices: { tools: TOOLS, session } };
  if (kind === "embedded") return openHouse(more);
  const { store, dispose } = await openPostgresStore();
  cleanup(dispose);
  return openHouse({ ...more, disk: store, postgresUrl: "postgres://the-store" });
}

async function replayed(record: ChainRecord): Promise<Replayed> {
  const result = await replayChain(record);
  if (!result.ok) throw new Error(result.error);
  return result.value;
}

const CHAINS: Record<string, string> = {
  "a plain run": "hello",
  "a send with reply turns": doing(sending(RESEARCH, "what is new?")),
  "a send that does not wait": doing(sending(RESEARCH, "what is new?", 0)),
  "two sends at once": doing(sending(RESEARCH, "one"), sending(WRITER, "two")),
  "a send in a send": doing(sending(RESEARCH, doing(sending(WRITER, "three")))),
  "a spawn": doing(spawning("some work")),
  "a wait for a sub-agent": inTurn(
    doing(spawning("some work")),
    doing({ name: "subagents", arguments: { action: "wait" } }),
  ),
  "a spawn beside a wait": inTurn(
    doing(spawning("some work")),
    doing({ name: "subagents", arguments: { action: "wait" } }, spawning("more work")),
  ),
  "a spawn beside a cancellation": doing(
    spawning(doing(sending(RESEARCH, "long work"))),
    { name: "subagents", arguments: { action: "cancel", sessionKey: "all" } },
    spawning("more work"),
    { name: "subagents", arguments: { action: "list" } },
  ),
  "a sub-agent of another agent's send": doing(sending(RESEARCH, doing(spawning("deeper")))),
  "a list of sessions": doing({ name: "sessions_list" }, { name: "session_status" }),
  "a refused send": doing(sending("agent:nobody:main", "hello")),
  "a wait cycle": doing(sending(RESEARCH, doing(sending(MAIN, "back")))),
  "an unknown tool": doing({ name: "no_such_tool" }),
};

describe.each(share(["embedded"], ["postgres"]))("on the %s store", (kind) => {
  both("chains replay without a difference", async () => {
    const house = await houseOn(kind);
    await recordOf(house, "an earlier message");
    const found: [string, Replayed][] = [];
    for (const [name, text] of Object.entries(CHAINS)) {
      found.push([name, await replayed(await recordOf(house, text))]);
    }
    expect(found.filter(([, { difference }]) => difference !== undefined)).toEqual([]);
    expect(found.map(([, { runs }]) => runs > 0)).not.toContain(false);
  });
});

both(
  "random chains replay without a difference",
  async () => {
    for (let part = 0; part < rounds(1, 20); part += 1) {
      const seed = `random chains ${part}`;
      const house = await houseOn("embedded", randomModel(seed));
      let runs = 0;
      for (let at = 0; at < RANDOM_CHAINS; at += 1) {
        const record = await recordOf(house, `message ${at}`);
        const { difference } = await replayed(record);
        expect({ seed, at, difference }).toEqual({ seed, at, difference: undefined });
        runs += record.runs.length;
      }
      expect(runs).toBeGreaterThan(RANDOM_CHAINS);
      await house.stop();
    }
  },
  600_000,
);

test("a run that wrote until its stop was committed replays as far as it wrote", async () => {
  const { store, dispose } = await openPostgresStore();
  cleanup(dispose);
  const [asked, stopped] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const wrote = Promise.withResolvers<void>();
  let calls = 0;
  const model = talkingModel(() => {
    calls += 1;
    if (calls === 1) asked.resolve();
    else wrote.resolve();
    return calls === 1 ? stopped.promise : new Promise(() => {});
  });
  const house = await openHouse({ model, disk: store, postgresUrl: "postgres://the-store" });
  const recording = recordOf(
    house,
    inTurn(doing({ name: "session_status" }), doing({ name: "sessions_list" })),
  );
  await asked.promise;
  await house.engine.commit(async (unit) => {
    // The stop has the time of its begin, and the answer is stored before it takes its locks.
    await expect.poll(() => house.engine.now()).toBeGreaterThan(unit.now);
    stopped.resolve();
    await wrote.promise;
    return house.engine.abortIn(unit, { sessionKey: MAIN });
  });
  const record = await recording;
  const [run] = record.runs;
  expect(run?.state).toBe("aborted");
  expect(record.entries.filter(({ at }) => at > (run?.endedAt ?? 0)).length).toBeGreaterThan(0);
  expect((await replayed(record)).difference).toBeUndefined();
});

test("jobs whose ids have another order than their spawns replay without a difference", async () => {
  const world = quietWorld();
  let left = 0xffffff;
  const orderedUuid = (): string => {
    left -= 1;
    return `01900000-0000-7000-8000-${left.toString(16).padStart(12, "0")}`;
  };
  const house = await openHouse({
    model: talkingModel(),
    world: { ...world, ids: { ...world.ids, orderedUuid } },
  });
  const wait = { name: "subagents", arguments: { action: "wait" } };
  const record = await recordOf(house, inTurn(doing(spawning("one"), spawning("two")), doing(wait)));
  expect(record.runs[0]?.state).toBe("ok");
  expect((await replayed(record)).difference).toBeUndefined();
});

test.each([
  { kind: "cron", source: "morning" },
  { kind: "hook", source: "deploys" },
] as const)("a chain that a $kind began replays with its origin", async (provenance) => {
  const house = await houseOn("embedded");
  const record = await recordOf(house, doing(sending(RESEARCH, "what is new?")), { provenance });
  expect(record.runs[0]?.input.provenance).toEqual(provenance);
  expect((await replayed(record)).difference).toBeUndefined();
});

test("a refused call that a stop left unanswered is no difference", async () => {
  const house = await houseOn("embedded");
  const record = await recordOf(house, doing({ name: "no_such_tool" }));
  const cut = record.entries.findIndex(({ entry }) => "role" in entry && entry.role === "toolResult");
  const text = "The run ended (aborted) before this call was answered.";
  const entries = record.entries.slice(0, cut + 1).map((row, at) => {
    const entry = { ...row.entry, content: [{ type: "text" as const, text }] };
    return at === cut ? { ...row, entry: entry as typeof row.entry } : row;
  });
  const runs = record.runs.map(({ reply: _, model: __, ...run }) => {
    const end = { state: "aborted" as const, code: "run_aborted" as const, error: "the run was aborted" };
    return { ...run, ...end, model: "scripted/rehearsal" };
  });
  const { difference } = await replayed({ ...record, runs, entries });
  expect(difference === undefined || !difference.step.startsWith("entry")).toBe(true);
});

test("an edited answer, a missing run and another refusal are named with both sides", async () => {
  const house = await houseOn("embedded");
  const record = await recordOf(house, doing(sending(RESEARCH, "what is new?")));
  const edited = (from: string, to: string): ChainRecord =>
    JSON.parse(JSON.stringify(record).replaceAll(from, to)) as ChainRecord;
  const silent = { ...record, runs: record.runs.filter(({ flow }) => flow?.step !== "reply") };
  expect((await replayed(silent)).difference).toMatchObject({ expected: "(nothing)" });
  const replies = record.runs.map((run) =>
    run.flow?.step === "round1" ? { ...run, reply: "something else" } : run,
  );
  expect((await replayed({ ...record, runs: replies })).difference).toMatchObject({
    step: "end",
    sessionKey: RESEARCH,
    expected: expect.stringContaining("something else"),
    got: expect.stringContaining("echo what is new?"),
  });
  expect((await replayed(edited('"hop":1', '"hop":2'))).difference).toBeDefined();
  expect((await replayed(record)).difference).toBeUndefined();
});

test("a chain is refused in words if any part of what its models were told is not kept any longer", async () => {
  const house = await houseOn("embedded");
  const record = await recordOf(house, "hello");
  expect((await replayed(record)).difference).toBeUndefined();
  for (const { hash, kind } of record.revisions) {
    const revisions = record.revisions.filter((one) => one.hash !== hash);
    expect([kind, await replayChain({ ...record, revisions })]).toEqual([
      kind,
      expect.objectContaining({ ok: false, error: expect.stringContaining("store.recordDays") }),
    ]);
  }
});
