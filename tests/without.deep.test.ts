// The kernel without features: its types are clean, and its engine works.

import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { plainEnvironment } from "./kit/process/plain-environment.ts";

const PROGRAM = fileURLToPath(new URL("without.ts", import.meta.url));

test("without all features the types are clean, and the engine works on its store", async () => {
  const bounds = { env: plainEnvironment(), maxBuffer: 64 * 1024 * 1024 };
  const ended = promisify(execFile)(process.execPath, [PROGRAM, "--quick"], bounds).catch(
    (failure) => failure,
  );
  const { stdout, stderr } = await ended;
  expect(stdout, stderr.slice(-20_000)).toContain("It works without.");
}, 1_800_000);
