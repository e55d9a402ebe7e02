// Budgets read sums by agent and day, never the ledger, on both stores and without the server's statistics.

import { sql } from "kysely";
import { describe, expect, onTestFinished, test } from "vitest";
import { ZERO_USAGE } from "../../src/core/shapes/message.ts";
import { addUsageRow, usageOfDay } from "../../src/store/queries/runs/ledger.ts";
import { budgetUse, noteSpending } from "../../src/store/queries/runs/reservations.ts";
import { insertRun } from "../../src/store/queries/runs/runs.ts";
import { kindOf, type Store, type Tx } from "../../src/store/sql.ts";
import { openEmbedded } from "../kit/engine/engine.ts";
import { noteQueries } from "../kit/store/noted-queries.ts";
import { openPostgresStore } from "../kit/store/postgres.ts";
import { sampleRun, temporaryDir } from "./samples.ts";

const ROWS = 100_000;
const DAY_MS = 86_400_000;
const NOON = 20_000 * DAY_MS + DAY_MS / 2;
const ASKING = { runId: "asks", chainId: "c1", agentId: "main", at: NOON, hasDaily: true };

async function openStore(kind: "sqlite" | "postgres"): Promise<Store> {
  if (kind === "postgres") {
    const { store, dispose } = await openPostgresStore({ own: true });
    onTestFinished(dispose);
    return store;
  }
  const { dir, remove } = temporaryDir();
  const store = await openEmbedded(dir);
  onTestFinished(async () => {
    await store.close();
    remove();
  });
  return store;
}

/** Adds rows, without statistics about them. */
async function fill(tx: Tx): Promise<void> {
  const numbers = sql`with recursive n (n) as (select 1 union all select n + 1 from n where n < ${sql.lit(ROWS)})`;
  if (kindOf(tx) === "postgres") {
    for (const name of ["ledger", "runs", "agent_days", "chains"]) {
      await sql`alter table ${sql.table(name)} set (autovacuum_enabled = false)`.execute(tx);
    }
  }
  await sql`insert into ledger (run_id, session_key, agent_id, provider, model, input, output, cache_read,
      cache_write, total_tokens, cost, at)
    ${numbers} select 'r' || n, 'k', 'main', 'p', 'm', 1, 1, 0, 0, 2, 0.5, ${sql.lit(NOON)} + n from n`.execute(
    tx,
  );
  await sql`insert into agent_days (agent_id, day, part, tokens, cost)
    ${numbers} select 'a' || n % 100, n, 0, 1, 1 from n`.execute(tx);
  await sql`insert into runs (run_id, session_key, session_id, agent_id, lane_seq, kind, state, input_json,
      chain_id, hop, attempt, crashes, accepted_at, timeout_ms, started_at, ended_at)
    ${numbers} select 'r' || n, 'k' || n, 's', 'main', n, 'turn', case when n % 2 = 0 then 'queued' else 'ok' end,
      '{}', 'c' || n, 0, 0, 0, n, 0, case when n % 2 = 1 then n end, case when n % 2 = 1 then n end from n`.execute(
    tx,
  );
}

/** Returns the plans of the statements of `work`. */
async function explainPlans(store: Store, work: (tx: Tx) => Promise<unknown>): Promise<string> {
  return store.transaction(async (tx) => {
    const explain = kindOf(tx) === "postgres" ? "explain" : "explain query plan";
    const plans: string[] = [];
    for (const query of await noteQueries(tx, work)) {
      const { rows } = await tx.executeQuery({ ...query, sql: `${explain} ${query.sql}` });
      plans.push(JSON.stringify(rows));
    }
    return plans.join("\n");
  });
}

for (const kind of ["sqlite", "postgres"] as const) {
  describe(kind, () => {
    test(`a budget is read without the ledger and without a scan, at ${ROWS} rows`, async () => {
      const store = await openStore(kind);
      await store.transaction(fill);
      const plans = await explainPlans(store, async (tx) => {
        await budgetUse(tx, ASKING);
        await usageOfDay(tx, "main", NOON);
      });
      expect(plans).toContain("agent_days");
      expect(plans).not.toMatch(/ledger|Seq Scan|SCAN (runs|chains|agent_days)/);
      // Runs that wait in their lanes for the first time have spent nothing and are not read.
      expect(plans).toContain("runs_begun");
    });

    test("the usage of a day is the sum of its ledger rows, and other days and agents do not count", async () => {
      const store = await openStore(kind);
      const row = { runId: "r", sessionKey: "k", agentId: "main", provider: "p", model: "m", at: NOON };
      const usage = { ...ZERO_USAGE, totalTokens: 10, cost: { ...ZERO_USAGE.cost, total: 0.25 } };
      const add = (more: Partial<typeof row>) =>
        store.transaction((tx) => addUsageRow(tx, { ...row, ...more, usage }));
      await Promise.all([add({}), add({}), add({}), add({ at: NOON + DAY_MS }), add({ agentId: "other" })]);
      await add({ at: NOON - DAY_MS / 2 - 1 });
      expect(await usageOfDay(store.db, "main", NOON + 5)).toEqual({ totalTokens: 30, cost: 0.75 });
      expect(await usageOfDay(store.db, "nobody", NOON)).toEqual({ totalTokens: 0, cost: 0 });
    });

    test("unfinished runs count with what they have spent; a chain without a daily budget reads no day", async () => {
      const store = await openStore(kind);
      await store.transaction(async (tx) => {
        for (const [n, state] of ["queued", "waiting", "running", "ok"].entries()) {
          const runId = `run-${n}`;
          const place = { sessionKey: `k${n}`, chainId: n === 1 ? "c2" : "c1" };
          await insertRun(tx, sampleRun({ ...place, runId, agentId: "main" }));
          const ended = state === "ok" ? 2 : null;
          await sql`update runs set state = ${state}, started_at = 1, ended_at = ${ended} where run_id = ${runId}`.execute(
            tx,
          );
          const amount = { tokens: 10 ** n, cost: 0 };
          await noteSpending(tx, runId, amount, amount);
        }
      });
      const read = (hasDaily: boolean) => store.transaction((tx) => budgetUse(tx, { ...ASKING, hasDaily }));
      const both = await read(true);
      expect(both.agent).toMatchObject({ used: { tokens: 111 }, reserved: { tokens: 100 } });
      expect(both.chain).toMatchObject({ used: { tokens: 101 }, reserved: { tokens: 100 } });
      expect((await read(false)).agent.used.tokens).toBe(0);
    });
  });
}

test("two chains of agents without daily budgets reserve at the same time", async () => {
  const store = await openStore("postgres");
  const gate = Promise.withResolvers<void>();
  const inside = Promise.withResolvers<void>();
  const first = store.transaction(async (tx) => {
    await budgetUse(tx, { ...ASKING, hasDaily: false });
    inside.resolve();
    await gate.promise;
  });
  await inside.promise;
  await store.transaction((tx) => budgetUse(tx, { ...ASKING, chainId: "c2", hasDaily: false }));
  gate.resolve();
  await first;
});
