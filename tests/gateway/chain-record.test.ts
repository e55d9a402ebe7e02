// The record of a chain, on both stores: its contents, its size, and records that are refused.

import { describe, expect } from "vitest";
import { createOldRowsCleanup } from "../../src/app/old-rows.ts";
import { readRecord, recordText } from "../../src/contract/chain-record.ts";
import type { ChainRecord } from "../../src/core/shapes/record/chain.ts";
import type { RunInputs } from "../../src/core/shapes/record/revision.ts";
import type { Settings } from "../../src/core/shapes/settings/settings.ts";
import { keepRevisions } from "../../src/store/queries/runs/revisions.ts";
import { both, share, test } from "../kit/deep.ts";
import { cleanup, endOf, quietWorld } from "../kit/engine/engine.ts";
import { openPostgresStore } from "../kit/store/postgres.ts";
import { doing, sending, spawning, talkingModel } from "../kit/talking-model.ts";
import { withTimers } from "../kit/world.ts";
import { type House, type HouseOptions, openHouse, quiet } from "./kit.ts";

const MAIN = "agent:main:main";
const RESEARCH = "agent:research:main";
const SECRET = "sk-live0a1b2c3d4e5f6a7b8c9d0e1f";
const PROVIDER = {
  ...{ id: "cloud", api: "openai-completions" as const, baseUrl: "https://user:pass@models.example/v1" },
  ...{ apiKey: SECRET, headers: { "x-key": SECRET }, models: [] },
  ...{ connectTimeoutSeconds: 10, idleTimeoutSeconds: 90, maxRetries: 3 },
};

async function houseOn(kind: string, options: HouseOptions = {}): Promise<House> {
  const choices = { session: { agentToAgent: { maxPingPongTurns: 1, maxHops: 16, maxChainRuns: 200 } } };
  const more = { model: talkingModel(), choices: { ...choices, providers: [PROVIDER] }, ...options };
  if (kind === "embedded") return openHouse(more);
  const { store, dispose } = await openPostgresStore();
  cleanup(dispose);
  return openHouse({ ...more, disk: store });
}

/** Sends a message to the main session, and returns the chain after all work has ended. */
async function tell(house: House, text: string): Promise<string> {
  const accepted = await house.engine.accept({ sessionKey: MAIN, input: { text } });
  if (!accepted.ok) throw new Error(accepted.error);
  await endOf(house.engine, accepted.value.run.runId);
  await quiet(house);
  return accepted.value.run.chainId;
}

async function textOf(house: House, chainId: string): Promise<string> {
  const client = await house.client();
  let [text, offset] = ["", 0 as number | undefined];
  while (offset !== undefined) {
    const page: { text: string; nextOffset?: number } = await client.request("chains.record", {
      chainId,
      offset,
    });
    text += page.text;
    offset = page.nextOffset;
  }
  return text;
}

function read(text: string): ChainRecord {
  const found = readRecord(text);
  if (!found.ok) throw new Error(found.error);
  return found.value;
}

const TALK = doing(sending(RESEARCH, "a question"), spawning("some work"));

describe.each(share(["embedded"], ["postgres"]))("on the %s store", (kind) => {
  both("the record has runs, messages, flows and inputs of a chain, and no secret", async () => {
    const house = await houseOn(kind);
    await tell(house, "an earlier message");
    const chainId = await tell(house, TALK);
    const text = await textOf(house, chainId);
    const record = read(text);
    expect(record.runs.length).toBeGreaterThan(3);
    expect(record.runs.every((run) => run.chainId === chainId)).toBe(true);
    const turns = record.runs.filter((run) => run.kind === "turn");
    expect(turns.every((run) => run.revision !== undefined)).toBe(true);
    expect(record.flows.map((flow) => flow.kind).sort()).toEqual(["send", "spawn"]);
    expect(record.entries.every(({ runId }) => runId !== undefined)).toBe(true);
    const main = record.sessions.find(({ session }) => session.key === MAIN);
    expect(JSON.stringify(main?.before)).toContain("an earlier message");
    const inputs = record.revisions.filter((one) => one.kind === "run").map(({ body }) => body as RunInputs);
    expect(inputs.length).toBeGreaterThan(0);
    const known = new Set(record.revisions.map(({ hash }) => hash));
    for (const { settings, tools, prompt } of inputs) {
      for (const hash of [settings, tools, ...prompt]) expect(known).toContain(hash);
    }
    const settings = record.revisions.find((one) => one.kind === "settings")?.body as Settings;
    expect(settings.agents.map(({ id }) => id)).toEqual(["main", "research", "writer"]);
    expect(settings.providers[0]).toMatchObject({ baseUrl: "https://models.example/v1", headers: {} });
    expect(text).not.toContain(SECRET);
    expect(text).not.toContain("user:pass");
  });

  both("equal inputs are stored once, and a run adds less than 2 KB", async () => {
    const house = await houseOn(kind);
    const rows = () => house.store.db.selectFrom("revisions").selectAll().execute();
    await tell(house, "hello");
    const first = await rows();
    for (let at = 0; at < 5; at += 1) await tell(house, `hello ${at}`);
    expect(await rows()).toEqual(first);
    await tell(house, TALK);
    const more = (await rows()).slice(0).filter(({ hash }) => first.every((one) => one.hash !== hash));
    const runs = await house.store.db.selectFrom("runs").select("run_id").execute();
    const bytes = more.reduce((sum, { body_json: body }) => sum + body.length, 0);
    expect(bytes / runs.length).toBeLessThan(2_048);
  });

  both("a revision that is stored again counts as used", async () => {
    const house = await houseOn(kind);
    const one = { hash: "h", kind: "prompt", body: "{}" } as const;
    await house.store.transaction((tx) => keepRevisions(tx, [one], 1));
    await house.store.transaction((tx) => keepRevisions(tx, [one], 2));
    const query = house.store.db.selectFrom("revisions").selectAll().where("hash", "=", "h");
    expect(await query.execute()).toEqual([
      { hash: "h", kind: "prompt", body_json: "{}", created_at: 1, used_at: 2 },
    ]);
  });
});

test("a sweep deletes the inputs of old runs, and nothing that a run within the days refers to", async () => {
  const hourMs = 3_600_000;
  const real = quietWorld();
  let laterMs = 0;
  const world = { ...real, clock: { ...real.clock, now: () => real.clock.now() + laterMs } };
  const house = await houseOn("embedded", { world });
  const swept = async () => {
    await house.engine.commit((unit) => createOldRowsCleanup(house.settings)(unit, "records"));
    return house.store.db.selectFrom("revisions").select("hash").execute();
  };
  await tell(house, "hello");
  // The sub-agent has another prompt, but settings and tools that the first run stored five hours before.
  laterMs = 5 * hourMs;
  const chainId = await tell(house, TALK);
  const { revisions } = read(await textOf(house, chainId));
  laterMs = (30 * 24 + 4) * hourMs;
  await swept();
  expect(read(await textOf(house, chainId)).revisions).toEqual(revisions);
  laterMs = (30 * 24 + 24) * hourMs;
  expect(await swept()).toEqual([]);
});

test("a long record comes in pages with one checksum", async () => {
  const house = await houseOn("embedded");
  const chainId = await tell(house, "long ".repeat(60_000));
  const client = await house.client();
  const page = await client.request("chains.record", { chainId });
  expect(page).toMatchObject({ nextOffset: 524_288 });
  expect(read(await textOf(house, chainId)).runs).toHaveLength(1);
});

test("a record is forgotten a minute after its last page was read", async () => {
  const pending: (() => void)[] = [];
  const world = withTimers(quietWorld(), (fire, ms) => {
    if (ms === 60_000) pending.push(fire);
    return fire;
  });
  const house = await houseOn("embedded", { world });
  const chainId = await tell(house, "long ".repeat(240_000));
  const client = await house.client();
  const page = async (offset: number) =>
    (await client.request("chains.record", { chainId, offset })).checksum;
  const first = await page(0);
  await house.store.transaction((tx) => tx.deleteFrom("revisions").execute());
  expect(await page(524_288)).toBe(first);
  for (const fire of pending) fire();
  expect(await page(1_048_576)).not.toBe(first);
});

test("a chain with an unfinished run, an unknown chain and a narrow token get one clear error", async () => {
  const release = Promise.withResolvers<void>();
  const model = talkingModel((input) => (input === "wait" ? release.promise : undefined));
  const tokens = [
    { token: "some-sessions", role: "operator", scopes: ["operator.admin"], sessions: [MAIN] },
  ] as const;
  const house = await houseOn("embedded", { model, gateway: { tokens } });
  const accepted = await house.engine.accept({ sessionKey: MAIN, input: { text: "wait" } });
  if (!accepted.ok) throw new Error(accepted.error);
  const { chainId } = accepted.value.run;
  const client = await house.client();
  await expect(client.request("chains.record", { chainId })).rejects.toMatchObject({
    details: { code: "session_busy" },
  });
  await expect(client.request("chains.record", { chainId: "none" })).rejects.toMatchObject({
    details: { code: "chain_not_found" },
  });
  const narrow = await house.client({ token: "some-sessions" });
  await expect(narrow.request("chains.record", { chainId })).rejects.toMatchObject({
    details: { code: "missing_scope" },
  });
  release.resolve();
  await endOf(house.engine, accepted.value.run.runId);
});

test("a torn, edited or foreign record is refused in words", async () => {
  const house = await houseOn("embedded");
  const text = await textOf(house, await tell(house, TALK));
  const whole = JSON.parse(text) as Record<string, unknown>;
  const edited = (change: Record<string, unknown>) => JSON.stringify({ ...whole, ...change });
  const { checksum: _, format: __, version: ___, ...record } = whole;
  const sealed = (change: Record<string, unknown>) =>
    recordText({ ...record, ...change } as unknown as ChainRecord).text;
  const cases: [string, string][] = [
    [text.slice(0, -10), "torn"],
    [text.slice(0, 100), "torn"],
    ["", "torn"],
    ["[]", "torn"],
    ["{}", "not the record of a chain"],
    [edited({ version: 2 }), "its version is 2"],
    [text.replace("a question", "another one"), "its checksum does not match"],
    [edited({ chainId: "other" }), "its checksum does not match"],
    [sealed({ runs: {} }), 'its field "runs" is not a list'],
    [sealed({ runs: [{}] }), "a run has no id"],
    [sealed({ entries: [{ at: "now" }] }), "an entry has no content"],
    [sealed({ sessions: [{}] }), "a session has no row"],
    [sealed({ chainId: 7 }), "it names no chain"],
  ];
  for (const [given, why] of cases) {
    expect(readRecord(given)).toMatchObject({ ok: false, error: expect.stringContaining(why) });
  }
  expect(readRecord(text).ok).toBe(true);
});
