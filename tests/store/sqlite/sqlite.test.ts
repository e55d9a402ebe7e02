import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { StoreProblem, type StoreProblemKind } from "../../../src/store/problems.ts";
import { SCHEMA_VERSION } from "../../../src/store/schema/conversion.ts";
import type { Store } from "../../../src/store/sql.ts";
import { openSqlite, STORE_FILE } from "../../../src/store/sqlite/sqlite.ts";
import { lacks } from "../../kit/process/lacks.ts";
import { keptLog, silentLog, temporaryDir } from "../samples.ts";

const FIXTURE = fileURLToPath(new URL("./open-store.ts", import.meta.url));
/** Source of a process that creates nested folders at the same time as another process. */
const MAKER = `
  const { parentPort, workerData: { dir, gate } } = require("node:worker_threads");
  import(${JSON.stringify(new URL("../../../src/world/folders.ts", import.meta.url))}).then(async ({ ensureFolder }) => {
    for (let at = 1; at <= 200; at += 1) {
      Atomics.add(gate, 0, 1);
      while (Atomics.load(gate, 0) < 2 * at);
      await ensureFolder(dir + "/" + at + "/b");
    }
    parentPort.postMessage("made");
  });`;

let dir: string;
let file: string;
let remove: () => void;
const opened: Store[] = [];
const children: ChildProcess[] = [];

beforeEach(() => {
  const made = temporaryDir();
  remove = made.remove;
  dir = join(made.dir, "state");
  file = join(dir, STORE_FILE);
});
afterEach(async () => {
  for (const store of opened.splice(0)) await store.close();
  for (const child of children.splice(0)) child.kill("SIGKILL");
  remove();
});

async function open(): Promise<Store> {
  const store = await openSqlite({ dir, durability: "full", log: silentLog });
  opened.push(store);
  return store;
}

async function openAndClose(): Promise<void> {
  const store = await openSqlite({ dir, durability: "full", log: silentLog });
  await store.transaction((tx) => tx.insertInto("chains").values({ chain_id: "kept", runs: 7 }).execute());
  await store.close();
}

async function problem(): Promise<StoreProblem> {
  const outcome = await open().catch((error: unknown) => error);
  if (!(outcome instanceof StoreProblem)) throw new Error(`a problem was expected, not ${outcome}`);
  return outcome;
}

async function expectRefused(kind: StoreProblemKind): Promise<StoreProblem> {
  const before = readFileSync(file);
  const found = await problem();
  expect(found.problem).toBe(kind);
  expect(found.message).toContain(file);
  expect(found.message).toContain(found.wayOut);
  expect(readFileSync(file).equals(before)).toBe(true);
  return found;
}

/** Reads the next line that a child process prints. */
async function heard(child: ChildProcess): Promise<Record<string, unknown>> {
  if (child.stdout === null) throw new Error("no stdout");
  const lines = createInterface({ input: child.stdout });
  const [line] = await once(lines, "line");
  return JSON.parse(String(line));
}

describe("opening", () => {
  test("a new store folder and every file in it are accessible only to the owner", async () => {
    const store = await open();
    await store.transaction((tx) => tx.insertInto("chains").values({ chain_id: "a", runs: 1 }).execute());
    expect(statSync(dir).mode & 0o777).toBe(0o700);
    const modes = readdirSync(dir).map((name) => statSync(join(dir, name)).mode & 0o777);
    expect(modes.length).toBeGreaterThan(2);
    expect(new Set(modes)).toEqual(new Set([0o600]));
  });

  test("stored data is still there after the store is closed and opened again", async () => {
    await openAndClose();
    const store = await open();
    expect(await store.db.selectFrom("chains").selectAll().execute()).toEqual([
      expect.objectContaining({ chain_id: "kept", runs: 7 }),
    ]);
    expect(store.transcriptPath("abc")).toBe(join(dir, "abc.jsonl"));
  });

  test("neither the first start nor an opening without a migration writes a log line", async () => {
    const log = keptLog();
    for (let opening = 0; opening < 2; opening += 1) {
      await (await openSqlite({ dir, durability: "normal", log })).close();
    }
    expect(log.lines).toEqual([]);
  });

  test("a closed store refuses work, and can be closed again", async () => {
    const store = await open();
    await store.close();
    await store.close();
    await expect(store.transaction(async () => 1)).rejects.toThrow();
    await expect(store.db.selectFrom("chains").selectAll().execute()).rejects.toThrow();
  });

  test("closing during a transaction rolls it back", async () => {
    const store = await open();
    const started = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    const writing = store.transaction(async (tx) => {
      await tx.insertInto("chains").values({ chain_id: "half", runs: 1 }).execute();
      started.resolve();
      await release.promise;
    });
    await started.promise;
    await store.close();
    release.resolve();
    await expect(writing).rejects.toThrow();
    expect(await (await open()).db.selectFrom("chains").selectAll().execute()).toEqual([]);
  });
});

describe("leaves unusable files unchanged", () => {
  test("a file of a newer version is refused", async () => {
    await openAndClose();
    const database = new DatabaseSync(file);
    database.exec(`pragma user_version = ${SCHEMA_VERSION + 1}`);
    database.close();
    await expectRefused("newer");
  });

  test("a file of an unreleased version is refused, with the versions that are converted", async () => {
    await openAndClose();
    const database = new DatabaseSync(file);
    database.exec("pragma user_version = 40");
    database.close();
    expect((await expectRefused("unreleased")).message).toMatch(/schema version 40.*version 0\.1/s);
  });

  test("a database of another program is refused", async () => {
    mkdirSync(dir);
    const database = new DatabaseSync(file);
    database.exec("create table notes (text)");
    database.close();
    await expectRefused("corrupt");
  });

  test("a file that is not a database, or has a damaged header, is refused", async () => {
    mkdirSync(dir);
    writeFileSync(file, "this is a letter to my aunt".repeat(100));
    await expectRefused("corrupt");
    writeFileSync(file, "");
    await openAndClose();
    const bytes = readFileSync(file);
    bytes.fill(0x5a, 0, 100);
    writeFileSync(file, bytes);
    await expectRefused("corrupt");
  });

  test("a file that was truncated is refused", async () => {
    await openAndClose();
    truncateSync(file, statSync(file).size / 2);
    await expectRefused("corrupt");
  });

  test("an emptied file is refused if its log still contains data, and the log is kept", async () => {
    await openAndClose();
    writeFileSync(file, "");
    writeFileSync(`${file}-wal`, "data that SQLite would throw away");
    await expectRefused("corrupt");
    expect(readFileSync(`${file}-wal`, "utf8")).toContain("data");
  });

  test("a file that lost its last page is refused", async () => {
    await openAndClose();
    truncateSync(file, statSync(file).size - 4_096);
    await expectRefused("corrupt");
  });

  test("a file is refused if it was cut so short that it looks empty", async () => {
    await openAndClose();
    writeFileSync(file, "0");
    await expectRefused("corrupt");
  });

  test("an empty or missing file is refused if JSONL copies of its transcripts exist", async () => {
    await openAndClose();
    writeFileSync(join(dir, "0b6f1c0e-7d1c-4c57-9a53-6a2f1d0c9b11.jsonl"), "{}\n");
    writeFileSync(file, "");
    await expectRefused("corrupt");
    rmSync(file);
    expect((await problem()).problem).toBe("corrupt");
    expect(existsSync(file)).toBe(false);
  });

  test.each(["", "-wal", "-shm"])("a folder in place of the file (%j) is refused", async (end) => {
    await openAndClose();
    rmSync(`${file}${end}`, { force: true });
    mkdirSync(`${file}${end}`);
    expect((await problem()).problem).toBe("not_a_file");
  });

  test.each(["gateway.lock", "gateway.pid"])("a folder in place of %s is refused", async (name) => {
    await openAndClose();
    rmSync(join(dir, name), { force: true });
    mkdirSync(join(dir, name));
    expect((await problem()).problem).toBe("not_a_file");
  });

  test("a file that another program has locked is refused", async () => {
    await openAndClose();
    const other = new DatabaseSync(file);
    other.exec("pragma locking_mode = exclusive; begin exclusive; update chains set runs = 8; commit");
    try {
      const found = await problem();
      expect(found.problem).toBe("locked");
      expect(found.message).toContain(file);
    } finally {
      other.close();
    }
    expect(await (await open()).db.selectFrom("chains").select("runs").execute()).toEqual([{ runs: 8 }]);
  });

  test("a path that is a file, or leads through a file, is refused", async () => {
    const parent = dir;
    writeFileSync(parent, "a file");
    expect((await problem()).problem).toBe("not_a_directory");
    dir = join(parent, "deeper");
    expect((await problem()).problem).toBe("not_a_directory");
    expect(readFileSync(parent, "utf8")).toBe("a file");
  });

  // Skipped on systems without /proc.
  test.skipIf(lacks("Linux", process.platform === "linux"))(
    "FO1: a path at which no folder can be created is refused",
    async () => {
      for (dir of ["/proc/parley", "/proc/parley/deeper"]) {
        const found = await problem();
        expect(found).toMatchObject({ problem: "readonly", place: dir });
        expect(found.message).toContain("no folder can be created there, mkdir '/proc/parley'");
      }
    },
  );
});

test("FO1: two processes that create the same folders at the same time both succeed", async () => {
  const workerData = { dir, gate: new Int32Array(new SharedArrayBuffer(4)) };
  const makers = [1, 2].map(() => new Worker(MAKER, { eval: true, workerData }));
  try {
    const said = await Promise.all(makers.map((maker) => once(maker, "message")));
    expect(said.flat()).toEqual(["made", "made"]);
  } finally {
    await Promise.all(makers.map((maker) => maker.terminate()));
  }
});

describe("other processes", () => {
  function start(command: string, args: string[], ids: object = {}): ChildProcess {
    const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"], ...ids });
    children.push(child);
    return child;
  }

  test("a second gateway on the folder reports which process uses it; a killed process does not block the folder", async () => {
    const child = start(process.execPath, [FIXTURE, dir]);
    expect(await heard(child)).toEqual({ opened: child.pid });
    const found = await problem();
    expect(found.problem).toBe("in_use");
    expect(found.message).toMatch(new RegExp(`${dir}.*process ${child.pid}, since \\d{4}-\\d\\d-\\d\\dT`));
    child.kill("SIGKILL");
    await once(child, "exit");
    const chains = await (await open()).db.selectFrom("chains").select("chain_id").execute();
    expect(chains).toEqual([{ chain_id: `pid-${child.pid}` }]);
  });

  test("a folder can be opened as a store only once, even within one process", async () => {
    await open();
    expect((await problem()).problem).toBe("in_use");
  });

  test("a folder that cannot be written is refused, and so is a file at its path", async () => {
    await openAndClose();
    // Root may write everywhere, so the test process for this case runs as another user.
    const root = process.getuid?.() === 0;
    const ids = root ? { uid: 65_534, gid: 65_534 } : {};
    chmodSync(join(dir, ".."), 0o755);
    if (root)
      for (const path of [dir, ...readdirSync(dir).map((name) => join(dir, name))])
        chownSync(path, 65_534, 65_534);
    const before = readFileSync(file);
    chmodSync(file, 0o400);
    const onFile = await heard(start(process.execPath, [FIXTURE, dir], ids));
    expect(onFile).toMatchObject({ problem: "readonly", place: file });
    chmodSync(file, 0o600);
    chmodSync(dir, 0o500);
    const inDir = await heard(start(process.execPath, [FIXTURE, join(dir, "new")], ids));
    expect(inDir).toMatchObject({ problem: "readonly", place: join(dir, "new") });
    chmodSync(dir, 0o700);
    expect(readFileSync(file).equals(before)).toBe(true);
  });

  const noMounts = lacks("the right to mount", spawnSync("unshare", ["-m", "true"]).status === 0);

  // Skipped if this process cannot mount a small disk, which only root may do. driver.test.ts checks the same
  // with a page limit.
  test.skipIf(noMounts)(
    "a full disk is reported, stored data is kept, and writing works again once there is space",
    () => {
      mkdirSync(dir);
      const ballast = `head -c 1400000 /dev/zero > "$0/ballast"`;
      const script = `mount -t tmpfs -o size=3m tmpfs "$0" && ${ballast} && exec "$1" "$2" "$0" fill`;
      const shell = ["-m", "sh", "-c", script, dir, process.execPath, FIXTURE];
      const { stdout } = spawnSync("unshare", shell, { encoding: "utf8" });
      const [, full, kept, freed, after] = stdout
        .split("\n")
        .map((line) => (line === "" ? {} : JSON.parse(line)));
      expect(full).toMatchObject({ problem: "full", place: file });
      expect(full.written).toBeGreaterThan(5);
      expect(full.refusal).toBe("cannot grow: the disk or the quota is full");
      expect(kept).toEqual({ kept: full.written });
      expect(freed).toEqual({ refusal: "none" });
      expect(after).toEqual({ kept: full.written + 1 });
    },
  );

  // Skipped if this process cannot mount a small disk, which only root may do.
  test.skipIf(noMounts)("a disk that is full at the start is reported", () => {
    mkdirSync(dir);
    const script = `mount -t tmpfs -o size=64k tmpfs "$0" && exec "$1" "$2" "$0"`;
    const shell = ["-m", "sh", "-c", script, dir, process.execPath, FIXTURE];
    const { stdout } = spawnSync("unshare", shell, { encoding: "utf8", input: "" });
    expect(JSON.parse(stdout)).toMatchObject({ problem: "full" });
  });
});
