// The exit code of the test command, tried on a suite that fails.

import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const CONFIG = new URL("./kit/failing-suite.config.ts", import.meta.url);
const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** The environment of this process without what vitest and the caller's database put there. */
function plainEnvironment(): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !/^(VITEST|NODE_ENV|TEST$|PARLEY_TEST_POSTGRES)/.test(name),
  );
  return { ...Object.fromEntries(inherited), NO_COLOR: "1" };
}

/** Runs `npm test` on one suite that starts PostgreSQL. */
async function runSuite(title: string): Promise<{ code: number; stderr: string }> {
  const args = ["test", "--", "--root", ROOT, "--config", fileURLToPath(CONFIG), "--testNamePattern", title];
  return promisify(execFile)("npm", args, { cwd: ROOT, env: plainEnvironment() }).then(
    ({ stderr }) => ({ code: 0, stderr }),
    ({ code, stderr }: { code: number; stderr: string }) => ({ code, stderr }),
  );
}

test("npm test exits with 1 when a test fails after PostgreSQL was started", async () => {
  const { code, stderr } = await runSuite("fails after a query");
  expect(stderr, "the server answered").toMatch(/\+ +"one": 1/);
  expect(code).toBe(1);
}, 120_000);

test("npm test exits with 0, and without a word, when all tests that used PostgreSQL pass", async () => {
  const { code, stderr } = await runSuite("passes after a query");
  expect(stderr).not.toContain("Error");
  expect(code).toBe(0);
}, 120_000);
