// Several processes over one PostgreSQL, real locks and real time: people talk, agents ask each other, work
// is aborted, reset and deleted by any process, and processes die. Once it is quiet, everything accepted has
// ended, once, and everybody who asked was told once. The database decides the interleaving, so that a seed
// gives the same story but not the same run.

import { expect, test } from "vitest";
import { deleteSession, resetSession } from "../../src/flows/lifecycle.ts";
import { getSession, insertSession } from "../../src/store/sessions.ts";
import { type Cluster, type ClusterProcess, openCluster, postgresGround } from "../kit/cluster.ts";
import { type Dice, dice } from "../kit/dice.ts";
import { assistantText, sessionRow } from "../kit/engine.ts";
import type { Actor, FlowApp, Play } from "../kit/flow-app.ts";
import {
  checkChains,
  checkDeliveries,
  checkFlows,
  checkRuns,
  checkTold,
  checkTranscripts,
  checkWaiting,
} from "../kit/flow-checks.ts";

const MAIN = ["agent:main:main", "agent:research:main", "agent:writer:main"];
const CHATS = ["agent:main:chat:one", "agent:research:chat:two"];
const KEYS = [...MAIN, ...CHATS];
const LIMITS = { maxPingPongTurns: 3, maxHops: 5, maxChainRuns: 14 };
const SLOTS = 3;
const STEPS = 40;
const SEEDS = Number(process.env.CLUSTER_SEEDS ?? 3);
const FIRST_SEED = Number(process.env.CLUSTER_FROM ?? 1);
const SETTLING_MS = 60_000;
/** Looks, 20 ms apart. */
const QUIET_LOOKS = 15;

interface Story {
  readonly seed: number;
  readonly dice: Dice;
  readonly accepted: string[];
  readonly begun: Map<string, number[]>;
}

function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

async function askOther(actor: Actor, luck: Dice, name: string): Promise<void> {
  const { handle } = actor;
  const { runId } = handle.run;
  const seconds = luck.of([0, 0, 0.01, 0.1, 1, 10]);
  const result = await actor.send(luck.of(KEYS), `${name} of ${runId}`, seconds, name);
  const text = [{ type: "text" as const, text: JSON.stringify(result) }];
  const id = `${name}-${runId}`;
  const facts = { role: "toolResult" as const, toolCallId: id, toolName: "sessions_send", isError: false };
  await handle.append({ ...facts, id: `result-${id}`, content: text, timestamp: 1 });
}

/** A turn whose choices depend on the run alone, so that a later attempt makes the same ones. */
async function act(story: Story, actor: Actor): Promise<string> {
  const { handle } = actor;
  const { runId } = handle.run;
  const luck = dice(`${story.seed} ${runId}`);
  const asks = luck.chance(actor.step === "message" ? 0.6 : 0.3) ? 1 + luck.below(2) : 0;
  if (luck.chance(0.4)) await pause(luck.below(60), luck.chance(0.7) ? handle.signal : undefined);
  if (asks > 0) {
    const names = Array.from({ length: asks }, (_, at) => `call${at}`);
    const content = names.map((name) => {
      return { type: "toolCall" as const, id: `${name}-${runId}`, name: "sessions_send", arguments: {} };
    });
    await handle.append({ ...assistantText(`asks-${runId}`, ""), content, stopReason: "toolUse" });
    await Promise.all(names.map((name) => askOther(actor, luck, name)));
  }
  if (luck.chance(0.12)) throw new Error("the model failed");
  const text = luck.chance(0.2) ? luck.of(["REPLY_SKIP", "ANNOUNCE_SKIP", ""]) : `words of ${runId}`;
  handle.text(text);
  if (luck.chance(0.3)) await pause(luck.below(40), handle.signal);
  return text;
}

function playOf(story: Story): Play {
  return async (actor) => {
    const { sessionKey, laneSeq } = actor.handle.run;
    const begun = story.begun.get(sessionKey) ?? [];
    story.begun.set(sessionKey, begun);
    begun.push(laneSeq);
    return act(story, actor);
  };
}

async function join(story: Story, cluster: Cluster): Promise<ClusterProcess> {
  const play = playOf(story);
  return cluster.join({
    plays: Object.fromEntries(KEYS.map((key) => [key, play])),
    choices: { session: { agentToAgent: LIMITS } },
    maxConcurrent: SLOTS,
    channel: () => {
      const roll = story.dice.below(10);
      if (roll === 0) return { kind: "refused", error: "no" };
      if (roll === 1) return { kind: "retry", error: "later", afterMs: 10 };
      if (roll === 2) throw new Error("the channel broke");
      return { kind: "sent" };
    },
  });
}

async function doSomething(story: Story, app: FlowApp): Promise<void> {
  const { dice: roll } = story;
  const key = roll.of(KEYS);
  const session = await getSession(app.store.db, key);
  if (session === undefined) return;
  const facts = {
    engine: app.engine,
    settings: app.settings,
    outbound: { deliveryQueued() {} },
    dropTranscript: async () => {},
  };
  const what = roll.below(20);
  if (what < 11) {
    const timeoutMs = roll.chance(0.2) ? roll.below(50) + 1 : 0;
    story.accepted.push((await app.tell(key, "from a person", { timeoutMs })).runId);
  } else if (what < 13) {
    void app.send(key, roll.of(KEYS), "from an operator", roll.of([0, 0.05, 1])).catch(() => undefined);
  } else if (what < 16) {
    const runs = await app.runs(key);
    const run = runs.length === 0 ? undefined : roll.of(runs.slice(-4));
    if (run !== undefined) await app.engine.abort({ sessionKey: key, runId: run.runId });
  } else if (what < 17) await app.engine.abort({ sessionKey: key });
  else if (what < 18) await resetSession(facts, session);
  else if (what < 19 && roll.chance(0.3)) {
    await deleteSession(facts, session, { deleteTranscript: roll.chance(0.5) });
  } else await app.route(key);
}

async function makeChats({ store }: FlowApp): Promise<void> {
  await store.transaction(async (tx) => {
    for (const key of CHATS) {
      const agentId = key.split(":")[1] ?? "main";
      await insertSession(tx, sessionRow(key, { agentId, sessionId: `id-${agentId}` }));
    }
  });
}

async function settle(story: Story, app: FlowApp): Promise<void> {
  const until = Date.now() + SETTLING_MS;
  // What a process that goes on again still had to say comes late: quiet is when it stays so.
  for (let quiet = 0; quiet < QUIET_LOOKS; quiet = (await app.isQuiet()) ? quiet + 1 : 0) {
    if (Date.now() > until) {
      const left = await app.store.db
        .selectFrom("runs")
        .select(["run_id", "session_key", "state", "kind", "flow_step", "owner", "attempt"])
        .where("state", "in", ["queued", "running", "waiting"])
        .execute();
      expect(left, `SEED=${story.seed}: work is left that nobody does`).toEqual([]);
      const flows = await app.store.db.selectFrom("flows").selectAll().where("state", "=", "open").execute();
      expect(flows, "open flows").toEqual([]);
      const pending = await app.store.db
        .selectFrom("deliveries")
        .selectAll()
        .where("state", "=", "pending")
        .execute();
      expect(pending, "pending deliveries").toEqual([]);
    }
    await pause(20);
  }
}

async function storyOf(seed: number): Promise<void> {
  const story: Story = {
    seed,
    dice: dice(`cluster story ${seed}`),
    accepted: [],
    begun: new Map(),
  };
  const cluster = await openCluster(() => postgresGround());
  const processes: ClusterProcess[] = [];
  for (let count = 0; count < 3; count += 1) processes.push(await join(story, cluster));
  const everybody = [...processes];
  const first = processes[0];
  if (first === undefined) throw new Error("nobody");
  await makeChats(first.app);
  await first.app.route(...KEYS.filter(() => story.dice.chance(0.5)));
  for (let step = 0; step < STEPS; step += 1) {
    const at = story.dice.below(processes.length);
    const process = processes[at];
    if (process === undefined) continue;
    if (step % 15 === 14) {
      if (story.dice.chance(0.5)) process.die();
      else {
        process.pause();
        setTimeout(() => process.goOn(), 4_000);
      }
      const joined = await join(story, cluster);
      processes[at] = joined;
      everybody.push(joined);
      continue;
    }
    const doing = doSomething(story, process.app).catch(() => undefined);
    if (story.dice.chance(0.3)) await Promise.race([doing, pause(2_000)]);
    await pause(story.dice.below(15));
  }
  const last = processes[0]?.app;
  if (last === undefined) throw new Error("nobody");
  for (const process of everybody) process.goOn();
  await settle(story, last);
  const { db } = last.store;
  await checkWaiting(db, last.engine.now());
  await checkRuns(db, story.accepted);
  await checkFlows(db);
  await checkDeliveries(db);
  await checkTold(db);
  await checkTranscripts(db);
  await checkChains(db, LIMITS);
  expect((await last.engine.load()).slots.taken, "all slots are free").toBe(0);
  for (const [key, begun] of story.begun) {
    // A run that was ended elsewhere between its claim and its beginning may begin late, until it meets the
    // store; one that stood still may begin again what it has lost.
    const rows = await db
      .selectFrom("runs")
      .select("lane_seq")
      .where("session_key", "=", key)
      .where("state", "in", ["ok", "error"])
      .execute();
    const own = new Set(rows.map((row) => row.lane_seq));
    const first = [...new Set(begun)].filter((laneSeq) => own.has(laneSeq));
    expect(first, `I3: turns of ${key}`).toEqual(first.toSorted((x, y) => x - y));
  }
  for (const process of everybody) await process.stop();
}

test("I1-I8: three processes over one PostgreSQL, some of which die or stand still", async () => {
  for (let seed = FIRST_SEED; seed < FIRST_SEED + SEEDS; seed += 1) {
    try {
      await storyOf(seed);
    } catch (error) {
      throw new Error(`SEED=${seed}: ${(error as Error).message}`, { cause: error });
    }
  }
}, 600_000);
