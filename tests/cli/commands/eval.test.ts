// parley eval: cases from recorded chains, variants, expectations, reports, and a run that continues.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { cleanup } from "../../kit/engine/engine.ts";
import { startModelServer } from "../../kit/model-server/server.ts";
import { call as toolCall } from "../../kit/model-server/steps.ts";
import { LAUNCHER } from "../../kit/process/fleet.ts";
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
  expect(found.out).toMatch(/say marmalade +passed +FAILED, worse/);
  expect(found.out).toMatch(/say porridge +passed +passed \(\d differences\)/);
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

test("a case can be a first message, which agents of the configuration answer in an empty world", async () => {
  const server = await startModelServer(({ system, messages }) => {
    const last = JSON.stringify(messages.at(-1));
    if (last.includes("ask research"))
      return [toolCall("sessions_send", { sessionKey: "agent:research:main", message: "what is new?" })];
    return system.includes("Be brief.") ? "jam" : "a long text about jam";
  });
  cleanup(() => server.close());
  const { api, baseUrl, apiKey, models } = server.provider("openai-completions");
  const provider = { api, baseUrl, apiKey, models };
  const list = [
    { id: "main", default: true, model: "openai/test-model" },
    { id: "research", model: "openai/test-model" },
  ];
  const { home } = await makeHome({ models: { providers: { openai: provider } }, agents: { list } });
  const expected = [{ toolCalled: "sessions_send" }, { contains: "jam" }, { ends: "ok" }];
  const brief = { name: "brief", instructions: { research: "Be brief.", main: "Be brief." } };
  const file = {
    variants: [{ name: "now" }, brief],
    cases: [
      { name: "asks", message: "ask research", expect: expected },
      { name: "says", message: "say jam", agent: "research", expect: [{ contains: "long text" }] },
    ],
  };
  writeFileSync(join(home, "eval.json"), JSON.stringify(file));
  const { code, out } = await run(home, ["eval", "eval.json"]);
  expect(out).toMatch(/asks +passed +passed/);
  expect(out).toMatch(/says +passed +FAILED, worse/);
  expect(code).toBe(1);
  expect(existsSync(join(home, ".parley", "state"))).toBe(false);
  const unknown = { cases: [{ message: "hello", agent: "nobody" }] };
  writeFileSync(join(home, "eval.json"), JSON.stringify(unknown));
  expect(await run(home, ["eval", "eval.json"])).toMatchObject({
    ...{ code: 2, err: expect.stringContaining('there is no agent "nobody"; there is: main, research') },
  });
});

test("a killed evaluation continues after its finished replays, and draws its progress on a terminal", async () => {
  const asked = Promise.withResolvers<void>();
  let calls = 0;
  const server = await startModelServer(async () => {
    calls += 1;
    if (calls !== 2) return "a new answer";
    asked.resolve();
    return new Promise(() => {});
  });
  cleanup(() => server.close());
  const { api, baseUrl, apiKey, models } = server.provider("openai-completions");
  const { home } = await makeHome({ models: { providers: { openai: { api, baseUrl, apiKey, models } } } });
  const cases = ["one", "two", "three"].map((name) => ({
    name,
    message: name,
    expect: [{ contains: "new" }],
  }));
  const variants = [{ name: "new", models: { "*": "openai/test-model" } }];
  writeFileSync(join(home, "eval.json"), JSON.stringify({ cases, variants, parallel: 1 }));
  const killed = spawn(process.execPath, [LAUNCHER, "eval", "eval.json"], {
    cwd: home,
    env: { ...process.env, HOME: home },
    stdio: "ignore",
  });
  await asked.promise;
  killed.kill("SIGKILL");
  await once(killed, "exit");
  const { code, err, out } = await run(home, ["eval", "eval.json"], { isTTY: true });
  expect(err).toContain("Continues after 1 finished replay.");
  expect(err).toContain("\r\u001b[K[#############       ] 2 of 3  two, new");
  expect(out).toContain("3 of 3 passed");
  expect([code, calls]).toEqual([0, 4]);
});

test("`eval add` refuses what it cannot add, and changes no file then", async () => {
  const { home } = await makeHome();
  await recorded(home, "say marmalade");
  await startGateway(home);
  const { err } = await run(home, ["replay"]);
  const chain = /Chain (\S+)/.exec(err)?.[1] ?? "";
  const before = readFileSync(join(home, "eval.json"), "utf8");
  const again = await run(home, ["eval", "add", chain]);
  expect(again).toMatchObject({ code: 1, err: expect.stringContaining(`${chain}.json exists already`) });
  const nobody = await run(home, ["eval", "add", "no-such-chain"]);
  expect(nobody).toMatchObject({ code: 1, err: expect.stringContaining("no-such-chain") });
  expect(readFileSync(join(home, "eval.json"), "utf8")).toBe(before);
  writeFileSync(join(home, "list.json"), "[]");
  const list = await run(home, ["eval", "add", chain, "--to", "list.json"]);
  expect(list).toMatchObject({ code: 1, err: expect.stringContaining('it has no list "cases"') });
  expect(readFileSync(join(home, "list.json"), "utf8")).toBe("[]");
});

test("wrong evaluations get one clear error", async () => {
  const { home } = await makeHome();
  const cases: [unknown, string][] = [
    ["", "the file has no JSON object"],
    [{}, '"cases" must be a list'],
    [{ cases: [], more: 1 }, '"more" is unknown'],
    [{ cases: [{}] }, 'case 1 has neither "record" nor "message"'],
    [{ cases: [{ record: "x.json", message: "hello" }] }, 'case 1 has both "record" and "message"'],
    [{ cases: [{ record: "x.json", agent: "main" }] }, 'case 1 has "agent" without "message"'],
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
