// Budgets are checked at each model call, on both stores: the real loop and engine, and a model that uses its
// whole limit.

import { describe, expect, test } from "vitest";
import type { ModelPort } from "../../src/agent/model/model.ts";
import { optional } from "../../src/core/optional.ts";
import { ZERO_USAGE } from "../../src/core/shapes/message.ts";
import type { Settings } from "../../src/core/shapes/settings/settings.ts";
import { getChain } from "../../src/store/queries/chains/chains.ts";
import { releaseSlot } from "../../src/store/queries/runs/slots.ts";
import { share } from "../kit/deep.ts";
import { cleanup, endOf, openStore, temporaryFolder } from "../kit/engine/engine.ts";
import { openPostgresStore } from "../kit/store/postgres.ts";
import { linesOf, untilQuiet } from "../kit/store/store-view.ts";
import { agentSettings, settingsWith } from "../tools/app.ts";
import { type House, type HouseOptions, openHouse } from "./kit.ts";

const MAIN = "agent:main:main";
const PRICE = { input: 0.1, output: 15, cacheRead: 0.1, cacheWrite: 0.1 };
const INPUT_TOKENS = 100;

async function storeOn(kind: string) {
  if (kind === "embedded") return openStore(temporaryFolder());
  const { store, dispose } = await openPostgresStore();
  cleanup(dispose);
  return store;
}

type Options = Pick<HouseOptions, "disk" | "model"> & {
  agentToAgent?: Partial<Settings["session"]["agentToAgent"]>;
  budget?: { dailyCost?: number; dailyTokens?: number };
};

function houseWith({ agentToAgent, budget, ...more }: Options): Promise<House> {
  const paid = { id: "m", contextWindow: 100_000, maxOutputTokens: 4_000, reasoning: false, images: false };
  const provider = {
    id: "paid",
    api: "anthropic-messages" as const,
    baseUrl: "http://x",
    headers: {},
    connectTimeoutSeconds: 10,
    idleTimeoutSeconds: 90,
    maxRetries: 3,
  };
  const { session } = settingsWith();
  const agent = agentSettings("main", { model: "paid/m", ...optional({ budget }) });
  return openHouse({
    ...more,
    choices: {
      providers: [{ ...provider, models: [{ ...paid, cost: PRICE }] }],
      agents: [agent],
      session: { ...session, agentToAgent: { ...session.agentToAgent, ...agentToAgent } },
    },
  });
}

/**
 * Returns a model that uses its whole output limit at each call and never finishes. `before`: a delay
 * before the answer.
 */
function greedy(before: (call: number) => Promise<void> = async () => {}) {
  const limits: number[] = [];
  const port: ModelPort = {
    async call({ model }) {
      const output = model.settings.maxOutputTokens;
      limits.push(output);
      await before(limits.length);
      const total = (INPUT_TOKENS * PRICE.input + output * PRICE.output) / 1_000_000;
      const totalTokens = INPUT_TOKENS + output;
      const usage = { ...ZERO_USAGE, input: INPUT_TOKENS, output, totalTokens };
      const call = { type: "toolCall" as const, id: `c${limits.length}`, name: "none", arguments: {} };
      return {
        kind: "message",
        message: {
          role: "assistant",
          content: [call],
          timestamp: 1,
          ...{ api: "test", provider: "paid", model: "m", stopReason: "toolUse" },
          usage: { ...usage, cost: { ...ZERO_USAGE.cost, total } },
        },
      };
    },
  };
  return { port, limits };
}

async function say(house: House, sessionKey = MAIN) {
  const accepted = await house.engine.accept({ sessionKey, input: { text: "go" } });
  if (!accepted.ok) throw new Error(accepted.error);
  return accepted.value.run;
}

describe.each(share(["embedded"], ["postgres"]))("on the %s store", (kind) => {
  test("I8: a run costs at most maxChainCost: its answer is shortened, and its next model call is refused", async () => {
    const model = greedy();
    const house = await houseWith({
      disk: await storeOn(kind),
      model: model.port,
      agentToAgent: { maxChainCost: 0.01 },
    });
    const run = await say(house);
    const ended = await endOf(house.engine, run.runId);
    expect(ended).toMatchObject({ state: "error", code: "chain_limit" });
    expect(ended.error).toContain("session.agentToAgent.maxChainCost is 0.01: too little is left");
    expect(model.limits[0]).toBeLessThan(4_000);
    const { cost } = await getChain(house.store.db, run.chainId);
    expect(cost).toBeGreaterThan(0.005);
    expect(cost).toBeLessThanOrEqual(0.01);
    await untilQuiet(house.store.db);
    const lines = await linesOf(house.store.db, run.sessionId);
    expect(lines.filter((line) => line.includes("No further run of this conversation"))).toHaveLength(1);
  });

  test("parallel runs of one agent together stay within its daily token budget", async () => {
    const model = greedy();
    const house = await houseWith({
      disk: await storeOn(kind),
      model: model.port,
      budget: { dailyTokens: 60_000 },
    });
    const client = await house.client();
    const keys = [MAIN];
    for (const key of ["a", "b", "c"]) {
      keys.push((await client.request("sessions.create", { idempotencyKey: key })).key);
    }
    const runs = await Promise.all(keys.map((key) => say(house, key)));
    const ended = await Promise.all(runs.map(({ runId }) => endOf(house.engine, runId)));
    expect(ended.map(({ code }) => code)).toEqual(runs.map(() => "budget_used"));
    const used = ended.reduce((sum, { usage }) => sum + usage.totalTokens, 0);
    expect(used).toBeGreaterThan(30_000);
    expect(used).toBeLessThanOrEqual(60_000);
  });

  test("if a process dies, the reservation of its run does not block other runs, and is released when the run ends", async () => {
    const disk = await storeOn(kind);
    const asked = Promise.withResolvers<void>();
    const hanging = greedy(async () => {
      asked.resolve();
      await new Promise(() => {});
    });
    const budget = { dailyCost: 0.07 };
    const first = await houseWith({ disk, model: hanging.port, budget });
    const left = await say(first);
    await asked.promise;
    const row = () =>
      disk.db.selectFrom("runs").selectAll().where("run_id", "=", left.runId).executeTakeFirstOrThrow();
    expect((await row()).reserved_cost).toBeGreaterThan(0.059);
    await disk.transaction(async (tx) => {
      await releaseSlot(tx, left.runId);
      await tx
        .updateTable("runs")
        .set({ state: "queued", owner: null, ready_at: 1 })
        .where("run_id", "=", left.runId)
        .execute();
    });
    const other = await first
      .client()
      .then((client) => client.request("sessions.create", { idempotencyKey: "o" }));
    const second = greedy(async () => {
      throw new Error("asked");
    });
    const judged = await houseWith({ disk, model: second.port, budget });
    const runIds = [(await say(judged, other.key)).runId, left.runId];
    await Promise.all(runIds.map((runId) => endOf(judged.engine, runId)));
    expect(second.limits).toEqual([4_000, 4_000]);
  });
});
