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

test("npm test exits with 1 when a test fails after PostgreSQL was started", async () => {
  const args = ["test", "--", "--root", ROOT, "--config", fileURLToPath(CONFIG)];
  const ended = promisify(execFile)("npm", args, { cwd: ROOT, env: plainEnvironment() }).then(
    ({ stderr }) => ({ code: 0, stderr }),
    ({ code, stderr }: { code: number; stderr: string }) => ({ code, stderr }),
  );
  const { code, stderr } = await ended;
  expect(stderr, "the server answered").toMatch(/\+ +"one": 1/);
  expect(code).toBe(1);
}, 120_000);
