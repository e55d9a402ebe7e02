// Imports the state that the newest OpenClaw itself has written. `npm run import:source` makes the files.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { loadSettings } from "../../src/config.ts";
import { getPeer } from "../../src/store/queries/channels/channel-peers.ts";
import { listNodes } from "../../src/store/queries/nodes.ts";
import { temporaryFolder } from "../kit/engine/engine.ts";
import { good } from "../store/transfer/moves.ts";
import { put } from "./source.ts";
import { stage } from "./stage.ts";

const MADE = join("tests", "import", "openclaw-2026.9.6");

function source(): string {
  const dir = temporaryFolder();
  put(dir, "openclaw.json", readFileSync(join(MADE, "openclaw.json")));
  for (const file of readdirSync(MADE).filter((name) => name.endsWith(".gz"))) {
    const path = file.replace(/\.gz$/, "").replaceAll("--", "/");
    put(dir, path, gunzipSync(readFileSync(join(MADE, file))));
  }
  return dir;
}

test("sessions, jobs and nodes that openclaw 2026.9.6 stored are imported", async () => {
  const dir = source();
  const at = await stage("embedded");
  const report = await at.imported(dir, { accept: ["all"] });
  expect(report.sessions).toMatchObject({ added: 3 });
  expect(await at.said("agent:main:main")).toEqual([
    ...["person: hello from the source", "assistant: noted"],
    ...["person: hello from telegram", "assistant: noted"],
  ]);
  expect(await at.said("agent:main:telegram:group:-1001")).toEqual([
    ...["person: hello from the group", "assistant: noted"],
  ]);
  expect(await at.said("agent:research:main")).toEqual([
    "person: what is new in research?",
    "assistant: noted",
  ]);
  expect(report.jobs).toEqual({ added: 2, unchanged: 0 });
  const jobs = await at.inStore(({ db }) => db.selectFrom("cron_jobs").selectAll().orderBy("name").execute());
  expect(jobs.map(({ name, agent_id: agent, message }) => [name, agent, message])).toEqual([
    ["Main", "main", "look"],
    ["Morning", "research", "what is new?"],
  ]);
  expect(report.nodes).toMatchObject({ added: 1 });
  expect((await at.inStore(({ db }) => listNodes(db))).map(({ node }) => node.name)).toEqual(["Attic"]);
  // Nothing is unknown: these are the program's own jobs, and the job that moves to a session of its own.
  expect(report.remarks.map(({ what, count }) => [what, count])).toEqual([
    ["open requests for pairing, which must be made again", 1],
    ["jobs that the source's program made for itself, skipped", 4],
    ["jobs of a main session, which have their own session here", 1],
  ]);
  expect((await at.imported(dir)).sessions).toMatchObject({ added: 0, unchanged: 3 });
});

test("bots, bindings, allow lists, pairings and the owner that openclaw 2026.9.6 wrote are imported once they are accepted", async () => {
  const at = await stage("embedded");
  const dir = source();
  const offered = await at.imported(dir, { dryRun: true });
  const names = offered.config.trusted.map(({ name }) => name);
  expect(names).toEqual([
    "commands.owners.telegram:801",
    ...["channels.telegram.accounts.default.allowFrom", "channels.telegram.accounts.default.groups"],
    ...["channels.telegram.accounts.work.allowFrom", "channels.telegram.accounts.work.groups"],
    ...["paired.telegram.default", "paired.telegram.work"],
    expect.stringMatching(/^nodes\./),
  ]);
  expect(offered.config.trusted.every(({ accepted }) => !accepted)).toBe(true);
  const report = await at.imported(dir, { accept: ["all"] });
  expect(report.people).toMatchObject({ added: 2 });
  const { settings } = good(loadSettings({ env: {}, home: at.home }));
  expect(settings.owners).toEqual(["telegram:801"]);
  const group = { "-1001": expect.objectContaining({ requireMention: false, allowFrom: ["4711"] }) };
  expect(settings.channels).toMatchObject([
    { accountId: "default", agentId: "main", dmPolicy: "pairing", allowFrom: ["4711"], groups: group },
    { accountId: "work", agentId: "research", dmPolicy: "pairing", allowFrom: ["4711"], groups: group },
  ]);
  const peers = [
    { accountId: "default", peerId: "801" },
    { accountId: "default", peerId: "802" },
    { accountId: "work", peerId: "803" },
  ];
  const states = await at.inStore(({ db }) =>
    Promise.all(peers.map(async (peer) => (await getPeer(db, { channel: "telegram", ...peer }))?.state)),
  );
  expect(states).toEqual(["approved", undefined, "approved"]);
});
