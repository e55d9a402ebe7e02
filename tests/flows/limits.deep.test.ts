// Limits of the number of rows, on a shared database: two transactions that count at the same time do not
// both get the last free place.

import { sql } from "kysely";
import { expect, test } from "vitest";
import { askToPair } from "../../src/flows/delivery/pairing.ts";
import { openPermission } from "../../src/flows/permission.ts";
import { addWithin } from "../../src/gateway/methods/rights/tokens.ts";
import { getPeer } from "../../src/store/queries/channels/channel-peers.ts";
import { cleanup } from "../kit/engine/engine.ts";
import { type Actor, type FlowApp, openFlowApp } from "../kit/engine/flow-app.ts";
import { openPostgresStore } from "../kit/store/postgres.ts";
import { until } from "../kit/until.ts";
import type { Add } from "./add-row.ts";

const MAIN = "agent:main:main";

const permission: Add = async (app, at, then) => {
  const { runId } = (await app.runs(MAIN))[0] ?? (await app.tell(MAIN, "go"));
  return app.engine.commit(async (unit) => {
    const facts = { sessionKey: MAIN, agentId: "main", runId, attempt: 1 };
    const asked = { ...facts, title: `command ${at}`, rawInput: {}, askMs: 600_000 };
    const question = await openPermission(unit, asked);
    await then(unit);
    return question.ok;
  });
};

const pairing: Add = (app, at, then) =>
  app.engine.commit(async (unit) => {
    const who = { channel: "telegram", accountId: "default", peerId: String(at) };
    await askToPair(app, unit, { ...who, route: { channel: who.channel, to: who.peerId } });
    const asked = await getPeer(unit.tx, who);
    await then(unit);
    return asked !== undefined;
  });

const token: Add = ({ engine }, at, then) =>
  engine.commit(async (unit) => {
    const facts = { tokenId: "t", name: `n ${at}`, scopes: [], createdAt: unit.now };
    const added = await addWithin(unit, { ...facts, id: unit.newId(), expiresAt: unit.now + 60_000 });
    await then(unit);
    return added.ok;
  });

interface FeatureLimits {
  readonly limits: readonly (readonly [string, number, Add])[];
}
const FEATURES = Object.values(import.meta.glob<FeatureLimits>("../features/*/limits.ts", { eager: true }));

test.each<readonly [string, number, Add]>([
  ["open permission requests of a session", 20, permission],
  ["open pairings of an account", 20, pairing],
  ["access tokens", 500, token],
  ...FEATURES.flatMap(({ limits }) => limits),
])("%s: of two that are added at once, one gets the last place", async (_, max, add) => {
  const { store, dispose } = await openPostgresStore();
  cleanup(dispose);
  const app = await openFlowApp({ disk: store, plays: { [MAIN]: untilAborted } });
  for (let at = 0; at < max - 1; at += 1) expect(await add(app, at, async () => {})).toBe(true);
  const [counted, mayEnd] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const first = add(app, max, async () => {
    counted.resolve();
    await mayEnd.promise;
  });
  await counted.promise;
  let hasEnded = false;
  const second = add(app, max + 1, async () => {}).finally(() => {
    hasEnded = true;
  });
  await until(async () => hasEnded || (await isBlocked(app)));
  mayEnd.resolve();
  expect([await first, await second]).toEqual([true, false]);
});

/** A turn that lasts until the app stops. */
async function untilAborted({ handle }: Actor): Promise<string> {
  await new Promise((resolve) => handle.signal.addEventListener("abort", resolve));
  return "";
}

async function isBlocked({ store }: FlowApp): Promise<boolean> {
  const { rows } = await sql`select 1 from pg_locks where locktype = 'advisory' and not granted
    and database = (select oid from pg_database where datname = current_database())`.execute(store.db);
  return rows.length > 0;
}
