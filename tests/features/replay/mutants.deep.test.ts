// Checks that replays find nondeterminism: with each mutant, the replay of a chain differs from the record,
// which the unchanged source made.

import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { fieldsOf } from "../../../src/core/json.ts";
import type { ChainRecord } from "../../../src/core/shapes/record/chain.ts";
import type { Settings } from "../../../src/core/shapes/settings/settings.ts";
import { openHouse } from "../../gateway/kit.ts";
import { temporaryFolder } from "../../kit/engine/engine.ts";
import { doing, inTurn, sending, spawning, talkingModel } from "../../kit/talking-model.ts";
import { REPLAY_MUTANTS } from "./mutants.ts";
import { recordOf } from "./record-of.ts";

const WORKER = fileURLToPath(new URL("./worker.ts", import.meta.url));
const PATIENCE_MS = 120_000;
const RESEARCH = "agent:research:main";
const SLOW = "slow work";

const CHAINS = {
  send: doing(sending(RESEARCH, "what is new?")),
  "send-in-vain": doing(sending(RESEARCH, SLOW, 0.05)),
  job: doing(spawning("some work")),
  jobs: inTurn(
    doing(spawning("some work"), spawning("more work")),
    doing({ name: "subagents", arguments: { action: "wait" } }),
  ),
};

/** Returns the record of a gateway whose configuration allowed no reply turns after the first run began. */
function reloaded(record: ChainRecord): ChainRecord {
  const bodyOf = (hash: unknown) => fieldsOf(record.revisions.find((one) => one.hash === hash)?.body);
  const [first] = record.runs;
  const settings = bodyOf(bodyOf(first?.revision).settings) as unknown as Settings;
  const agentToAgent = { ...settings.session.agentToAgent, maxPingPongTurns: 0 };
  const later = { ...settings, session: { ...settings.session, agentToAgent } };
  const revisions = [...record.revisions, { hash: "later", kind: "settings" as const, body: later }];
  const runs = record.runs.map((run) => {
    if (run === first || run.revision === undefined) return run;
    const revision = `later ${run.runId}`;
    revisions.push({ hash: revision, kind: "run", body: { ...bodyOf(run.revision), settings: "later" } });
    return { ...run, revision };
  });
  return { ...record, runs, revisions };
}

/** Records the chains with the unchanged source. Returns the files of the records. */
async function recorded(): Promise<string[]> {
  const first = Promise.withResolvers<void>();
  const session = { agentToAgent: { maxPingPongTurns: 2, maxHops: 16, maxChainRuns: 200 } };
  const house = await openHouse({
    model: talkingModel((input) => (input === SLOW ? first.promise : undefined)),
    choices: { session },
  });
  const records: [string, ChainRecord][] = [];
  for (const [name, text] of Object.entries(CHAINS)) {
    // The slow work lasts until the sender has stopped waiting for it.
    const ended = (): void => (text.includes(SLOW) ? first.resolve() : undefined);
    const record = await recordOf(house, text, {}, ended);
    records.push([name, record]);
    if (name === "send") records.push(["reloaded", reloaded(record)]);
  }
  const folder = temporaryFolder();
  return records.map(([name, record]) => {
    const file = join(folder, name);
    writeFileSync(file, JSON.stringify(record));
    return file;
  });
}

/** Replays the records in a process of its own. Returns the chains with a difference. */
async function differing(files: readonly string[], mutant?: string): Promise<string[]> {
  const change = mutant === undefined ? [] : ["--mutant", mutant];
  const args = [WORKER, ...change, ...files];
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: PATIENCE_MS / 2 });
  const lines = stdout.trim().split("\n").map(fromJson);
  expect(lines.map(({ file }) => file)).toEqual(files);
  return lines.filter(({ step }) => step !== undefined).map(({ file }) => basename(file));
}

const fromJson = (line: string) => JSON.parse(line) as { file: string; step?: string };

test("a replay names a difference with each mutant, and none without", { timeout: PATIENCE_MS }, async () => {
  const files = await recorded();
  expect(await differing(files)).toEqual([]);
  const missed: string[] = [];
  for (const { name, chain } of REPLAY_MUTANTS) {
    if (!(await differing(files, name)).includes(chain)) missed.push(name);
  }
  expect(missed).toEqual([]);
});
