// Chains that a gateway recorded in real time are replayed without a difference, and planted differences are
// found.

import { describe, expect } from "vitest";
import type { ModelRequest } from "../../../src/agent/model/model.ts";
import { HEADING } from "../../../src/core/rules/turn-rules.ts";
import { isCompaction, type Message, textOf } from "../../../src/core/shapes/message.ts";
import type { ChainRecord, RecordedEntry } from "../../../src/core/shapes/record/chain.ts";
import { inLaneOrder } from "../../../src/features/replay/play/order.ts";
import { type Replayed, replayChain } from "../../../src/features/replay/play/play.ts";
import { Script } from "../../../src/features/replay/play/script.ts";
import { holdSessions } from "../../../src/store/locks.ts";
import { type House, openHouse, quiet } from "../../gateway/kit.ts";
import { both, rounds, share, test } from "../../kit/deep.ts";
import { cleanup, endOf, openStore, quietWorld, runRow, temporaryFolder } from "../../kit/engine/engine.ts";
import { type ScriptedModel, scriptedModel } from "../../kit/scripted-model.ts";
import { openPostgresStore, runSql, serverUrl } from "../../kit/store/postgres.ts";
import { doing, inTurn, sending, spawning, talkingModel } from "../../kit/talking-model.ts";
import { agentSettings } from "../../tools/app.ts";
import { failingJobModel } from "./failing-job.ts";
import { randomModel } from "./random-chains.ts";
import { recordOf, recordOfChain } from "./record-of.ts";

const MAIN = "agent:main:main";
const RESEARCH = "agent:research:main";
const WRITER = "agent:writer:main";
const isAsked = ({ entries }: ModelRequest): boolean => {
  const last = entries.at(-1);
  return last !== undefined && !isCompaction(last) && last.role === "user";
};
const TOOLS = {
  visibility: "all" as const,
  agentToAgent: { enabled: true, allow: [] },
};

/** Opens a gateway. `budget`: of each chain. `daily`: of the agents `research` and `writer`. */
async function houseOn(
  kind: string,
  model: ScriptedModel = talkingModel(),
  budget = {},
  daily = {},
): Promise<House> {
  const session = { agentToAgent: { maxPingPongTurns: 2, maxHops: 16, maxChainRuns: 200, ...budget } };
  const others = ["research", "writer"].map((id) => agentSettings(id, daily));
  const more = { model, choices: { tools: TOOLS, session, agents: [agentSettings("main"), ...others] } };
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

test.each([
  ["its budget", { maxChainTokens: 100_000 }, {}],
  ["the tokens that its sender allowed", {}, { tokensLeft: 100_000 }],
])("a chain that used up %s replays without a difference", async (_, budget, request) => {
  const ask = { name: "sessions_send", arguments: { sessionKey: RESEARCH, message: "Well?" } };
  const model = scriptedModel(({ entries }) =>
    entries.length === 1 ? { toolCalls: [ask], totalTokens: 99_900 } : "Done",
  );
  const house = await houseOn("embedded", model, budget);
  const record = await recordOf(house, "Go", {}, undefined, request);
  expect(record.runs.filter(({ code }) => code === "chain_limit")).toHaveLength(2);
  expect((await replayed(record)).difference).toBeUndefined();
});

const CUT_ANSWER = { text: "One,", stopReason: "length" };
const WITH_CALL = { text: "The answer is 42.", toolCalls: [{ name: "agents_list" }] };

test.each([
  ["was asked for again", [{}, "Hello."]],
  ["was empty twice", [{}, {}]],
  ["was continued", [CUT_ANSWER, " two."]],
  ["was cut twice", [CUT_ANSWER, { text: " two,", stopReason: "length" }]],
  ["stood before a tool call", [WITH_CALL, {}]],
] as const)("a run whose answer %s replays without a difference", async (_, answers) => {
  const house = await houseOn(
    "embedded",
    scriptedModel((_request, at) => answers[at] ?? "too many calls"),
  );
  expect((await replayed(await recordOf(house, "Go"))).difference).toBeUndefined();
});

test("a message to an agent whose daily budget is used up replays without a difference", async () => {
  const model = scriptedModel((request) =>
    isAsked(request)
      ? { toolCalls: [sending(RESEARCH, "Well?")], totalTokens: 20_000 }
      : { text: "Done", totalTokens: 20_000 },
  );
  const house = await houseOn("embedded", model, {}, { budget: { dailyTokens: 20_000 } });
  await house.engine.accept({ sessionKey: RESEARCH, input: { text: "earlier" } });
  await quiet(house);
  const record = await recordOf(house, "Go");
  expect(record.runs.map(({ code }) => code)).toEqual([undefined, "budget_used"]);
  expect((await replayed(record)).difference).toBeUndefined();
});

test("a run whose process died too often is refused with that reason, because its inputs were never stored", async () => {
  const model = scriptedModel(() => new Promise<never>(() => {}));
  const dir = temporaryFolder();
  const house = await openHouse({ dir, model });
  const accepted = await house.engine.accept({ sessionKey: MAIN, input: { text: "Go" } });
  if (!accepted.ok) throw new Error(accepted.error);
  const { runId, chainId } = accepted.value.run;
  await expect.poll(() => model.requests.length).toBe(1);
  await house.stop();
  const disk = await openStore(dir);
  await disk.transaction((tx) => tx.updateTable("runs").set({ crashes: 5 }).execute());
  const again = await openHouse({ dir, disk, model });
  expect(await endOf(again.engine, runId)).toMatchObject({ code: "run_crashed" });
  const refused = await replayChain(await recordOfChain(again, chainId));
  expect(refused).toMatchObject({ ok: false, error: expect.stringContaining("its process died") });
});

test("the announcement of a failed job counts answers without text, in a replay too", async () => {
  const record = await recordOf(await houseOn("embedded", failingJobModel()), "Go");
  const announced = record.runs.map(({ input }) => input.text).filter((text) => text.startsWith("Status:"));
  expect(announced).toEqual([expect.stringContaining("700 total")]);
  expect((await replayed(record)).difference).toBeUndefined();
});

/** Number of random chains on each store. */
const RANDOM_CHAINS = Number(process.env.PARLEY_CHAINS ?? rounds(25, 100));
const CHAINS_OF_A_SEED = 25;

/** Budgets of the gateways with random chains, the tokens of each answer, and the codes of the refusals. */
const NO_BUDGET = { code: [], tokens: 15, budgets: [] };
const BUDGETS = [
  NO_BUDGET,
  { code: ["chain_limit"], tokens: 2_000, budgets: [{ maxChainTokens: 10_000 }] },
  NO_BUDGET,
  { code: ["budget_used"], tokens: 2_000, budgets: [{}, { budget: { dailyTokens: 13_000 } }] },
];

both.each(share(["embedded"], ["embedded", "postgres"]))(
  "random chains on the %s store, in half of the deep rounds with small budgets, replay without a difference",
  async (kind) => {
    for (let part = 0; part < RANDOM_CHAINS / CHAINS_OF_A_SEED; part += 1) {
      const seed = `random chains ${part}`;
      const { code: limit, tokens, budgets } = BUDGETS[part % BUDGETS.length] ?? NO_BUDGET;
      const house = await houseOn(kind, randomModel(seed, tokens), ...budgets);
      let runs = 0;
      const codes = new Set<string | undefined>();
      for (let at = 0; at < CHAINS_OF_A_SEED; at += 1) {
        const record = await recordOf(house, `message ${at}`);
        const { difference } = await replayed(record);
        expect({ seed, at, difference }).toEqual({ seed, at, difference: undefined });
        runs += record.runs.length;
        for (const { code } of record.runs) codes.add(code);
      }
      expect(runs).toBeGreaterThan(CHAINS_OF_A_SEED);
      expect([...codes].filter((code) => code === "chain_limit" || code === "budget_used")).toEqual(limit);
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

test("a stop that waited for a lock ends its run with the time at which it got the lock", async () => {
  const { store, dispose } = await openPostgresStore();
  cleanup(dispose);
  const model = talkingModel(() => new Promise(() => {}));
  const house = await openHouse({ model, disk: store, postgresUrl: "postgres://the-store" });
  const accepted = await house.engine.accept({ sessionKey: MAIN, input: { text: "hello" } });
  if (!accepted.ok) throw new Error(accepted.error);
  const { runId } = accepted.value.run;
  await expect.poll(async () => (await runRow(store, runId)).state).toBe("running");
  const { lockedAt, stopping } = await house.engine.commit(async (unit) => {
    await holdSessions(unit.tx, [MAIN]);
    const stopping = house.engine.abort({ sessionKey: MAIN });
    const waiting = "select pid from pg_locks where not granted";
    await expect.poll(async () => (await runSql(await serverUrl(), waiting)).length).toBeGreaterThan(0);
    const lockedAt = house.engine.now();
    await expect.poll(() => house.engine.now()).toBeGreaterThan(lockedAt);
    return { lockedAt, stopping };
  });
  expect(await stopping).toEqual({ aborted: true, runIds: [runId] });
  expect((await runRow(store, runId)).endedAt).toBeGreaterThan(lockedAt);
});

test("refused calls whose results were stored in another order than they were made replay in that order", async () => {
  const model = scriptedModel(({ system, entries }) => {
    const last = entries.at(-1);
    const isAsked = last !== undefined && !isCompaction(last) && last.role === "user";
    const input = isAsked ? textOf(last) : "";
    if (system.includes(HEADING.subagentAnnounce)) return "The job is done.";
    if (input === "go") return { toolCalls: [spawning("quiet work")] };
    if (input === "quiet work") return { toolCalls: [{ name: "skill" }, { name: "session_status" }] };
    return "REPLY_SKIP";
  });
  const record = await recordOf(await houseOn("embedded", model), "go");
  const isRefused = ({ entry }: RecordedEntry): boolean =>
    "role" in entry && entry.role === "toolResult" && textOf(entry).includes("unknown_tool");
  const [first, second] = record.entries.filter(isRefused);
  if (first === undefined || second === undefined) throw new Error("the sub-agent had these tools");
  const swapped = record.entries.map((row) => (row === first ? second : row === second ? first : row));
  const runs = record.runs.map((run) => {
    const context = run.input.context?.replace("session_status", "skill");
    return context === undefined ? run : { ...run, input: { ...run.input, context } };
  });
  expect(runs).not.toEqual(record.runs);
  const late = swapped.map((row) => (row === second ? { ...row, at: first.at + 5 } : row));
  expect((await replayed({ ...record, runs, entries: late })).difference).toBeUndefined();
});

test("two calls that cancelled the same sub-agents at once replay as each really cancelled one", async () => {
  const model = talkingModel((input) => (input.startsWith("long") ? new Promise(() => {}) : undefined));
  const house = await houseOn("embedded", model);
  const cancel = { name: "subagents", arguments: { action: "cancel", sessionKey: "all" } };
  const work = inTurn(doing(spawning("long one"), spawning("long two")), doing(cancel, cancel));
  const record = await recordOf(house, work);
  const results = record.entries.filter(({ entry }) => "toolName" in entry && entry.toolName === "subagents");
  const { cancelled, runIds } = JSON.parse(textOf(results[0]?.entry as Message));
  expect([cancelled.length, runIds.length, results.length]).toEqual([2, 2, 2]);
  const entries = record.entries.map((row) => {
    const at = results.indexOf(row);
    const text = JSON.stringify({ status: "ok", cancelled, runIds: [runIds[1 - at]] });
    return at < 0 ? row : { ...row, entry: { ...row.entry, content: [{ type: "text" as const, text }] } };
  }) as RecordedEntry[];
  expect((await replayed({ ...record, entries })).difference).toBeUndefined();
});

test("runs have times in the order of their lane, and a run ends when its successor is accepted", async () => {
  const record = await recordOf(await houseOn("embedded"), doing(sending(RESEARCH, "what is new?")));
  const [asked, replied] = ["round1", "reply"].map((step) =>
    record.runs.find(({ flow }) => flow?.step === step),
  );
  const [before] = record.runs;
  if (before === undefined || asked === undefined || replied === undefined) throw new Error("no reply turn");
  const at = replied.acceptedAt;
  expect([replied.sessionKey, asked.endedAt]).toEqual([before.sessionKey, at]);
  const other = { ...before, runId: "other", laneSeq: replied.laneSeq - 0.5, acceptedAt: at + 2 };
  const runs = inLaneOrder([asked, replied, other]);
  expect(runs.map(({ acceptedAt }) => acceptedAt)).toEqual([asked.acceptedAt, at + 3, at + 2]);
  expect(runs[0]?.endedAt).toBe(at + 3);
});

test("a sub-agent's run ends when its result is accepted, also if that result is no step of its job", async () => {
  const { runs } = await recordOf(await houseOn("embedded"), doing(spawning("some work")));
  const announced = runs.find(({ flow }) => flow?.step === "announce");
  const result = runs.find(({ input: { provenance } }) => {
    return provenance?.kind === "inter_session" && provenance.sourceSessionKey === announced?.sessionKey;
  });
  if (announced === undefined || result === undefined) throw new Error("no result");
  const at = result.acceptedAt;
  expect([result.flow, announced.endedAt]).toEqual([undefined, at]);
  const earlier = { ...result, runId: "other", laneSeq: result.laneSeq - 0.5, acceptedAt: at + 2 };
  expect(inLaneOrder([announced, result, earlier])[0]?.endedAt).toBe(at + 3);
});

test("of several runs with the same cause, the one that comes first in its lane matches first", async () => {
  const record = await recordOf(await houseOn("embedded"), doing(spawning("some work")));
  const result = record.runs.find(({ flow, input }) => flow === undefined && input.provenance !== undefined);
  if (result === undefined) throw new Error("no result");
  const { laneSeq, acceptedAt } = result;
  const earlier = { ...result, runId: "earlier", laneSeq: laneSeq - 0.5, acceptedAt: acceptedAt + 2 };
  const script = new Script({ ...record, runs: [...record.runs, earlier] });
  const like = script.runsLike({ ...result, runId: "played" }, (text) => text);
  expect(like.map(({ run }) => run.runId)).toEqual(["earlier", result.runId]);
});

test("notices to one session, of which only the later one wakes it, replay as themselves", async () => {
  const hasEnded = async (): Promise<void> => {
    const runs = house.store.db.selectFrom("runs").select("run_id");
    const { run_id } = await runs.where("session_key", "=", WRITER).executeTakeFirstOrThrow();
    await endOf(house.engine, run_id);
  };
  const model = scriptedModel(async ({ entries }) => {
    const inputs = entries.filter((entry): entry is Message => "role" in entry && entry.role === "user");
    const input = inputs.map(textOf).at(-1);
    if (input === "Go" && entries.length === 1) return { toolCalls: [sending(WRITER, "write", 0)] };
    if (input === "Go" && entries.length === 3) return { toolCalls: [sending(RESEARCH, "fail", 0)] };
    if (input !== "fail") return "REPLY_SKIP";
    await hasEnded();
    return { error: "the model failed" };
  });
  const house = await houseOn("embedded", model);
  const record = await recordOf(house, "Go");
  const notices = record.runs.filter(({ input }) => input.provenance?.kind === "notice");
  expect(notices.map(({ kind }) => kind)).toEqual(["append", "turn"]);
  expect((await replayed(record)).difference).toBeUndefined();
});

test("a run that was stopped between its last answer and its end replays as stopped", async () => {
  const model = scriptedModel(() => ({ text: "cut off", stopReason: "length" }));
  const record = await recordOf(await houseOn("embedded", model), "hello");
  const runs = record.runs.map(({ reply: _, ...run }) => {
    const stopped = { state: "aborted" as const, code: "run_aborted" as const, error: "the run was aborted" };
    return { ...run, ...stopped, model: "scripted/rehearsal", endedAt: (run.endedAt ?? 0) + 5 };
  });
  expect((await replayed({ ...record, runs })).difference).toBeUndefined();
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

test("a wait that ended while its run was about to end replays without a difference, whatever its result says of the run", async () => {
  const release = Promise.withResolvers<void>();
  const model = scriptedModel(async (request) => {
    if (JSON.stringify(request.entries.at(-1)).includes("Go"))
      return { toolCalls: [sending(RESEARCH, "Well?", 1)] };
    if (isAsked(request)) await release.promise;
    return "Done";
  });
  const house = await houseOn("embedded", model);
  const record = await recordOf(house, "Go", {}, () => release.resolve());
  const later = JSON.stringify(record)
    .replace("its run continues (running)", "its run has ended since")
    .replace(/sessions_history of ([^ ]+) later/, "sessions_history of $1")
    .replace(/(receipt[\\":]+)offered/, "$1answered");
  expect(later).toContain("has ended since");
  expect((await replayed(record)).difference).toBeUndefined();
  expect((await replayed(JSON.parse(later) as ChainRecord)).difference).toBeUndefined();
  const other = later.replace(/(status[\\":]+)timeout/, "$1accepted");
  expect((await replayed(JSON.parse(other) as ChainRecord)).difference).toMatchObject({
    step: "result of sessions_send",
  });
});

test("a sub-agent that reached its time limit replays with the time at which it really ended", async () => {
  const spawn = { name: "sessions_spawn", arguments: { task: "Dig", runTimeoutSeconds: 1 } };
  const model = scriptedModel((request) => {
    if (JSON.stringify(request.entries.at(-1)).includes("Dig")) return new Promise<never>(() => {});
    return isAsked(request) ? { toolCalls: [spawn] } : "Done";
  });
  const record = await recordOf(await houseOn("embedded", model), "Go");
  const { startedAt = 0, endedAt = 0 } = record.runs.find(({ state }) => state === "timeout") ?? {};
  // Everything from its end on is later, as on a busy machine.
  const later = (time: string): string =>
    Number(time) < endedAt ? time : String(Number(time) + startedAt + 1_400 - endedAt);
  const late = JSON.stringify(record)
    .replace(/\b\d{13}\b/g, later)
    .replace(/runtime \d+\.\d+s/g, "runtime 1.4s");
  expect(late).toContain("runtime 1.4s");
  expect((await replayed(JSON.parse(late) as ChainRecord)).difference).toBeUndefined();
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

test("a chain of a version that kept no inputs of runs is refused in words", async () => {
  const record = await recordOf(await houseOn("embedded"), "hello");
  const runs = record.runs.map(({ revision: _, ...run }) => run);
  expect(await replayChain({ ...record, runs, revisions: [] })).toMatchObject({
    ok: false,
    error: expect.stringContaining("are not kept any longer (store.recordDays)"),
  });
});
