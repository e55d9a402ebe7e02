// The upkeep of an installation with a real process: the doctor, and a backup that the process does not survive.

import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { text } from "node:stream/consumers";
import { expect } from "vitest";
import type { PayloadOf } from "../../src/contract/methods.ts";
import { checkFile } from "../../src/store/sqlite/file.ts";
import { STORE_FILE } from "../../src/store/sqlite/sqlite.ts";
import { test } from "../kit/deep.ts";
import { putEmptyStore } from "../kit/engine/engine.ts";
import { launch } from "../kit/process/fleet.ts";
import { homeWith, startProcess } from "../kit/process/gateway-process.ts";
import { until } from "../kit/until.ts";

type DoctorFinding = PayloadOf<"doctor">["findings"][number];

/** Returns the findings that the command prints for this home folder. */
async function printed(home: string, url: string): Promise<DoctorFinding[]> {
  const child = launch(home, ["--json", "--url", url, "doctor", "--offline"]);
  const [out] = await Promise.all([text(child.stdout ?? process.stdin), once(child, "exit")]);
  return JSON.parse(out).findings;
}

test("the method `doctor` returns what the command prints", async () => {
  const servers = { notes: { command: "no-such-program" } };
  const gateway = await startProcess({ config: { tools: { mcp: { servers } } } });
  const client = await gateway.connect();
  const report = await client.request("doctor", { offline: true });
  const same = ({ name, level, text: words, mend }: DoctorFinding) =>
    // Figures of the moment, such as the free space, change between both runs.
    ({ name, level, text: words.replaceAll(/\d+(\.\d+)?/g, "#"), mend });
  expect(report.findings.map(same)).toEqual((await printed(gateway.home, gateway.url)).map(same));
  expect(report.findings.map(({ name }) => name)).toEqual(
    expect.arrayContaining([
      "node",
      "config",
      "store",
      "token",
      "disk",
      "models",
      "exec",
      "outside",
      "gateway",
    ]),
  );
  const all = await client.request("doctor", {});
  expect(all.ok).toBe(false);
  expect(all.findings.find(({ name }) => name === "mcp")).toMatchObject({ level: "problem" });
});

const ROWS = 2_000;

/** Makes a home folder with a store of 80 MB, so that a backup takes a while. */
async function largeHome(): Promise<{ home: string; folder: string }> {
  const home = homeWith({});
  const dir = join(home, ".parley", "state");
  await putEmptyStore(dir);
  const database = new DatabaseSync(join(dir, STORE_FILE));
  database.exec(`with recursive n(i) as (select 1 union all select i + 1 from n where i < ${ROWS})
    insert into idempotency (key, caller, method, params_hash, answer_json, created_at)
    select 'key-' || i, 'c', 'm', 'h', hex(randomblob(20000)), 4000000000000 from n`);
  database.close();
  return { home, folder: join(dir, "backups") };
}

const namesIn = (folder: string) => (existsSync(folder) ? readdirSync(folder) : []);

test.deep(
  "BK2: a gateway killed during a backup leaves no file that looks like one, and makes the next one whole",
  async () => {
    const { home, folder } = await largeHome();
    const killed = await startProcess({ home });
    await (await killed.connect()).request("store.backup", {});
    await until(() => namesIn(folder).length > 0);
    await killed.end("SIGKILL");
    // The process that made the backup notices this, removes what it wrote, and ends.
    await until(() => namesIn(folder).length === 0);
    const client = await (await startProcess({ home })).connect();
    expect(await client.request("store.backups", {})).toMatchObject({ backups: [], total: 0 });
    const { name } = await client.request("store.backup", {});
    await until(async () => (await client.request("store.backups", {})).total === 1);
    expect(checkFile(join(folder, name), { whole: true }).ok).toBe(true);
    const copy = new DatabaseSync(join(folder, name), { readOnly: true });
    expect(copy.prepare("select count(*) as n from idempotency where caller = 'c'").get()).toEqual({
      n: ROWS,
    });
    copy.close();
  },
);
