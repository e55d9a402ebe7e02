// Imports scheduled jobs, paired people and paired nodes into both stores, and the allow lists and bindings of
// channels. Rights of people and devices need acceptance.

import { createHash, generateKeyPairSync } from "node:crypto";
import { expect } from "vitest";
import { loadSettings } from "../../../src/config.ts";
import { getJob } from "../../../src/features/cron/store.ts";
import { getNode } from "../../../src/features/nodes/store.ts";
import { getPeer, putPeer } from "../../../src/store/queries/channels/channel-peers.ts";
import { both, share, test } from "../../kit/deep.ts";
import { good } from "../../store/transfer/moves.ts";
import { run, STATE } from "./database.ts";
import { put, sourceWith } from "./source.ts";
import { type Kind, remark, stage } from "./stage.ts";

const TABLES = `
  create table cron_jobs (store_key text, job_id text, job_json text);
  create table channel_pairing_allow_entries (channel_key text, account_id text, entry text, updated_at integer);
  create table channel_pairing_requests (channel_key text, account_id text, code text);
  create table device_pairing_paired (device_id text, public_key text, display_name text, role text,
    roles_json text, tokens_json text, node_surface_json text, approved_at_ms integer);
`;
const CONFIG = {
  agents: { entries: { main: {}, research: {} }, defaults: { systemAgent: { agentId: "main" } } },
};
const TURN = { kind: "agentTurn", message: "what is new?" };
const JOB = {
  ...{ id: "11111111-1111-4111-8111-111111111111", name: "Morning", agentId: "research", enabled: true },
  schedule: { kind: "cron", expr: "30 7 * * 1-5", tz: "Europe/Berlin" },
  payload: { ...TURN, timeoutSeconds: 60, thinking: "low", model: "missing/model" },
  delivery: { mode: "announce", channel: "telegram", to: "telegram:4711" },
};
const OTHERS = [
  { id: "far", schedule: { kind: "at", at: "2999-01-01T00:00:00Z" }, payload: TURN },
  { id: "past", schedule: { kind: "at", at: "2001-01-01T00:00:00Z" }, payload: TURN },
  { id: "often", schedule: { kind: "every", everyMs: 100 }, payload: TURN },
  { id: "seconds", schedule: { kind: "cron", expr: "* * * * * *" }, payload: TURN },
  { id: "zone", schedule: { kind: "cron", expr: "* * * * *", tz: "Moon/Base" }, payload: TURN },
  { id: "shell", schedule: JOB.schedule, payload: { kind: "command", argv: ["rm"] } },
  { id: "own", declarationKey: "memory-core:x", schedule: JOB.schedule, payload: TURN },
  { id: "mute", schedule: JOB.schedule, payload: { kind: "agentTurn", message: " " } },
];

const quoted = (value: unknown): string => `'${JSON.stringify(value).replaceAll("'", "''")}'`;

/** Returns a device's id and key. */
function device(): { readonly id: string; readonly key: string } {
  const key = generateKeyPairSync("ed25519").publicKey.export({ type: "spki", format: "der" }).subarray(-32);
  return { id: createHash("sha256").update(key).digest("hex"), key: key.toString("base64url") };
}

function sourceOf(node = device()): string {
  const dir = sourceWith({ config: CONFIG });
  const jobs = [JOB, ...OTHERS].map(
    (job) => `insert into cron_jobs values ('s', '${job.id}', ${quoted(job)})`,
  );
  const secrets = quoted({ token: "a-secret-token" });
  run(
    dir,
    STATE,
    `${TABLES}; ${jobs.join(";")};
     insert into cron_jobs values ('s', 'broken', '{ no json');
     insert into channel_pairing_allow_entries values
       ('telegram', 'default', '555', 1), ('telegram', 'default', 'tg:556', 2), ('telegram', 'work', '557', 3),
       ('telegram', 'default', '*', 4), ('whatsapp', 'default', '+49', 5);
     insert into channel_pairing_requests values ('telegram', 'default', 'SECRET77');
     insert into device_pairing_paired values
       ('${node.id}', '${node.key}', 'Attic', 'node', '["node"]', ${secrets}, '{"commands":["exec"]}', 7),
       ('forged', '${node.key}', 'Forged', 'node', '["node"]', ${secrets}, null, 7),
       ('${device().id}', 'x', 'Phone', 'operator', '["operator"]', ${secrets}, null, 7)`,
  );
  return dir;
}

for (const kind of share<Kind>(["embedded"], ["postgres"])) {
  const test = both;
  test(`${kind}: jobs arrive paused, once, and those without a counterpart are reported`, async () => {
    const dir = sourceOf();
    const at = await stage(kind);
    const report = await at.imported(dir);
    expect(report.jobs).toEqual({ added: 2, unchanged: 0 });
    const job = await at.inStore((store) => getJob(store.db, JOB.id));
    expect(job).toMatchObject({
      ...{ name: "Morning", agentId: "research", message: "what is new?", enabled: false, timeoutMs: 60_000 },
      ...{ schedule: JOB.schedule, thinking: "low", deliver: { channel: "telegram", to: "4711" } },
    });
    expect(job).not.toHaveProperty("nextAt");
    expect(job).not.toHaveProperty("model");
    for (const why of [
      "has passed",
      "interval",
      "five fields",
      "time zone",
      "command",
      "made for itself",
      "no message",
    ])
      expect(remark(report, why)?.count, why).toBe(1);
    expect((await at.imported(dir)).jobs).toEqual({ added: 0, unchanged: 2 });
  });

  test(`${kind}: people and nodes are let in only if that is accepted, and an own decision here stays`, async () => {
    const node = device();
    const dir = sourceOf(node);
    const at = await stage(kind);
    const first = await at.imported(dir);
    const names = ["paired.telegram.default", "paired.telegram.work", `nodes.${node.id.slice(0, 12)}`];
    expect(first.config.trusted.map(({ name, accepted }) => [name, accepted])).toEqual(
      names.map((name) => [name, false]),
    );
    expect(first).toMatchObject({ people: { added: 0 }, nodes: { added: 0 } });
    for (const secret of ["a-secret-token", "SECRET77"]) expect(JSON.stringify(first)).not.toContain(secret);
    const blocked = { channel: "telegram", accountId: "default", peerId: "556" };
    await at.inStore((store) =>
      store.transaction((tx) => putPeer(tx, { ...blocked, state: "blocked", askedAt: 1, toldAt: 1 })),
    );
    const accept = ["paired.telegram.default", `nodes.${node.id.slice(0, 12)}`];
    const second = await at.imported(dir, { accept });
    expect(second).toMatchObject({ people: { added: 1, unchanged: 1 }, nodes: { added: 1 } });
    const stored = await at.inStore(async ({ db }) => [
      (await getPeer(db, { ...blocked, peerId: "555" }))?.state,
      (await getPeer(db, blocked))?.state,
      (await getPeer(db, { ...blocked, accountId: "work", peerId: "557" }))?.state,
      (await getNode(db, node.id))?.name,
    ]);
    expect(stored).toEqual(["approved", "blocked", undefined, "Attic"]);
    // Only the rights that are not here yet are still offered.
    expect((await at.imported(dir)).config.trusted.map(({ name }) => name)).toEqual(["paired.telegram.work"]);
  });
}

test("jobs of older versions come from their file, also if it is the only content", async () => {
  const dir = sourceWith({});
  put(dir, "cron/jobs.json", JSON.stringify({ version: 1, jobs: [{ ...JOB, agentId: "gone" }] }));
  const at = await stage("embedded");
  const report = await at.imported(dir);
  expect(report.jobs.added).toBe(1);
  expect(remark(report, "jobs of agents that are not configured")?.count).toBe(1);
  const broken = sourceWith({ config: CONFIG });
  put(broken, "cron/jobs.json", "{");
  expect(remark(await at.imported(broken), "lists of jobs")?.count).toBe(1);
});

const CHANNELS = {
  ...CONFIG,
  bindings: [
    { agentId: "research", match: { channel: "telegram", peer: { kind: "group", id: "-1" } } },
    { agentId: "research", match: { channel: "telegram", peer: { kind: "group", id: "-9" } } },
    { agentId: "research", match: { channel: "telegram", peer: { kind: "direct", id: "4" } } },
    { agentId: "research", match: { channel: "telegram", accountId: "second" } },
    { agentId: "research", match: { channel: "discord", guildId: "5" } },
    { agentId: "main", match: { channel: "telegram", accountId: "*" } },
  ],
  channels: {
    telegram: {
      ...{ botToken: "1:a", allowFrom: [4711, "tg:4712"], groupAllowFrom: ["4711"] },
      groups: { "-1": { requireMention: false }, "-2": { enabled: false }, "-3": { allowFrom: ["7"] } },
      accounts: { second: { botToken: "2:b", dmPolicy: "open", groupPolicy: "open" } },
    },
    discord: { token: "c", dm: { policy: "allowlist", allowFrom: ["8"] } },
  },
};

test("allow lists and bindings become those of the accounts once they are accepted", async () => {
  const at = await stage("embedded");
  const accept = ["people", "tokens"];
  const { config } = await at.imported(sourceWith({ config: CHANNELS }), { accept });
  expect(config.trusted.map(({ name }) => name)).toEqual([
    // If the source names no owners, these are the people who may write directly.
    ...["telegram:4711", "telegram:4712", "discord:8"].map((owner) => `commands.owners.${owner}`),
    ...["channels.telegram.botToken", "channels.telegram.allowFrom", "channels.telegram.groups"],
    ...["botToken", "allowFrom", "groups"].map((key) => `channels.telegram.accounts.second.${key}`),
    ...["channels.discord.token", "channels.discord.allowFrom"],
  ]);
  const { channels } = good(loadSettings({ env: {}, home: at.home })).settings;
  const [first, second, discord] = channels;
  expect(first).toMatchObject({
    ...{ accountId: "default", agentId: "main", allowFrom: ["4711", "telegram:4712"], groupAllowFrom: [] },
    groups: {
      "-1": { enabled: true, requireMention: false, allowFrom: ["4711"], agentId: "research" },
      "-2": { enabled: false },
      "-3": { allowFrom: ["7"] },
    },
  });
  expect(second).toMatchObject({
    ...{ accountId: "second", agentId: "research", dmPolicy: "open", groupPolicy: "allowlist" },
    // The groups of the channel, which admit nobody else in spite of the policy.
    groups: { "-1": { requireMention: false }, "-2": { enabled: false }, "-3": { allowFrom: ["7"] } },
  });
  expect(discord).toMatchObject({ dmPolicy: "allowlist", allowFrom: ["8"] });
  const notes = config.notes.join("\n");
  for (const why of [
    "bindings[1] names a group",
    "bindings[2] matches one person",
    "bindings[4] matches by guildId",
  ])
    expect(notes).toContain(why);
});

test("without acceptance nobody is let in, and accounts do not inherit what was declined", async () => {
  const at = await stage("embedded");
  const dir = sourceWith({ config: CHANNELS });
  await at.imported(dir, { accept: ["tokens", "channels.telegram.allowFrom", "channels.telegram.groups"] });
  const { channels } = good(loadSettings({ env: {}, home: at.home })).settings;
  const [first, second, discord] = channels;
  expect(Object.keys(first?.groups ?? {})).toHaveLength(3);
  expect(second).toMatchObject({ dmPolicy: "pairing", allowFrom: [], groupPolicy: "allowlist", groups: {} });
  expect(discord?.allowFrom).toEqual([]);
});
