// `parley store`: location, backup, restore, and migration to PostgreSQL.

import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { temporaryFolder } from "../../kit/engine/engine.ts";
import { freePort } from "../../kit/loopback.ts";
import { homeWith } from "../../kit/process/gateway-process.ts";
import { gateIn } from "../../kit/store/gate.ts";
import { freshUrl, inEmbedded, schemaOf } from "../../store/transfer/moves.ts";
import { call, type Finished, makeHome, run, runJson, startGateway } from "../kit.ts";

/** The password, which no output of the commands in this file may contain. */
const SECRET = "ss/word";

async function store(home: string, ...argv: string[]): Promise<Finished> {
  const finished = await run(home, ["store", ...argv]);
  for (const said of [finished.out, finished.err]) {
    expect(said).not.toContain(SECRET);
    expect(said).not.toContain(encodeURIComponent(SECRET));
  }
  return finished;
}

/** Makes a home whose gateway has processed a message and has stopped. */
async function usedHome(): Promise<string> {
  const { home } = await makeHome();
  const gateway = await startGateway(home);
  await run(home, ["send", "--session", "main", "--wait", "20", "say a first word"]);
  await gateway.stop();
  return home;
}

/** Makes a home whose configuration keeps the store in a database. */
async function homeOn(url: string): Promise<string> {
  return (await makeHome({ store: { postgresUrl: url } })).home;
}

const heard = async (home: string): Promise<string> => (await run(home, ["sessions", "history", "main"])).out;

test("parley store shows the location of the store, its contents and the gateway that uses it", async () => {
  const { home } = await makeHome();
  const dir = join(home, ".parley", "state");
  const none = await store(home);
  expect(none).toMatchObject({ code: 0, err: "" });
  expect(none.out).toContain(`Embedded store in ${dir}`);
  expect(none.out).toContain("the store does not exist yet");
  expect(existsSync(dir)).toBe(false);

  const gateway = await startGateway(home);
  await run(home, ["send", "--session", "main", "--wait", "20", "say one"]);
  const running = await store(home, "show");
  expect(running.out).toMatch(/holds +3 sessions, 2 messages, 1 run\n/);
  expect(running.out).toMatch(/schema +version \d+\n/);
  expect(running.out).toMatch(/use .*belongs to a gateway that is running/);
  const facts = { kind: "embedded", place: dir, sessions: 3, messages: 2, runs: 1, unfinishedRuns: 0 };
  expect(await runJson(home, ["store"])).toMatchObject({ ok: true, ...facts, bytes: expect.any(Number) });
  await gateway.stop();
  expect((await store(home)).out).toContain("no gateway uses it");
});

test("a store can be migrated, backed up and restored, and keeps its messages each time", async () => {
  const url = await freshUrl();
  const home = await usedHome();
  const state = join(home, ".parley", "state", "parley.sqlite");
  const before = readFileSync(state);
  const moved = await store(home, "migrate", "--to", url);
  expect(moved).toMatchObject({ code: 0, err: "" });
  expect(moved.out).toContain("Copied 3 sessions, 2 messages, 1 run from");
  expect(moved.out).toContain("The embedded store is unchanged.");
  expect(moved.out).toContain("Next: set store.postgresUrl (or PARLEY_DATABASE_URL)");
  expect(readFileSync(state).equals(before)).toBe(true);

  const cluster = await homeOn(url);
  expect((await store(cluster)).out).toContain("No gateway uses this store.");
  const gateway = await startGateway(cluster);
  expect(await heard(cluster)).toContain("a first word");
  await run(cluster, ["send", "--session", "main", "--wait", "20", "say a second word"]);
  const shown = await store(cluster);
  expect(shown.out).toContain(`?schema=${schemaOf(url)}`);
  expect(shown.out).toMatch(/0\.0\.0 +[0-9a-f]{12} +\d+ s ago +alive/);
  const file = join(temporaryFolder(), "backup.sqlite");
  const backup = await store(cluster, "backup", file);
  expect(backup).toMatchObject({ code: 0, err: "" });
  expect(backup.out).toContain(`Wrote 3 sessions, 4 messages, 2 runs from postgresql://127.0.0.1:`);
  expect(backup.out).toContain(`npx parley-gateway store restore ${file}`);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect((await store(cluster, "restore", file)).err).toContain("in use by a running gateway");
  await gateway.stop();
  expect((await store(cluster, "restore", file)).err).toContain("is not empty");

  const { home: back } = await makeHome();
  const restored = await store(back, "restore", file);
  expect(restored).toMatchObject({ code: 0, err: "" });
  expect(restored.out).toContain("Next: npx parley-gateway gateway");
  await startGateway(back);
  expect(await heard(back)).toContain("a second word");
});

test("a restore leaves out what gives rights, prints it and the command for it, and restores accepted kinds", async () => {
  const home = await usedHome();
  const file = join(temporaryFolder(), "backup.sqlite");
  await store(home, "backup", file);
  const database = new DatabaseSync(file);
  database.exec(`insert into permission_rules
      (id, agent_id, session_key, scope, digest, command, folder, created_at, created_by)
    values ('r1', 'main', 'agent:main:main', 'always', 'of-another-command', 'ls', '/srv/app', 1, 'owner')`);
  database.close();
  const { home: careful } = await makeHome();
  const { code, out } = await store(careful, "restore", file);
  expect(code).toBe(0);
  expect(out).toContain("rules: commands that run without a question (1)");
  expect(out).toContain("main may run in /srv/app: ls");
  expect(out).toContain(`npx parley-gateway store restore ${file} --accept rules`);
  const { home: trusting } = await makeHome();
  const accepted = await store(trusting, "restore", file, "--accept", "rules,jobs");
  expect(accepted.code).toBe(0);
  expect(accepted.out).not.toContain("Left out");
  const { home: third } = await makeHome();
  const wrong = await store(third, "restore", file, "--accept", "rule");
  expect(wrong).toMatchObject({ code: 2, err: expect.stringContaining("Valid kinds: all, rules, people") });
});

test("with --json a migration prints one document, also if it fails", async () => {
  const home = await usedHome();
  const file = join(temporaryFolder(), "backup.sqlite");
  const tally = { sessions: 3, messages: 2, runs: 1, unfinishedRuns: 0, pendingDeliveries: 0 };
  expect(await runJson(home, ["store", "backup", file])).toEqual({
    ...{ ok: true, from: join(home, ".parley", "state"), to: file, bytes: statSync(file).size },
    ...tally,
  });
  expect(await runJson(home, ["store", "backup", file])).toMatchObject({
    ok: false,
    error: { code: "store_unavailable", message: expect.stringContaining("already exists") },
  });
  const url = await freshUrl();
  const to = expect.stringMatching(/^postgresql:\/\/127\.0\.0\.1:\d+\/postgres\?schema=t_/);
  expect(await runJson(home, ["store", "migrate", "--to", url])).toMatchObject({ ok: true, to, ...tally });
  expect(await runJson(await homeOn(url), ["store"])).toMatchObject({
    ...{ ok: true, kind: "postgres", place: to, processes: [] },
    ...tally,
  });
});

test("an embedded store can be backed up while a gateway uses it, but not migrated or replaced", async () => {
  const { home } = await makeHome();
  await startGateway(home);
  const file = join(temporaryFolder(), "backup.sqlite");
  expect((await store(home, "backup", file)).code).toBe(0);
  for (const argv of [
    ["migrate", "--to", await freshUrl()],
    ["restore", file],
  ]) {
    const refused = await store(home, ...argv);
    expect(refused).toMatchObject({ code: 1, out: "" });
    expect(refused.err).toContain("Stop that gateway");
  }
});

test.each([
  [["migrate"], "--to <url>"],
  [["migrate", "--to", "mysql://u:ss/word@h/d"], "--to"],
  [["migrate", "postgres://u:ss%2Fword@h/d"], "--to"],
  [["migrate", "--to", "postgres://h/d", "postgres://u:ss%2Fword@h/d"], "too many arguments"],
  [["postgres://u:ss%2Fword@h/d"], ""],
  [["backup"], "file"],
  [["restore"], "file"],
  [["restore", "a", "b"], "too many arguments"],
])("a usage error has exit code 2 and prints no password: %j", async (argv, said) => {
  const home = await usedHome();
  const { code, err } = await store(home, ...argv);
  expect(code).toBe(2);
  expect(err).toContain(said);
});

test("an address given in place of a subcommand is printed without its password", async () => {
  const { home } = await makeHome();
  const { code, err } = await run(home, ["postgres://user:ss-word@h:5432/d"]);
  expect(code).toBe(2);
  expect(err).not.toContain("ss-word");
});

test("an unreachable database and a refused login have exit code 1", async () => {
  const home = await usedHome();
  const port = await freePort();
  const nowhere = `postgresql://u:ss%2Fword@127.0.0.1:${port}/d`;
  expect(await store(home, "migrate", "--to", nowhere)).toMatchObject({ code: 1, out: "" });
  const on = homeWith({ store: { postgresUrl: nowhere } });
  for (const argv of [[], ["backup", join(home, "b")], ["restore", join(home, "b")]]) {
    expect(await store(on, ...argv)).toMatchObject({ code: 1, out: "" });
  }
  expect((await store(on)).err).toContain("cannot be reached");
});

test("Ctrl-C cancels a migration and undoes its changes; a second Ctrl-C exits at once", async () => {
  const url = await freshUrl();
  const gate = await gateIn(url);
  const home = await usedHome();
  const moving = call(home, ["store", "migrate", "--to", url]);
  await gate.reached();
  moving.interrupt();
  moving.interrupt();
  expect(moving.exits).toEqual([130]);
  await gate.open();
  expect(await moving.code).toBe(1);
  expect(moving.err()).toContain("undoing all changes");
  expect(moving.err()).toContain("stopped; nothing was written");
  expect(await runJson(await homeOn(url), ["store"])).toMatchObject({ sessions: 0, runs: 0 });
});

test("a long migration reports its progress only on a terminal", async () => {
  const dir = temporaryFolder();
  await inEmbedded(dir, (store) =>
    store.transaction(async (tx) => {
      await sql`insert into chains (chain_id, runs)
        with recursive number (n) as (select 1 union all select n + 1 from number where n < 12000)
        select 'c' || n, n from number`.execute(tx);
    }),
  );
  const home = homeWith({ store: { dir } });
  const watched = await run(home, ["store", "migrate", "--to", await freshUrl()], { isTTY: true });
  expect(watched).toMatchObject({ code: 0, err: expect.stringMatching(/^1\d{4} rows so far\n$/) });
  expect((await store(home, "migrate", "--to", await freshUrl())).err).toBe("");
});
