// `parley upgrade --check`, and each command on a store of a later release, on both databases.

import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { readToDo, warnOfDefaults } from "../../../src/features/upgrade/command.ts";
import { SCHEMA_VERSION } from "../../../src/store/schema/conversion.ts";
import { lockStore } from "../../../src/store/sqlite/lock.ts";
import { STORE_FILE } from "../../../src/store/sqlite/sqlite.ts";
import { call, configFile, run } from "../../cli/kit.ts";
import { oldFile, oldSchema } from "../../conversion/old-stores.ts";
import { cleanup, temporaryFolder } from "../../kit/engine/engine.ts";
import { homeWith } from "../../kit/process/gateway-process.ts";
import { runSql } from "../../kit/store/postgres.ts";
import { freshUrl, inPostgres, saySomething, schemaOf, smallStore } from "../../store/transfer/moves.ts";

interface Checked {
  readonly ok: boolean;
  readonly store?: object;
  readonly findings: readonly { readonly name: string; readonly level: string; readonly text: string }[];
  readonly toDo: readonly string[];
  readonly steps?: { readonly upgrade: readonly string[]; readonly back: readonly string[] };
}

const NEW = { machine: { version: "0.2.0" } } as const;

async function check(home: string): Promise<{ code: number; report: Checked }> {
  const { code, out } = await run(home, ["--json", "upgrade", "--check"], NEW);
  return { code, report: JSON.parse(out) as Checked };
}

const problemsOf = ({ findings }: Checked): string[] =>
  findings.filter(({ level }) => level === "problem").map(({ name, text }) => `${name}: ${text}`);

/** Identifies the content of the files that hold data. SQLite may add an empty log when it reads a file. */
const contentOf = (dir: string) =>
  readdirSync(dir)
    .filter((name) => !/-(wal|shm)$/.test(name))
    .map(
      (name) =>
        `${name} ${createHash("sha256")
          .update(readFileSync(join(dir, name)))
          .digest("hex")}`,
    );

/** Makes an embedded store of a later release. */
async function laterFile(): Promise<string> {
  const dir = await smallStore();
  const file = new DatabaseSync(join(dir, STORE_FILE));
  file.exec("update schema_release set release = '0.9.0'; pragma user_version = 99");
  file.close();
  return dir;
}

async function laterSchema(): Promise<string> {
  const url = await freshUrl();
  await inPostgres(url, saySomething);
  await runSql(url, `update ${schemaOf(url)}.schema_version set version = 99, release = '0.9.0'`);
  return url;
}

describe("a store of version 0.1", () => {
  const AGENT = { agent: { model: "offline/rehearsal" } };

  test("the check names the conversion, the earlier spellings and the commands, and changes nothing", async () => {
    const dir = oldFile();
    const home = homeWith({ store: { dir }, ...AGENT });
    const before = contentOf(dir);
    const { code, report } = await check(home);
    expect([code, report.ok, problemsOf(report)]).toEqual([0, true, []]);
    expect(report.store).toEqual({
      ...{ kind: "embedded", place: dir, version: 37, known: SCHEMA_VERSION, release: "0.1.0" },
    });
    const said = report.findings.map(({ name, text }) => `${name}: ${text}`).join("\n");
    expect(said).toContain("config: agent.model is an earlier spelling: write agents.defaults.model instead");
    expect(said).toMatch(
      /conversion: .* 37 \(0\.1\.0\) to \d+: 7 sessions and 29 messages: \d+ KB, about 1 second$/m,
    );
    expect(said).toMatch(/^disk: the conversion needs up to \d+ KB; .* are free$/m);
    const file = configFile(home);
    const backup = `${dir}/backups/before-0.2.0.sqlite`;
    expect(report.steps?.upgrade).toEqual([
      `With the version that runs now: in your checkout of 0.1.0, node bin/parley.js store backup ${backup}`,
      `cp -p ${file} ${file}.before-0.2.0`,
      "Stop the gateway.",
      "npm install --global parley-gateway@0.2.0",
      "Start: npx parley-gateway gateway (a service: npx parley-gateway service install)",
      "npx parley-gateway doctor --offline",
    ]);
    const back = report.steps?.back.join("\n");
    expect(back).toContain(`in your checkout of 0.1.0, node bin/parley.js store restore ${backup}`);
    expect(back).not.toMatch(/npm install|npx/);
    expect(contentOf(dir)).toEqual(before);
  });

  test("it is checked while its gateway runs", async () => {
    const dir = oldFile();
    cleanup(lockStore(dir));
    const { code, out } = await run(homeWith({ store: { dir } }), ["upgrade", "--check"], NEW);
    expect(code).toBe(0);
    expect(out).toContain("This is Parley 0.2.0; the store has schema version 37 (0.1.0).");
    expect(out).toContain("belongs to a gateway that is running");
    expect(out).toMatch(/To upgrade:\n1\. .*\n2\. .*\n3\. Stop the gateway\.\n/);
  });

  test("on PostgreSQL, all gateways must stop, and what the conversion drops is no foreign object", async () => {
    const url = await oldSchema();
    const { code, report } = await check(homeWith({ store: { dir: temporaryFolder(), postgresUrl: url } }));
    expect([code, problemsOf(report)]).toEqual([0, []]);
    expect(report.store).toMatchObject({ kind: "postgres", version: 35, release: "0.1.0" });
    expect(report.findings.find(({ name }) => name === "conversion")?.text).toContain("29 messages");
    expect(report.steps?.upgrade).toContain(
      "Stop all gateways: while an older one runs, the start is refused.",
    );
    expect(report.steps?.back[0]).toContain("?schema=name");
    expect(await runSql(url, `select version::int from ${schemaOf(url)}.schema_version`)).toEqual([
      { version: 35 },
    ]);
  });

  test("commands name the configuration file that was given, and are quoted", async () => {
    const home = homeWith({ store: { dir: oldFile() } });
    const file = join(home, "it's mine.json5");
    writeFileSync(file, readFileSync(configFile(home)), { mode: 0o600 });
    const { out } = await run(home, ["--config", file, "upgrade", "--check"], NEW);
    const quoted = `'${home}/it'\\''s mine.json5'`;
    expect(out).toContain(`node bin/parley.js --config ${quoted} store backup `);
    expect(out).toContain(`cp -p ${quoted} '${home}/it'\\''s mine.json5.before-0.2.0'`);
  });
});

test("without a store, or with one of this schema, there is nothing to convert", async () => {
  for (const dir of [join(temporaryFolder(), "none"), await smallStore()]) {
    const { code, out } = await run(homeWith({ store: { dir } }), ["upgrade", "--check"], NEW);
    expect([code, out]).toEqual([
      0,
      expect.stringMatching(/\n\nNo conversion is needed: start this version\.\n$/),
    ]);
  }
  const url = await freshUrl();
  const { code, report } = await check(homeWith({ store: { dir: temporaryFolder(), postgresUrl: url } }));
  expect([code, report.steps]).toEqual([0, undefined]);
  expect(await runSql(url, `select 1 from pg_namespace where nspname = '${schemaOf(url)}'`)).toEqual([]);
});

test("problems of the configuration and of the store are told together, with exit code 1 and without steps", async () => {
  const dir = oldFile();
  const whole = readFileSync(join(dir, STORE_FILE));
  writeFileSync(
    join(dir, STORE_FILE),
    Buffer.concat([whole.subarray(0, 120_000), Buffer.alloc(whole.length - 120_000, 7)]),
  );
  const { code, report } = await check(homeWith({ store: { dir }, nope: 1 }));
  expect([code, report.ok, report.steps]).toEqual([1, false, undefined]);
  const [config, store] = problemsOf(report);
  expect(config).toContain("nope: unknown key");
  expect(store).toMatch(/damaged|malformed/);
});

test("a configuration that cannot be parsed is told, and the usual store is checked", async () => {
  const home = homeWith({});
  writeFileSync(configFile(home), "{ gateway: ");
  const { code, report } = await check(home);
  expect(code).toBe(1);
  expect(problemsOf(report)).toEqual([expect.stringContaining("is not valid JSON5")]);
  expect(report.findings.map(({ name }) => name)).toEqual(["config", "store"]);
});

test("without --check it says that it installs nothing, with exit code 2", async () => {
  const { code, out, err } = await run(homeWith({}), ["upgrade"]);
  expect([code, out]).toEqual([2, ""]);
  expect(err).toContain("upgrade installs nothing and changes nothing");
  expect(err).toContain("npx -y parley-gateway@latest upgrade --check");
});

const LATER = new RegExp(
  [
    "was written by a newer version of this program \\(it has schema version 99 of release 0\\.9\\.0;",
    "this program has version \\d+ of release [\\d.]+\\)\\. Install the newer version, or .*restore a backup",
    "that this version made\\. Nothing was changed\\.",
  ].join(" "),
);

describe("a store of a later release is refused in one sentence that names the release, and is not changed", () => {
  const COMMANDS = (backup: string) => [
    ["gateway", "--port", "0"],
    ["store", "show"],
    ["store", "backup", join(temporaryFolder(), "backup")],
    ["doctor", "--offline"],
    ["upgrade", "--check"],
    ["store", "restore", backup],
  ];

  test("embedded", async () => {
    const dir = await laterFile();
    const home = homeWith({ store: { dir } });
    const before = contentOf(dir);
    const file = join(dir, STORE_FILE);
    for (const argv of [
      ...COMMANDS(file),
      ["store", "recover"],
      ["store", "migrate", "--to", await freshUrl()],
    ]) {
      const { code, out, err } = await run(home, argv, NEW);
      expect([argv, code]).toEqual([argv, 1]);
      expect((out + err).match(new RegExp(LATER, "g"))).toHaveLength(1);
      expect(out + err).not.toMatch(/^\s+at /m);
      expect(contentOf(dir)).toEqual(before);
    }
  });

  test("PostgreSQL", async () => {
    const url = await laterSchema();
    const home = homeWith({ store: { dir: temporaryFolder(), postgresUrl: url } });
    const backup = join(await smallStore(), STORE_FILE);
    const rows = () =>
      runSql(url, `select * from ${schemaOf(url)}.schema_version, ${schemaOf(url)}.messages`);
    const before = await rows();
    for (const argv of COMMANDS(backup)) {
      const { code, out, err } = await run(home, argv, NEW);
      expect([argv, code]).toEqual([argv, 1]);
      expect((out + err).match(new RegExp(LATER, "g"))).toHaveLength(1);
      expect(out + err).not.toMatch(/^\s+at /m);
    }
    expect(await rows()).toEqual(before);
    const { code, err } = await run(homeWith({ store: { dir: await smallStore() } }), [
      "store",
      "migrate",
      "--to",
      url,
    ]);
    expect([code, err]).toEqual([1, expect.stringMatching(LATER)]);
  });

  test("without a valid name of the release, the name is left out", async () => {
    const dir = await laterFile();
    const file = new DatabaseSync(join(dir, STORE_FILE));
    file.exec("update schema_release set release = 'rm -rf ~; '");
    file.close();
    const home = homeWith({ store: { dir } });
    expect((await run(home, ["store"])).err).toContain("(it has schema version 99; this program has");
    const other = new DatabaseSync(join(dir, STORE_FILE));
    other.exec("drop table schema_release");
    other.close();
    expect((await run(home, ["store"])).err).toContain("(it has schema version 99; this program has");
  });
});

const CHANGELOG = `# Changelog

## [Unreleased]

### What to do

- Not yet.

## [0.10.0] - 2027-01-01

### What to do

- Rename a
  to b.
- Restart.

### Fixed

- Nothing to do with it.

## [0.2.0] - 2026-12-01

### Changed

- More.

### What to do

- Convert.

## [0.1.0] - 2026-11-01

### What to do

- Old.
`;

test("the changelog's lines about what to do are told, from the store's release to this version", async () => {
  expect(readToDo(CHANGELOG, "0.1.0", "0.10.0")).toEqual(["Rename a to b.", "Restart.", "Convert."]);
  expect(readToDo(CHANGELOG, "0.1.0", "0.2.1")).toEqual(["Convert."]);
  expect(readToDo(CHANGELOG, "0.2.0", "0.9.0")).toEqual([]);
  const top = temporaryFolder();
  writeFileSync(join(top, "CHANGELOG.md"), CHANGELOG);
  const launcher = { node: process.execPath, script: join(top, "bin", "parley.js") };
  const home = homeWith({ store: { dir: oldFile() } });
  const started = call(home, ["upgrade", "--check"], { machine: { version: "0.2.0", launcher } });
  expect(await started.code).toBe(0);
  expect(started.out()).toContain("\nTo do, says the changelog:\n1. Convert.\n\nTo upgrade:\n");
});

test("the next version has a list of what to do, of numbered items", () => {
  const text = readFileSync(new URL("../../../CHANGELOG.md", import.meta.url), "utf8");
  const released = text.replace("## [Unreleased]\n", "## [Unreleased]\n\n## [0.2.0] - 2026-12-01\n");
  const toDo = readToDo(released, "0.1.0", "0.2.0");
  expect(toDo.length).toBeGreaterThan(2);
  expect(toDo[0]).toMatch(/^`npx -y parley-gateway@latest upgrade --check` says/);
});

test("a changed default is told if the file does not set it, and a removed setting is, too", () => {
  const changed = [
    { since: "0.3.0", path: ["session", "queueMax"], before: 20, now: 10 },
    { since: "0.3.0", path: ["session", "gone"], before: true },
    { since: "0.2.0", path: ["gateway", "port"], before: 1, now: 2 },
  ];
  const texts = (tree: Record<string, unknown>, since: string) =>
    warnOfDefaults(tree, since, changed).map(({ text, mend }) => `${text} ${mend}`);
  expect(texts({}, "0.2.0")).toEqual([
    "session.queueMax is 10 instead of 20 To keep it, set session.queueMax to 20.",
    "session.gone was removed; it was true CHANGELOG.md says what replaces it.",
  ]);
  expect(texts({ session: { queueMax: 5 } }, "0.2.0")).toHaveLength(1);
  expect(texts({}, "0.1.0")).toHaveLength(3);
  expect(texts({}, "0.3.0")).toEqual([]);
});

test("the defaults that the changelog names are told, those of providers for each one in the file", () => {
  const providers = { local: { maxRetries: 1 }, other: {} };
  const told = (tree: Record<string, unknown>) => warnOfDefaults(tree, "0.1.0").map(({ text }) => text);
  expect(told({ models: { providers } })).toEqual([
    "agents.defaults.maxModelCalls is 400 instead of 100",
    "models.providers.local.idleTimeoutSeconds is 90 instead of 600",
    "models.providers.other.idleTimeoutSeconds is 90 instead of 600",
    "models.providers.other.maxRetries is 3 instead of 4",
    'tools.exec.approval is "risky" instead of "never"',
    "store.retention is 90 instead of null",
  ]);
  expect(told({ tools: { exec: { approval: "always" } }, store: { retention: null } })).toEqual([
    "agents.defaults.maxModelCalls is 400 instead of 100",
  ]);
  expect(warnOfDefaults({}, "0.2.0")).toEqual([]);
});
