// The doctor and the configuration check with a store on PostgreSQL.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { DatabaseReport } from "../../../src/cli/parts.ts";
import { optional } from "../../../src/core/optional.ts";
import { makeHome, run, runJson, startGateway } from "../../cli/kit.ts";
import { freePort } from "../../kit/loopback.ts";
import { homeWith } from "../../kit/process/gateway-process.ts";
import { runSql } from "../../kit/store/postgres.ts";
import { freshUrl, inPostgres, schemaOf } from "../../store/transfer/moves.ts";

const REPORT: DatabaseReport = {
  place: "postgresql://db:5432/parley",
  server: "18.4",
  schema: { name: "parley", version: 4, known: 4 },
  differences: [],
  missingRights: [],
  clockAheadMs: 12,
  connections: { max: 97, others: 5, ofProcess: 17 },
  unsafe: [],
  processes: [],
  version: "0.1.0",
};

const gateway = (host: string, version = "0.1.0", alive = true, configRevision = "0a1b2c") => {
  const now = Date.now();
  return { processId: host, host, version, configRevision, startedAt: now - 65_000, beatAt: now, alive };
};

interface Finding {
  readonly name: string;
  readonly level: string;
  readonly text: string;
  readonly mend?: string;
}

/** Returns the doctor's findings for a database in this state. */
async function findings(report: Partial<DatabaseReport>): Promise<Map<string, Finding>> {
  const store = { postgresUrl: "postgres://u:geheim@db:5432/parley" };
  const home = homeWith({
    store,
    gateway: { port: await freePort(), auth: { token: "a-token-that-is-long-enough" } },
  });
  const { out } = await run(home, ["--json", "doctor"], { database: { ...REPORT, ...report } });
  const found = (JSON.parse(out) as { findings: Finding[] }).findings;
  return new Map(found.map((finding) => [finding.name, finding]));
}

test("all checks of a healthy database succeed", async () => {
  const found = await findings({ processes: [gateway("a"), gateway("b"), gateway("c", "0.0.9", false)] });
  const told = ["store", "schema", "rights", "clock", "connections", "durability", "gateways"];
  expect(told.map((name) => [name, found.get(name)?.level, found.get(name)?.mend])).toEqual(
    told.map((name) => [name, "ok", undefined]),
  );
  expect(found.get("store")?.text).toBe("postgresql://db:5432/parley, PostgreSQL 18.4");
  expect(found.get("gateways")?.text).toBe(
    "2 gateways alive: a (0.1.0, since 1 min), b (0.1.0, since 1 min)",
  );
  expect(found.get("connections")?.text).toContain("97 available: 2 gateways with up to 17 each");
});

interface Case {
  readonly what: string;
  readonly report: Partial<DatabaseReport>;
  readonly name: string;
  readonly level: string;
  readonly text: RegExp;
  readonly mend?: RegExp;
}

const schema = (version?: number) => ({
  schema: { name: "p", known: 4, ...optional({ version }) },
});

const CASES: readonly Case[] = [
  {
    what: "no schema",
    report: schema(),
    ...{ name: "schema", level: "ok", text: /p will be created when a gateway first starts/ },
  },
  {
    what: "an older schema",
    report: schema(3),
    ...{ name: "schema", level: "ok", text: /the next start upgrades it to version 4/ },
  },
  {
    what: "the next version's schema",
    report: schema(5),
    ...{ name: "schema", level: "warning", text: /version 5, from the next/, mend: /Upgrade this gateway/ },
  },
  {
    what: "rights that are missing",
    report: { missingRights: ["grant a to b", "grant c to d"] },
    ...{ name: "rights", level: "problem", text: /lacks rights/, mend: /: grant a to b; grant c to d;$/ },
  },
  {
    what: "a clock that is behind",
    report: { clockAheadMs: -9_700 },
    ...{ name: "clock", level: "warning", text: /10 s behind the database's/, mend: /time servers/ },
  },
  {
    what: "a clock that is ahead",
    report: { clockAheadMs: 3_000 },
    ...{ name: "clock", level: "warning", text: /3 s ahead of the database's/, mend: /time servers/ },
  },
  {
    what: "too few connections for one gateway",
    report: { connections: { max: 20, others: 5, ofProcess: 17 } },
    ...{ name: "connections", level: "warning" },
    text: /the server allows 20, but up to 22 are needed: 1 gateway with up to 17 each, 5 of other programs/,
    mend: /max_connections/,
  },
  {
    what: "too few connections for all gateways",
    report: {
      connections: { max: 40, others: 0, ofProcess: 17 },
      processes: ["a", "b", "c"].map((host) => gateway(host)),
    },
    ...{ name: "connections", level: "warning", text: /allows 40, .*51 are needed/, mend: /fewer gateways/ },
  },
  {
    what: "commits that may be lost",
    report: { unsafe: ["fsync = off", "synchronous_commit = off"] },
    ...{ name: "durability", level: "warning" },
    text: /fsync = off, synchronous_commit = off: accepted messages may be lost/,
    mend: /Set fsync = on, synchronous_commit = on/,
  },
  {
    what: "gateways with different settings",
    report: {
      processes: [gateway("a"), gateway("b", "0.1.0", true, "3d4e5f"), gateway("c", "0.1.0", false)],
    },
    ...{ name: "gateways", level: "warning", text: /different settings: a runs 0a1b2c, b runs 3d4e5f$/ },
    mend: /the same configuration file/,
  },
  {
    what: "gateways of another version",
    report: { processes: [gateway("a", "0.2.0")] },
    ...{ name: "gateways", level: "warning", text: /a \(0\.2\.0, .*this program is 0\.1\.0/ },
    mend: /two successive versions work together/,
  },
];

test.each(CASES)("doctor reports $what", async ({ report, name, level, text, mend }) => {
  const found = (await findings(report)).get(name);
  expect(found?.level).toBe(level);
  expect(found?.text).toMatch(text);
  expect(found?.mend ?? "").toMatch(mend ?? /^$/);
});

test("doctor checks a real database before and during its use by a gateway, and creates no store folder", async () => {
  const url = await freshUrl();
  const { home } = await makeHome({ store: { postgresUrl: url } });
  const before = await run(home, ["doctor"]);
  expect(before.code).toBe(0);
  expect(before.out).toContain(`${schemaOf(url)} will be created when a gateway first starts`);
  expect(before.out).toMatch(/! durability +fsync = off/);
  expect(before.out).toMatch(/✓ rights/);
  expect(before.out).toMatch(/✓ gateways +no gateway uses the store/);
  expect(existsSync(join(home, ".parley", "state"))).toBe(false);
  await startGateway(home);
  const { code, out } = await run(home, ["doctor"]);
  expect(code).toBe(0);
  expect(out).toMatch(/gateways +1 gateway alive: .* \(0\.0\.0, since/);
  expect(out).toMatch(/✓ schema +t_\w+ has version \d+\n/);
  expect(out).not.toContain("ss/word");
});

test("an unreachable database is reported without its password", async () => {
  const port = await freePort();
  const home = homeWith({ store: { postgresUrl: `postgres://u:geheim@127.0.0.1:${port}/d` } });
  const { code, out } = await run(home, ["doctor"]);
  expect(code).toBe(1);
  expect(out).toMatch(/✗ store .*cannot be reached.*Check that the database server runs/);
  expect(out).not.toContain("geheim");
});

test("doctor, config check and the start of a gateway warn about a cluster that has no configured token", async () => {
  const url = await freshUrl();
  const home = homeWith({ store: { postgresUrl: url }, gateway: { port: await freePort() } });
  const warning = "gateway.auth.token is not: each gateway of the cluster would generate a different token";
  expect((await run(home, ["doctor"])).out).toContain(warning);
  const checked = await run(home, ["config", "check"]);
  expect(checked.err).toContain(warning);
  expect(checked.out).toContain(`store    postgres://127.0.0.1:`);
  expect(checked.out + checked.err).not.toContain("word");
  const withToken = homeWith({
    store: { postgresUrl: url },
    gateway: { auth: { token: "a-token-that-is-long-enough" } },
  });
  expect((await runJson(withToken, ["config", "check"])).warnings).toEqual([]);
});

test("the doctor names a trigger and a view that are not part of the store", async () => {
  const url = await freshUrl();
  const home = homeWith({ store: { postgresUrl: url }, gateway: { port: await freePort() } });
  await inPostgres(url, async () => {});
  const schemaFinding = async () => {
    const { out } = await run(home, ["--json", "doctor"]);
    const { findings } = JSON.parse(out) as { findings: Finding[] };
    return findings.find(({ name }) => name === "store schema");
  };
  expect(await schemaFinding()).toBeUndefined();
  await runSql(
    url,
    `set search_path to "${schemaOf(url)}";
    create function approve() returns trigger language plpgsql as 'begin return new; end';
    create trigger approve_all before insert on channel_peers for each row execute function approve();
    create view everything as select * from sessions;`,
  );
  expect(await schemaFinding()).toMatchObject({
    level: "problem",
    text: expect.stringMatching(
      /unknown function "approve", unknown trigger "approve_all", unknown view "everything"/,
    ),
  });
});
