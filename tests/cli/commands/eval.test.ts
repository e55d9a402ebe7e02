// parley eval: cases from recorded chains, variants, expectations, reports, and a run that continues.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { junitOf } from "../../../src/cli/eval/report.ts";
import { cleanup } from "../../kit/engine/engine.ts";
import { startModelServer } from "../../kit/model-server/server.ts";
import { makeHome, run, startGateway } from "../kit.ts";

/** Records chains of the main session as cases in `eval.json`. */
async function recorded(home: string, ...messages: string[]): Promise<void> {
  const gateway = await startGateway(home);
  for (const message of messages) {
    await run(home, ["send", "--session", "main", "--wait", "30", message]);
    const { err } = await run(home, ["replay"]);
    const added = await run(home, ["eval", "add", /Chain (\S+)/.exec(err)?.[1] ?? ""]);
    expect(added).toMatchObject({ code: 0, out: expect.stringContaining(`Added "${message}" to eval.json`) });
  }
  await gateway.stop();
}

interface File {
  cases: { name: string; expect: object[] }[];
  [name: string]: unknown;
}

function edit(home: string, change: (file: File) => void): void {
  const path = join(home, "eval.json");
  const file = JSON.parse(readFileSync(path, "utf8")) as File;
  change(file);
  writeFileSync(path, JSON.stringify(file));
}

test("eval compares variants, says which cases got worse, and writes its reports", async () => {
  const { home } = await makeHome();
  await recorded(home, "say marmalade", "say porridge");
  expect(await run(home, ["eval", "eval.json"])).toMatchObject({
    ...{ code: 0, out: expect.stringContaining("2 of 2 passed") },
  });
  edit(home, (file) => {
    file.cases[0]?.expect.push({ contains: "marmalade" }, { notCalled: "exec" }, { costBelow: 1 });
    file.variants = [{ name: "recorded" }, { name: "other", message: "say <jam>" }];
  });
  const reports = ["--junit", "junit.xml", "--html", "report.html"];
  const found = await run(home, ["eval", "eval.json", ...reports]);
  expect(found.code).toBe(1);
  expect(found.out).toMatch(/^CASE +RECORDED +OTHER\n/);
  expect(found.out).toMatch(/say marmalade +passed \(0 differences\) +FAILED, worse/);
  expect(found.out).toMatch(/say porridge +passed \(0 differences\) +passed \(\d differences\)/);
  expect(found.out).toContain('contains "marmalade": ');
  expect(found.out).toContain("3 of 4 passed");
  const xml = readFileSync(join(home, "junit.xml"), "utf8");
  expect(xml).toContain('<testsuite name="other" tests="2" failures="1">');
  expect(xml).toContain('<testcase classname="recorded" name="say marmalade"></testcase>');
  expect(xml).not.toContain("<jam>");
  expect(readFileSync(join(home, "report.html"), "utf8")).toContain('<tr class="failed">');
  const json = await run(home, ["--json", "eval", "eval.json"]);
  expect(JSON.parse(json.out)).toMatchObject({
    ok: false,
    outcomes: [{ passed: true }, { passed: false }, {}, {}],
  });
});

test("a judge gives its reasons, and an evaluation that stopped continues with what is missing", async () => {
  let judged = 0;
  const server = await startModelServer(({ system }) => {
    if (!system.includes("You judge")) return "a new answer";
    judged += 1;
    return judged === 1 ? "PASS: it is polite." : "FAIL: it is rude.";
  });
  cleanup(() => server.close());
  const { api, baseUrl, apiKey, models } = server.provider("openai-completions");
  const [{ id, contextWindow, cost } = { id: "" }] = models;
  const provider = { api, baseUrl, apiKey, models: [{ id, contextWindow, cost }] };
  const { home } = await makeHome({ models: { providers: { openai: provider } } });
  await recorded(home, "say marmalade", "say porridge");
  edit(home, (file) => {
    for (const one of file.cases) one.expect = [{ judge: "The answer is polite." }];
    const variants = [{ name: "new", models: { main: "openai/test-model" }, message: "say jam" }];
    Object.assign(file, { judge: "openai/test-model", parallel: 1, budget: 0, variants });
  });
  const evaluate = async () => JSON.parse((await run(home, ["--json", "eval", "eval.json"])).out) as object;
  const polite = { passed: true, checks: [{ passed: true, why: "PASS: it is polite." }] };
  const late = { passed: false, error: "not run: the budget of 0 USD is used up" };
  expect(await evaluate()).toMatchObject({ ok: false, outcomes: [polite, late] });
  const before = server.requests.length;
  edit(home, (file) => void Object.assign(file, { budget: 10 }));
  const rude = { passed: false, checks: [{ passed: false, why: "FAIL: it is rude." }] };
  expect(await evaluate()).toMatchObject({ ok: false, outcomes: [polite, rude] });
  expect(server.requests.length - before).toBe(2);
  expect(existsSync(join(home, "eval.json.progress"))).toBe(false);
  edit(home, (file) => void Object.assign(file, { judge: undefined }));
  expect(await run(home, ["eval", "eval.json"])).toMatchObject({
    ...{ code: 2, err: expect.stringContaining("the file names no model for it") },
  });
});

test("wrong evaluations get one clear error", async () => {
  const { home } = await makeHome();
  const cases: [unknown, string][] = [
    ["", "the file has no JSON object"],
    [{}, '"cases" must be a list'],
    [{ cases: [], more: 1 }, '"more" is unknown'],
    [{ cases: [{}] }, 'case 1 names no "record"'],
    [{ cases: [{ record: "x.json", why: 1 }] }, 'case 1 has "why"'],
    [{ cases: [{ record: "x.json" }] }, "x.json could not be read"],
  ];
  for (const [file, why] of cases) {
    writeFileSync(join(home, "eval.json"), JSON.stringify(file));
    expect(await run(home, ["eval", "eval.json"])).toMatchObject({
      code: 2,
      err: expect.stringContaining(why),
    });
  }
  expect(await run(home, ["eval", "none.json"])).toMatchObject({
    ...{ code: 2, err: expect.stringContaining("none.json could not be read") },
  });
});

test("reports have no characters that XML forbids", () => {
  const expectation = { kind: "contains" as const, value: "<&\u0001" };
  const checks = [{ expectation, passed: false, why: "\u0000'\"]]>" }];
  const outcome = { name: "a<b", variant: 'v"', passed: false, checks, cost: 0, steps: 0, differences: 0 };
  const xml = junitOf([outcome]);
  expect(xml).toContain('name="a&#60;b"');
  for (const text of ["\u0000", "\u0001", "]]>", "'"]) expect(xml).not.toContain(text);
});
