// Usage, grouped in every supported way, and the daily budgets of agents, on both stores.

import { describe, expect } from "vitest";
import type { UsageLine } from "../../../src/core/shapes/usage.ts";
import { addUsageRow } from "../../../src/store/queries/runs/ledger.ts";
import { both, share } from "../../kit/deep.ts";
import { cleanup, endOf, openStore, temporaryFolder } from "../../kit/engine/engine.ts";
import { openPostgresStore } from "../../kit/store/postgres.ts";
import { agentSettings } from "../../tools/app.ts";
import { type House, type HouseOptions, openHouse, quiet } from "../kit.ts";

const MAIN = "agent:main:main";
const RESEARCH = "agent:research:main";
const CHILD = "agent:main:subagent:11111111-1111-4111-8111-111111111111";
const DAY_MS = 86_400_000;
async function houseOn(kind: string, options: HouseOptions = {}): Promise<House> {
  if (kind === "embedded") return openHouse({ ...options, disk: await openStore(temporaryFolder()) });
  const { store, dispose } = await openPostgresStore();
  cleanup(dispose);
  return openHouse({ ...options, disk: store });
}

let runs = 0;

/** Adds the usage of a run to the ledger. */
async function used(
  house: House,
  sessionKey: string,
  tokens: number,
  more: { agoMs?: number; cost?: number; model?: string; runId?: string; rootKey?: string } = {},
) {
  runs += 1;
  const { agoMs = 0, cost = 0, model = "large", runId = `used-${runs}`, rootKey } = more;
  const usage = { input: tokens, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: tokens };
  await house.engine.commit(async (unit) => {
    await addUsageRow(unit.tx, {
      runId,
      sessionKey,
      agentId: sessionKey.split(":")[1] ?? "",
      provider: "p",
      model,
      usage: { ...usage, cost: { input: cost, output: 0, cacheRead: 0, cacheWrite: 0, total: cost } },
      at: unit.now - agoMs,
    });
    if (rootKey === undefined) return;
    const rows = unit.tx.updateTable("ledger").set({ root_key: rootKey });
    await rows.where("run_id", "=", runId).where("session_key", "=", sessionKey).execute();
  });
}

async function asked(
  house: House,
  params: object,
): Promise<Pick<UsageLine, "name" | "totalTokens" | "runs">[]> {
  const client = await house.client();
  const { lines } = await client.request("usage", params);
  return lines.map(({ name, totalTokens, runs }) => ({ name, totalTokens, runs }));
}

describe.each(share(["embedded"], ["postgres"]))("on the %s store", (kind) => {
  const test = both;
  test("usage is summed by agent, session, tree, model and day; a deleted session's usage is still counted for its root", async () => {
    const house = await houseOn(kind);
    const client = await house.client();
    const { key: child } = await client.request("sessions.create", { idempotencyKey: "c" });
    await house.engine.commit((unit) =>
      unit.tx
        .updateTable("sessions")
        .set({ key: CHILD, spawned_by: MAIN })
        .where("key", "=", child)
        .execute(),
    );
    await used(house, MAIN, 100, { cost: 0.5 });
    await used(house, CHILD, 20, { cost: 0.25, model: "small" });
    await used(house, RESEARCH, 3, { agoMs: 3 * DAY_MS });
    await client.call("sessions.delete", { key: CHILD });
    expect(await asked(house, { by: "agent" })).toEqual([
      { name: "main", totalTokens: 120, runs: 2 },
      { name: "research", totalTokens: 3, runs: 1 },
    ]);
    expect(await asked(house, { by: "tree", days: 1 })).toEqual([{ name: MAIN, totalTokens: 120, runs: 2 }]);
    expect(await asked(house, { by: "session", agentId: "main" })).toEqual([
      { name: MAIN, totalTokens: 100, runs: 1 },
      { name: CHILD, totalTokens: 20, runs: 1 },
    ]);
    expect((await asked(house, { by: "model" })).map(({ name }) => name)).toEqual(["p/large", "p/small"]);
    const days = await asked(house, { by: "day" });
    expect(days.map(({ totalTokens }) => totalTokens)).toEqual([120, 3]);
    expect(days[0]?.name).toBe(new Date(house.engine.now()).toISOString().slice(0, 10));
    expect(await asked(house, { by: "day", limit: 1 })).toHaveLength(1);
  });

  test("an agent that has used its daily budget starts no run, says why, and continues the next day", async () => {
    const budget = { dailyTokens: 50, dailyCost: 1 };
    const agents = [
      { ...agentSettings("main"), default: true },
      { ...agentSettings("research"), budget },
    ];
    const house = await houseOn(kind, { play: () => "done", choices: { agents } });
    const say = async (sessionKey: string) => {
      const accepted = await house.engine.accept({ sessionKey, input: { text: "go" } });
      if (!accepted.ok) throw new Error(accepted.error);
      return endOf(house.engine, accepted.value.run.runId);
    };
    await used(house, RESEARCH, 1_000, { agoMs: DAY_MS });
    expect(await say(RESEARCH)).toMatchObject({ state: "ok" });
    await used(house, RESEARCH, 50);
    const refused = await say(RESEARCH);
    expect(refused).toMatchObject({ state: "error", code: "budget_used" });
    expect(refused.error).toContain('agent "research" has used');
    expect(refused.error).toContain("dailyTokens is 50");
    expect(await say(MAIN)).toMatchObject({ state: "ok" });
    const client = await house.client();
    expect(await client.call("usage", {})).toMatchObject({
      budgets: [{ agentId: "research", dailyTokens: 50, dailyCost: 1, stoppedToday: 1 }],
    });
  });

  test("usage by chain names the first session and the first message, and keeps runs whose chain is unknown", async () => {
    const house = await houseOn(kind, { play: () => "done" });
    const client = await house.client();
    await client.request("sessions.patch", { key: MAIN, label: "the release" });
    const { runId } = await client.request("chat.send", { sessionKey: MAIN, message: "is it ready?" });
    await quiet(house);
    const { chainId } = await house.store.db
      .selectFrom("runs")
      .select("chain_id as chainId")
      .where("run_id", "=", runId)
      .executeTakeFirstOrThrow();
    await used(house, MAIN, 30, { runId });
    await used(house, RESEARCH, 4);
    const { lines } = await client.request("usage", { by: "chain" });
    expect(lines).toMatchObject([
      { name: chainId, sessionKey: MAIN, label: "the release", opening: "is it ready?", totalTokens: 35 },
      { name: "", totalTokens: 4 },
    ]);
    expect(lines[1]).not.toHaveProperty("opening");
  });

  test("lines are sorted by cost or by tokens before their number is limited", async () => {
    const house = await houseOn(kind);
    await used(house, MAIN, 100, { cost: 0.01 });
    await used(house, RESEARCH, 2, { cost: 5 });
    const first = async (order: "cost" | "tokens") =>
      (await asked(house, { by: "session", order, limit: 1 })).map(({ name }) => name);
    expect(await first("cost")).toEqual([RESEARCH]);
    expect(await first("tokens")).toEqual([MAIN]);
  });
});
