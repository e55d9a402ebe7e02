// The way from version 0.1 to this version and back, with the real program of version 0.1: a backup that it made
// before the upgrade is restored by it. Everything after the backup is lost.

import { spawnSync } from "node:child_process";
import { mkdirSync, renameSync, statSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { openSqlite, STORE_FILE } from "../../src/store/sqlite/sqlite.ts";
import { backupStore, restoreStore } from "../../src/store/transfer/transfer.ts";
import { temporaryFolder } from "../kit/engine/engine.ts";
import { homeWith, startProcess } from "../kit/process/gateway-process.ts";
import { lacks } from "../kit/process/lacks.ts";
import { silentLog } from "../store/samples.ts";
import { freshUrl, good, jobOn, schemaOf } from "../store/transfer/moves.ts";
import { oldFile, oldSchema, rowsOf } from "./old-stores.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
/** The last commit whose stores have the schema of version 0.1. A copy without history lacks it. */
const COMMIT = "17bae3ae7de3ddd8b323dd1ba7ae797b5191ddea";

const hasProgram = spawnSync("git", ["-C", ROOT, "cat-file", "-e", `${COMMIT}^{commit}`]).status === 0;

/** Unpacks the program of version 0.1, which runs with the libraries of this version. */
function oldProgram(): string {
  const folder = temporaryFolder();
  const unpack = `git -C "${ROOT}" archive ${COMMIT} bin src package.json | tar x -C "${folder}"`;
  expect(spawnSync("sh", ["-c", unpack]).status).toBe(0);
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  return join(folder, "bin", "parley.js");
}

/** Runs the program of version 0.1 with the configuration of a home folder. */
function runOld(script: string, home: string, argv: readonly string[]) {
  const env = { PATH: process.env.PATH, HOME: home, PARLEY_LOG: "warn" };
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, ...argv], {
    env,
    encoding: "utf8",
  });
  return { code: status, said: stdout + stderr };
}

/** Converts a store with a gateway of this version, and lets it answer a message. */
async function convertAndUse(store: object): Promise<void> {
  const gateway = await startProcess({ config: { store } });
  const client = await gateway.connect();
  const { runId } = await client.request("agent", { message: "say used", sessionKey: "agent:main:used" });
  await client.request("agent.wait", { runId, timeoutMs: 60_000 });
  const { messages } = await client.request("chat.history", { sessionKey: "agent:main:used", limit: 10 });
  expect(JSON.stringify(messages)).toContain("used");
  expect(await gateway.end("SIGTERM")).toBe(0);
}

const REFUSED = /was written by a newer version of this program [\s\S]*Nothing was changed/;

// A copy of the project without its history has no such program.
describe.skipIf(lacks("the commit of version 0.1", hasProgram))("from this version back to 0.1", () => {
  test("embedded: the old program refuses the converted store, and restores its backup row for row", async () => {
    const script = oldProgram();
    const dir = oldFile();
    const home = homeWith({ store: { dir } });
    const backup = join(home, "before.sqlite");
    const before = rowsOf(join(dir, STORE_FILE));
    expect(before.messages).toHaveLength(29);
    expect(runOld(script, home, ["store", "backup", backup]).code).toBe(0);
    expect(rowsOf(backup)).toEqual(before);
    await convertAndUse({ dir });
    const converted = rowsOf(join(dir, STORE_FILE));
    expect(runOld(script, home, ["gateway"])).toEqual({ code: 1, said: expect.stringMatching(REFUSED) });
    expect(rowsOf(join(dir, STORE_FILE))).toEqual(converted);
    const away = join(dir, "away");
    mkdirSync(away);
    for (const ending of ["", "-mark"])
      renameSync(join(dir, `${STORE_FILE}${ending}`), join(away, `${STORE_FILE}${ending}`));
    const { code, said } = runOld(script, home, ["store", "restore", backup]);
    expect([code, said]).toEqual([0, expect.stringContaining("Restored 7 sessions, 29 messages, 14 runs")]);
    expect(rowsOf(join(dir, STORE_FILE))).toEqual(before);
    expect(runOld(script, home, ["store"]).said).toContain("schema   version 37\n");
  });

  test("PostgreSQL: the same, into another schema", async () => {
    const script = oldProgram();
    const url = await oldSchema();
    const home = (postgresUrl: string) => homeWith({ store: { dir: temporaryFolder(), postgresUrl } });
    const folder = temporaryFolder();
    const [backup, again] = [join(folder, "before.sqlite"), join(folder, "again.sqlite")];
    expect(runOld(script, home(url), ["store", "backup", backup]).code).toBe(0);
    expect(rowsOf(backup).messages).toHaveLength(29);
    await convertAndUse({ dir: temporaryFolder(), postgresUrl: url });
    expect(runOld(script, home(url), ["gateway"])).toEqual({ code: 1, said: expect.stringMatching(REFUSED) });
    const back = await freshUrl();
    expect(schemaOf(back)).not.toBe(schemaOf(url));
    expect(runOld(script, home(back), ["store", "restore", backup]).code).toBe(0);
    expect(runOld(script, home(back), ["store", "backup", again]).code).toBe(0);
    expect(rowsOf(again)).toEqual(rowsOf(backup));
  });
});

test("a backup of this version is restored by this version row for row, after the store was used further", async () => {
  const dir = temporaryFolder();
  await convertAndUse({ dir });
  const backup = join(temporaryFolder(), "backup.sqlite");
  good(await backupStore(jobOn(dir), backup));
  await convertAndUse({ dir });
  const to = temporaryFolder();
  good(await restoreStore(jobOn(to), backup));
  const [restored, made, used] = [join(to, STORE_FILE), backup, join(dir, STORE_FILE)].map(rowsOf);
  expect(restored).toEqual(made);
  expect(used?.messages?.length).toBeGreaterThan(restored?.messages?.length ?? 0);
});

/** Adds copies of the finished runs, the messages and the usage. */
function grow(file: string, copies: number): void {
  const database = new DatabaseSync(file);
  const add = (
    table: string,
    ids: readonly string[],
    changed: Record<string, string>,
    where = "true",
  ): void => {
    const names = database.prepare(`select name from pragma_table_info('${table}')`).all();
    const columns = names.map(({ name }) => String(name)).filter((name) => !ids.includes(name));
    const values = columns.map((name) => changed[name] ?? name);
    database.exec(`with recursive n(i) as (select 1 union all select i + 1 from n where i < ${copies})
      insert into ${table} (${columns.join(", ")}) select ${values.join(", ")}
      from (select * from ${table} where ${where}) cross join n`);
  };
  add(
    "runs",
    [],
    { run_id: "run_id || i", call_id: "call_id || i", lane_seq: "lane_seq + 1000 * i" },
    "ended_at is not null",
  );
  add("messages", ["seq"], { id: "id || i" });
  add("ledger", ["seq", "id"], {});
  database.exec("vacuum");
  database.close();
}

test("a conversion needs less free space than the store has bytes", async () => {
  const dir = oldFile();
  const file = join(dir, STORE_FILE);
  grow(file, 1_000);
  const { size } = statSync(file);
  expect(size).toBeGreaterThan(20_000_000);
  const begun = performance.now();
  const store = await openSqlite({ dir, durability: "full", log: silentLog });
  const seconds = (performance.now() - begun) / 1_000;
  const log = statSync(`${file}-wal`).size;
  await store.close();
  console.log(
    `A conversion of ${size} bytes: ${Math.round(size / seconds / 2 ** 20)} MB/s, a log of ${log} bytes`,
  );
  expect(log).toBeGreaterThan(size / 10);
  expect(log).toBeLessThan(size);
});
