// The exit codes of the test commands if a test fails, and the number of failures that .ci/run prints.

import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { temporaryFolder } from "./kit/engine/engine.ts";
import { plainEnvironment } from "./kit/process/plain-environment.ts";

const CONFIG = new URL("./kit/failing-suite/suite.config.ts", import.meta.url);
const ROOT = fileURLToPath(new URL("..", import.meta.url));

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

function run(program: string, args: readonly string[]): Promise<Ended> {
  return promisify(execFile)(program, args, { cwd: ROOT, env: plainEnvironment() }).then(
    (said) => ({ code: 0, ...said }),
    ({ code, stdout, stderr }: Ended) => ({ code, stdout, stderr }),
  );
}

/** Runs a script of package.json on one test file, which starts PostgreSQL. */
function runSuite(script: string, title: string): Promise<Ended> {
  const config = ["--root", ROOT, "--config", fileURLToPath(CONFIG)];
  return run("npm", ["run", script, "--", ...config, "--testNamePattern", title]);
}

test.each(["test", "test:deep"])(
  "npm run %s exits with 1 when a test fails after PostgreSQL was started",
  async (script) => {
    const { code, stderr } = await runSuite(script, "fails after a query");
    expect(stderr, "the server answered").toMatch(/\+ +"one": 1/);
    expect(code).toBe(1);
  },
  120_000,
);

test("npm test exits with 0 and prints no warning when all tests that used PostgreSQL pass", async () => {
  const { code, stderr } = await runSuite("test", "passes after a query");
  expect(stderr).not.toContain("Error");
  expect(code).toBe(0);
});

describe("the last line of .ci/run adds up the reports of both commands", () => {
  const passed = { numPassedTests: 3, numFailedTests: 0, success: true, testResults: [] };
  const failed = { ...passed, numFailedTests: 2, success: false };
  const unloaded = { ...passed, success: false, testResults: [{ status: "failed", assertionResults: [] }] };
  const broken = { ...passed, success: false };
  // In vitest's report, an error outside tests (an unhandled rejection) has `success: true`.
  test.each([
    ["all pass", [passed, passed], "6 passed, 0 failed", 0],
    ["the first fails", [failed, passed], "6 passed, 2 failed", 1],
    ["the second fails", [passed, failed], "6 passed, 2 failed", 1],
    ["a file does not load", [passed, unloaded], "6 passed, 1 failed", 1],
    ["a report of a failure without a failed test", [passed, broken], "6 passed, 1 failed", 1],
    ["an error outside tests: only the step failed", [passed, passed], "6 passed, 1 failed", 1, "1"],
    ["a report is missing", [passed], "3 passed, 1 failed", 1],
    [
      "nothing ran",
      [
        { ...passed, numPassedTests: 0 },
        { ...passed, numPassedTests: 0 },
      ],
      "0 passed, 0 failed",
      1,
    ],
  ] as const)("%s", async (_, reports, line, code, stepsFailed: string = "0") => {
    const folder = temporaryFolder();
    const files = ["one.json", "two.json"].map((name) => join(folder, name));
    for (const [at, report] of reports.entries()) writeFileSync(files[at] ?? "", JSON.stringify(report));
    const ended = await run(process.execPath, [".ci/count.js", stepsFailed, ...files]);
    expect(ended.stdout.trimEnd().split("\n").at(-1)).toBe(line);
    expect(ended.code).toBe(code);
  });

  test("the slowest files and each test that failed once are listed above it", async () => {
    const tests = [
      { status: "passed", fullName: "a sum adds", failureMessages: [] },
      { status: "passed", fullName: "a page opens", failureMessages: ["Error: Test timed out in 9ms.\n at"] },
      {
        status: "failed",
        fullName: "a sum carries",
        failureMessages: ["Error: expected 12\n    at sum.test.ts:3"],
      },
    ];
    const file = {
      ...{ name: join(ROOT, "tests/sum.test.ts"), startTime: 1_000, endTime: 8_000 },
      ...{ status: "failed", assertionResults: tests },
    };
    const notLoaded = {
      ...file,
      name: join(ROOT, "tests/none.test.ts"),
      ...{ message: "no such file", endTime: 1_000 },
      assertionResults: [],
    };
    const report = join(temporaryFolder(), "one.json");
    writeFileSync(report, JSON.stringify({ ...failed, numFailedTests: 1, testResults: [file, notLoaded] }));
    const ended = await run(process.execPath, [".ci/count.js", "1", report]);
    expect(ended.stdout.split("\n").map((line) => line.trim())).toEqual([
      "7 s  tests/sum.test.ts",
      "0 s  tests/none.test.ts",
      "passed at the second try: tests/sum.test.ts > a page opens: Error: Test timed out in 9ms.",
      "failed: tests/sum.test.ts > a sum carries: Error: expected 12",
      "failed: tests/none.test.ts: no such file",
      "",
      "3 passed, 2 failed",
      "",
    ]);
  });

  test(".ci/run runs both projects, and counts the failures of both", () => {
    const script = readFileSync(join(ROOT, ".ci/run"), "utf8");
    expect(script).toContain("for script in test test:deep; do");
    expect(script).toContain('node .ci/count.js "$failed" "$reports/test.json" "$reports/test:deep.json"');
  });
});

test.each([
  [undefined, "zsh", { code: 0, stdout: "true\n", stderr: "SKIPPED: tests that need zsh\n" }],
  ["true", "zsh", { code: 1, stderr: expect.stringContaining("CI must contain zsh") }],
  ["true", "Linux", { code: 0, stdout: "true\n", stderr: "SKIPPED: tests that need Linux\n" }],
])(
  "with CI=%s, tests that need a missing %s are skipped only if .ci/run does not install it, and say so",
  async (CI, what, ended) => {
    const kit = JSON.stringify(new URL("./kit/process/lacks.ts", import.meta.url));
    const program = `import { lacks } from ${kit}; console.log(lacks(${JSON.stringify(what)}, false));`;
    const { CI: _own, ...env } = plainEnvironment();
    const run = promisify(execFile)(process.execPath, ["--input-type=module", "-e", program], {
      env: CI === undefined ? env : { ...env, CI },
    });
    expect(
      await run.then(
        (said) => ({ code: 0, ...said }),
        (error) => error,
      ),
    ).toMatchObject(ended);
  },
);
