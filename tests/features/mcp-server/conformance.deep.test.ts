// The official conformance suite of MCP passes, in all its scenarios for servers and authorization servers of
// two revisions. It comes from npm.

import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { temporaryFolder } from "../../kit/engine/engine.ts";
import { lacks } from "../../kit/process/lacks.ts";

const run = promisify(execFile);
const SCRIPT = join(import.meta.dirname, "../../../bench/conformance-mcp.ts");

// Skipped outside CI, because it fetches 50 MB.
test.skipIf(lacks("the registry", process.env.CI !== undefined))(
  "the scenarios of MCP's suite for servers pass",
  async () => {
    const { stdout } = await run(process.execPath, [SCRIPT, "--part", "server", "--dir", temporaryFolder()]);
    const rows = [...stdout.matchAll(/^\| (.*) \| (\d+) of \d+ \|$/gm)].map(([, part, passed]) => [
      part,
      Number(passed),
    ]);
    expect(Object.fromEntries(rows)).toMatchObject({
      "authorization server | 2026-07-28": 1,
      "server | 2025-11-25": expect.any(Number),
      "server | 2026-07-28": expect.any(Number),
    });
  },
  300_000,
);
