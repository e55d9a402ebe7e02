// parley replay: a chain of the gateway, and its record in a file.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { makeHome, run, startGateway } from "../kit.ts";

test("replay repeats the newest or a named chain, saves its record, and replays the file without a gateway", async () => {
  const { home } = await makeHome();
  const gateway = await startGateway(home);
  expect(await run(home, ["replay"])).toMatchObject({
    code: 1,
    err: expect.stringContaining("No chain has run"),
  });
  await run(home, ["send", "--session", "main", "--wait", "30", "say marmalade"]);
  const newest = await run(home, ["replay", "--save", "record.json"]);
  expect(newest).toMatchObject({
    ...{ code: 0, out: "No difference: 1 run, 2 entries\n" },
    err: expect.stringContaining("Wrote the record to record.json."),
  });
  const chainId = /Chain (\S+)/.exec(newest.err)?.[1] ?? "";
  expect(JSON.parse((await run(home, ["--json", "replay", chainId])).out)).toEqual({
    ...{ ok: true, chainId, runs: 1, entries: 2 },
  });
  expect(await run(home, ["replay", "nowhere"])).toMatchObject({
    ...{ code: 1, err: expect.stringContaining("there is no chain") },
  });
  expect(await run(home, ["replay", "--save", "record.json"])).toMatchObject({
    ...{ code: 1, err: expect.stringContaining("record.json exists already. Name a new file") },
  });
  await gateway.stop();
  expect(await run(home, ["replay", "--file", "record.json"])).toMatchObject({
    ...{ code: 0, out: "No difference: 1 run, 2 entries\n" },
  });
  const text = readFileSync(join(home, "record.json"), "utf8");
  writeFileSync(join(home, "edited.json"), text.replace("marmalade", "porridge"));
  expect(await run(home, ["replay", "--file", "edited.json"])).toMatchObject({
    ...{ code: 1, err: expect.stringContaining("it was edited or damaged") },
  });
  expect(await run(home, ["replay", chainId, "--file", "record.json"])).toMatchObject({ code: 2 });
  expect(await run(home, ["replay", "--file", "gone.json"])).toMatchObject({
    ...{ code: 1, err: expect.stringContaining("gone.json could not be read") },
  });
});
