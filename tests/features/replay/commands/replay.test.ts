// parley replay: a chain of the gateway, and its record in a file.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { call, makeHome, run, startGateway } from "../../../cli/kit.ts";
import { cleanup } from "../../../kit/engine/engine.ts";
import { startModelServer } from "../../../kit/model-server/server.ts";
import { pause, text } from "../../../kit/model-server/steps.ts";
import { until } from "../../../kit/until.ts";

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
    ...{ ok: true, chainId, runs: 1, entries: 2, labels: [] },
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

test("the replay of a run that reached its time limit has no difference", async () => {
  const { home } = await makeHome();
  await startGateway(home);
  for (const [question, entries] of [
    ["wait 60 seconds, then say late", "1 entry"],
    ["ask research: wait 3 seconds, then say late", "entries"],
  ] as const) {
    expect(await run(home, ["run", question, "--timeout", "1"])).toMatchObject({ code: 5 });
    expect(await run(home, ["replay"])).toMatchObject({ out: expect.stringMatching("^No difference: ") });
    expect((await run(home, ["replay"])).out).toContain(entries);
  }
});

test("replay waits for the end of a chain that still runs", async () => {
  const model = await startModelServer(() => [pause(released.promise), text("marmalade")]);
  const released = Promise.withResolvers<void>();
  cleanup(async () => {
    released.resolve();
    await model.close();
  });
  const { api, baseUrl, apiKey } = model.provider("openai-completions");
  const providers = { slow: { api, baseUrl, apiKey, models: [{ id: "one" }] } };
  const { home } = await makeHome({
    models: { providers },
    agents: { defaults: { model: "slow/one" }, list: [{ id: "main" }] },
  });
  await startGateway(home);
  await run(home, ["send", "--session", "main", "--wait", "0", "say marmalade"]);
  const replay = call(home, ["replay"]);
  await until(() => replay.err().includes("Waiting for the end of the chain."));
  released.resolve();
  expect(await replay.code).toBe(0);
  expect(replay.out()).toBe("No difference: 1 run, 2 entries\n");
});

test("a replay with changes calls models, writes its record for a comparison, and names wrong options", async () => {
  const { home } = await makeHome();
  const gateway = await startGateway(home);
  await run(home, ["send", "--session", "main", "--wait", "30", "say marmalade"]);
  await run(home, ["replay", "--save", "record.json"]);
  await gateway.stop();
  const replay = (...more: string[]) => run(home, ["replay", "--file", "record.json", ...more]);
  writeFileSync(join(home, "words.md"), "Be brief.");
  writeFileSync(
    join(home, "change.json"),
    '{"message": "say porridge", "instructions": {"main": "@words.md"}}',
  );
  const changed = await replay("--change", "change.json", "--out", "new.json", "--repeat", "2");
  expect(changed).toMatchObject({
    code: 0,
    err: expect.stringContaining("Wrote the record of the replay to new-2.json."),
  });
  expect(changed.out).toContain("Answers of models: 1");
  expect(changed.out).toContain("2 differences");
  expect((await run(home, ["diff", "record.json", "new-1.json"])).out).toContain("say porridge");
  const { code, out } = await run(home, ["--json", "replay", "--file", "record.json", "--from", "2"]);
  expect({ code, ...(JSON.parse(out) as object) }).toMatchObject({
    code: 0,
    ok: true,
    replays: [{ answers: 1 }],
  });
  writeFileSync(join(home, "wrong.json"), '{"prompt": "x"}');
  writeFileSync(join(home, "texts.json"), '{"instructions": "x"}');
  const wrong: [string[], string][] = [
    [["--change", "gone.json"], "gone.json could not be read"],
    [["--change", "wrong.json"], 'wrong.json is not a change: "prompt" is unknown'],
    [["--change", "texts.json"], '"instructions" must have a text for each agent'],
    [["--agent", "main"], "--agent must be like main.model=provider/model"],
  ];
  for (const [options, why] of wrong)
    expect(await replay(...options)).toMatchObject({ code: 2, err: expect.stringContaining(why) });
  expect(await replay("--model", "none/none")).toMatchObject({
    code: 1,
    err: expect.stringContaining("unknown model"),
  });
});
