// parley diff: chains of the gateway and records in files, side by side.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readRecord, recordText } from "../../../../src/contract/chain-record.ts";
import type { ChainComparison } from "../../../../src/features/replay/contract.ts";
import { makeHome, run, startGateway } from "../../../cli/kit.ts";

test("diff aligns the steps of two chains, by ids or by files, and says where they differ", async () => {
  const { home } = await makeHome();
  const gateway = await startGateway(home);
  const recorded = async (message: string, file: string): Promise<string> => {
    await run(home, ["send", "--session", "main", "--wait", "30", message]);
    const { err } = await run(home, ["replay", "--save", file]);
    return /Chain (\S+)/.exec(err)?.[1] ?? "";
  };
  const first = await recorded("say marmalade", "first.json");
  const second = await recorded("say porridge", "second.json");
  const found = await run(home, ["diff", first, "second.json"]);
  expect(found).toMatchObject({ code: 0, err: "" });
  expect(found.out).toMatch(/^ +SESSION +STEP +A +B/);
  expect(found.out).toMatch(/\* +agent:main:main +message +say marmalade +say porridge/);
  expect(found.out).toMatch(/\* +agent:main:main +answer /);
  expect(found.out).toMatch(/ {2}agent:main:main +end +\{"state":"ok"\} +=/);
  expect(found.out).toContain("2 differences");
  await gateway.stop();
  const equal = await run(home, ["diff", "first.json", "first.json"]);
  expect(equal.out).toContain("No difference");
  const { code, out } = await run(home, ["--json", "diff", "first.json", "second.json"]);
  const document = JSON.parse(out) as ChainComparison;
  expect({ code, ...document }).toMatchObject({
    ...{ code: 0, differences: 2, a: { chainId: first, runs: 1, steps: 3 }, b: { chainId: second } },
    steps: [
      { step: "message", same: false, a: { text: "say marmalade" }, b: { text: "say porridge" } },
      { step: "answer", same: false },
      { step: "end", same: true },
    ],
  });
  expect(await run(home, ["diff", "first.json", "gone.json"])).toMatchObject({
    ...{ code: 1, err: expect.stringContaining("gone.json could not be read") },
  });
  expect(await run(home, ["diff", "first.json", second])).toMatchObject({ code: 3 });
});

test("diff lists the labels that runs of one chain have only, with their sources", async () => {
  const { home } = await makeHome();
  const gateway = await startGateway(home);
  await run(home, ["send", "--session", "main", "--wait", "30", "say marmalade"]);
  await run(home, ["replay", "--save", "first.json"]);
  await gateway.stop();
  const record = readRecord(readFileSync(join(home, "first.json"), "utf8"));
  if (!record.ok) throw new Error(record.error);
  const labels = { outside: [{ source: "web example.com", since: 5 }] };
  writeFileSync(join(home, "second.json"), recordText({ ...record.value, labels }).text);
  const { out } = await run(home, ["diff", "first.json", "second.json"]);
  expect(out).toMatch(
    /LABEL +SOURCE +SESSIONS +ONLY IN\nprivate +session agent:main:main +agent:main:main +A\n/,
  );
  expect(out).toMatch(/outside +web example\.com +agent:main:main +B\n/);
  const replayed = await run(home, ["replay", "--file", "second.json"]);
  expect(replayed.out).toMatch(/outside +web example\.com +agent:main:main +record\n/);
});
