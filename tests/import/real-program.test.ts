// Imports the state that the newest OpenClaw itself has written. `npm run import:source` makes the files.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { listNodes } from "../../src/store/queries/nodes.ts";
import { temporaryFolder } from "../kit/engine/engine.ts";
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
  expect(report.sessions).toMatchObject({ added: 2 });
  expect(await at.said("agent:main:main")).toEqual(["person: hello from the source", "assistant: noted"]);
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
    ["jobs that the source's program made for itself, skipped", 4],
    ["jobs of a main session, which have their own session here", 1],
  ]);
  expect((await at.imported(dir)).sessions).toMatchObject({ added: 0, unchanged: 2 });
});
