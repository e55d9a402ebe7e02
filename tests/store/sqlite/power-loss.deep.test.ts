// After a power loss at any moment, a store opens without errors and contains everything that was confirmed.
// The files are a snapshot of a real writer. In it, unconfirmed data is partly lost, torn, or as it was
// before. `tests/kit/power-loss/cut.ts` describes the simulation.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import type { Db } from "../../../src/store/sql.ts";
import { openJsonlCopies } from "../../../src/store/sqlite/jsonl-copies.ts";
import { openSqlite } from "../../../src/store/sqlite/sqlite.ts";
import { type Dice, dice } from "../../kit/dice.ts";
import { cleanup, temporaryFolder } from "../../kit/engine/engine.ts";
import {
  afterLoss,
  type FileSet,
  inCheckpoint,
  type Loss,
  lossOf,
  readFiles,
  readWal,
  whileStopped,
  writeFiles,
} from "../../kit/power-loss/cut.ts";
import { powerState, powerStep } from "../../kit/power-loss/steps.ts";
import { lacks } from "../../kit/process/lacks.ts";
import { linesOfCopy } from "../../kit/store/copy-lines.ts";
import { silentLog } from "../samples.ts";

const WRITER = fileURLToPath(new URL("../../kit/power-loss/writer.ts", import.meta.url));
const SEED = process.env.PARLEY_SEED ?? String(Date.now());
const MOMENTS = Number(process.env.PARLEY_MOMENTS ?? 14);
const STARTS = 12;
const START_MAX_MS = 40;
const LOSSES_OF_A_MOMENT = 4;
/**
 * If the files are larger than this, a new writer replaces the current one, because copying takes too long.
 */
const STORE_MAX_BYTES = 6 * 2 ** 20;
const CHANCE_MAX_MS = 40;
const CHECKPOINT_MAX_MS = 2_000;
const FIRST_STEP_MAX_MS = 20_000;

/** Only Linux has /proc, which the snapshot needs, and a signal that pauses the writer. */
const noLinux = lacks("Linux", process.platform === "linux");

type Durability = "full" | "normal";

interface Writer {
  readonly child: ChildProcess;
  readonly dir: string;
  readonly seed: string;
  /** The last transaction that was confirmed or that a reader saw. -1: the store is not open yet. */
  confirmed(): number;
  /** The number of synced frames for each salt of the log. */
  synced(): Map<string, number>;
  end(): Promise<void>;
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

const linesOf = (file: string): string[] => (existsSync(file) ? readFileSync(file, "utf8").split("\n") : []);

function startWriter(durability: Durability, seed: string): Writer {
  const root = temporaryFolder();
  const dir = join(root, "state");
  const ackFile = join(root, "confirmed");
  const syncFile = join(root, "synced");
  const words = [WRITER, dir, durability, seed, ackFile, syncFile];
  const child = spawn(process.execPath, words, { stdio: "inherit" });
  const exited = once(child, "exit");
  const end = async (): Promise<void> => {
    child.kill("SIGKILL");
    await exited;
  };
  cleanup(end);
  const confirmed = (): number => {
    const lines = linesOf(ackFile);
    return lines.length < 2 ? -1 : Number(lines.at(-2)) || 0;
  };
  const synced = (): Map<string, number> =>
    new Map(linesOf(syncFile).map((line) => [line.split(" ")[0] ?? "", Number(line.split(" ")[1])]));
  return { child, dir, seed, confirmed, synced, end };
}

async function reach(writer: Writer, number: number): Promise<void> {
  const until = Date.now() + FIRST_STEP_MAX_MS;
  while (writer.confirmed() < number) {
    if (Date.now() > until) throw new Error(`the writer has made ${writer.confirmed()} transactions`);
    await sleep(1);
  }
}

/** Returns the message ids of each transcript, in order. */
async function stateOf(db: Db): Promise<Map<string, string[]>> {
  const state = new Map<string, string[]>();
  for (const { session_id } of await db.selectFrom("session_ids").select("session_id").execute())
    state.set(session_id, []);
  const rows = await db.selectFrom("messages").select(["id", "session_id"]).orderBy("seq").execute();
  for (const row of rows) state.get(row.session_id)?.push(row.id);
  return state;
}

/** Returns the message ids in each JSONL copy with a header, except those of sessions in `but`. */
function copiesIn(dir: string, but: ReadonlySet<string>): Map<string, string[]> {
  const copies = [...readFiles(dir).others].flatMap(([name, bytes]) => {
    const id = name.slice(0, -".jsonl".length);
    if (!name.endsWith(".jsonl") || but.has(id)) return [];
    const { head, entries } = linesOfCopy(bytes.toString());
    if (head === undefined) return [];
    expect(head.id).toBe(id);
    return [[id, entries.map((line) => JSON.parse(line).id as string)] as const];
  });
  return new Map(copies);
}

/**
 * Checks that the JSONL copy of each session matches its table, line by line, that an older copy has a part
 * of its table, and that a deleted transcript has none.
 */
async function expectCopies(dir: string, db: Db, lost: ReadonlySet<string>): Promise<void> {
  const jsonlCopies = openJsonlCopies({ dir, log: silentLog, db });
  await jsonlCopies.flush();
  await jsonlCopies.flush();
  const [copies, state] = [copiesIn(dir, lost), await stateOf(db)];
  const current = await db.selectFrom("sessions").select("session_id").execute();
  for (const { session_id: id } of current) expect(copies.get(id), id).toEqual(state.get(id));
  for (const [id, entries] of copies) expect(state.get(id)?.slice(0, entries.length), id).toEqual(entries);
}

interface Opened {
  /** The number of complete transactions in the store, counted from the first one. */
  readonly count: number;
}

/** Opens the remaining files in the same way as the gateway's start, and checks every page and row. */
async function open(files: FileSet, seed: string, durability: Durability, whole?: Opened): Promise<Opened> {
  const dir = join(temporaryFolder(), "state");
  mkdirSync(dir);
  try {
    writeFiles(dir, files);
    const store = await openSqlite({ dir, durability, log: silentLog });
    try {
      const check = new DatabaseSync(join(dir, "parley.sqlite"), { readOnly: true });
      expect(check.prepare("pragma integrity_check").all()).toEqual([{ integrity_check: "ok" }]);
      check.exec("pragma query_only = off");
      check.close();
      const state = await stateOf(store.db);
      const numbers = [...state.values()].flat().map((id) => Number(/^m(\d+)-/.exec(id)?.[1]));
      const count = Math.max(0, ...numbers);
      expect(state).toEqual(powerState(seed, count));
      await expectCopies(dir, store.db, lostBetween(seed, count, whole?.count ?? count));
      return { count };
    } finally {
      await store.close();
    }
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Returns the transcripts of lost transactions. Only their JSONL copies may remain. */
function lostBetween(seed: string, count: number, whole: number): Set<string> {
  const lost = new Set<string>();
  for (let number = count + 1; number <= whole; number += 1) {
    const { renewedAs } = powerStep(seed, number);
    if (renewedAs !== undefined) lost.add(renewedAs);
  }
  return lost;
}

interface Moment {
  readonly files: FileSet;
  readonly confirmed: number;
  readonly synced: ReadonlyMap<string, number>;
}

/** Lets the writer run for a random time, or until it is in a checkpoint. */
async function goOn(writer: Writer, luck: Dice): Promise<void> {
  await reach(writer, 1);
  if (luck.chance(0.7)) return sleep(luck.below(CHANCE_MAX_MS));
  const until = Date.now() + CHECKPOINT_MAX_MS;
  while (!inCheckpoint(writer.dir) && Date.now() < until) await sleep(0);
}

/**
 * Describes what the writer was doing when it was stopped, for error messages and to check that every case
 * occurs.
 */
function situation(files: FileSet, loss: Loss): string {
  const wal = files.wal === undefined ? undefined : readWal(files.wal);
  if (wal === undefined) return "between two rounds of the log";
  if (loss.pages.size > 0) return "in a checkpoint";
  return loss.wal.to > loss.wal.from ? "in a transaction" : "between two transactions";
}

async function expectSurvival(
  now: Moment,
  before: Moment | undefined,
  writer: Writer,
  durability: Durability,
  luck: Dice,
): Promise<string> {
  const { files, confirmed, synced } = now;
  const whole = await open(files, writer.seed, durability);
  expect(whole.count).toBeGreaterThanOrEqual(confirmed);
  expect(whole.count).toBeLessThanOrEqual(confirmed + 1);
  const loss = lossOf(files, synced);
  for (let time = 0; time < LOSSES_OF_A_MOMENT; time += 1) {
    const left = afterLoss(files, loss, luck, before?.files);
    const { count } = await open(left, writer.seed, durability, whole);
    expect(count).toBeLessThanOrEqual(whole.count);
    if (durability === "full") expect(count).toBeGreaterThanOrEqual(confirmed);
  }
  return situation(files, loss);
}

// Linux only: see `noLinux`.
test.skipIf(noLinux)(
  "I2: after a power loss directly after its creation, a store opens without errors",
  async () => {
    const luck = dice(`${SEED} starts`);
    for (let start = 1; start <= STARTS; start += 1) {
      const writer = startWriter("full", `${SEED}-${start}`);
      await reach(writer, 0);
      await sleep(luck.below(START_MAX_MS));
      await whileStopped(writer.child.pid ?? 0, async () => {
        if (!existsSync(writer.dir)) return;
        const [files, confirmed] = [readFiles(writer.dir), writer.confirmed()];
        const loss = lossOf(files, writer.synced());
        for (let time = 0; time < LOSSES_OF_A_MOMENT; time += 1) {
          const left = time === 0 ? files : afterLoss(files, loss, luck);
          const { count } = await open(left, writer.seed, "full").catch((error: Error) => {
            throw new Error(`PARLEY_SEED=${SEED}, start ${start}: ${error.message}`, { cause: error });
          });
          expect(count, `PARLEY_SEED=${SEED}, start ${start}`).toBeGreaterThanOrEqual(confirmed);
        }
      });
      await writer.end();
    }
  },
);

// Linux only: see `noLinux`.
test.skipIf(noLinux).each<Durability>(["full", "normal"])(
  "I2: after a power loss at any moment a store with durability %s and its copies open without errors",
  async (durability) => {
    const luck = dice(`${SEED} ${durability}`);
    const met = new Map<string, number>();
    let writer = startWriter(durability, `${SEED}-1`);
    let before: Moment | undefined;
    for (let at = 1; at <= MOMENTS; at += 1) {
      await goOn(writer, luck);
      // The writer is paused while its files are copied, because it writes faster than they can be read.
      before = await whileStopped(writer.child.pid ?? 0, async () => {
        const now: Moment = {
          files: readFiles(writer.dir),
          confirmed: writer.confirmed(),
          synced: writer.synced(),
        };
        try {
          const where = await expectSurvival(now, before, writer, durability, luck);
          met.set(where, (met.get(where) ?? 0) + 1);
        } catch (error) {
          const text = `PARLEY_SEED=${SEED}, moment ${at}, transaction ${now.confirmed}: ${(error as Error).message}`;
          throw new Error(text, { cause: error });
        }
        return now;
      });
      if ((before.files.database?.length ?? 0) < STORE_MAX_BYTES) continue;
      await writer.end();
      writer = startWriter(durability, `${SEED}-${at + 1}`);
      before = undefined;
    }
    await writer.end();
    console.log(`PARLEY_SEED=${SEED} ${durability}: ${JSON.stringify(Object.fromEntries(met))}`);
    expect(met.get("in a transaction") ?? 0, `PARLEY_SEED=${SEED}`).toBeGreaterThan(0);
  },
);
