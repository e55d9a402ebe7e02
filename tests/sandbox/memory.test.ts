// Measures the memory of real processes that share pages and exit meanwhile.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { expect } from "vitest";
import { exactMemory, treeBelow, usesMoreThan } from "../../src/sandbox/process/tree.ts";
import { both, quick, rounds } from "../kit/deep.ts";
import { lacks } from "../kit/process/lacks.ts";

const MEGABYTE = 1024 * 1024;
/** The shared pages and the processes' own, generously. */
const REAL_MAX_BYTES = 256 * MEGABYTE;
const ROUNDS = rounds(1, 5);
const noPython = lacks("python3", existsSync("/usr/bin/python3"));
/** Returns a process and every process below it. */
function family({ pid = 0 }: ChildProcess): readonly (readonly string[])[] {
  return [[`${pid}`], ...treeBelow(pid, 1_000).processes];
}

/** After a line of input, 30 processes that share 100 MB exit one after the other. */
const PROGRAM = `
import mmap, os, sys, time
shared = mmap.mmap(-1, 100 << 20)
def touch(): shared[::4096] = b"1" * (100 << 8)
touch()
ready, ask = os.pipe(), os.pipe()
for number in range(30):
    if os.fork() == 0:
        os.close(ask[1]); touch(); os.write(ready[1], b"."); os.read(ask[0], 1)
        time.sleep(number * 0.003); os._exit(0)
for _ in range(30): os.read(ready[0], 1)
print("ready", flush=True)
sys.stdin.readline()
os.close(ask[1])
for _ in range(30): os.wait()
print("alone", flush=True)
sys.stdin.readline()`;

// Needs Python to share memory, and Linux to measure it.
both.skipIf(noPython)(
  "pages that processes share count once, even if the processes exit during the measure",
  async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const child = spawn("/usr/bin/python3", ["-c", PROGRAM], { stdio: ["pipe", "pipe", "inherit"] });
      const ended = once(child, "close");
      await once(child.stdout, "data");
      const processes = family(child);
      expect((await exactMemory(processes, Infinity)).bytes).toBeLessThan(REAL_MAX_BYTES);
      const alone = once(child.stdout, "data");
      child.stdin.write("\n");
      const measure = await exactMemory(processes, Infinity);
      // A measure that counted pages again says that it is not to be trusted.
      if (measure.bytes > REAL_MAX_BYTES) expect(measure.isSteady).toBe(false);
      expect(await usesMoreThan(processes, REAL_MAX_BYTES)).toBe(false);
      await alone;
      expect(await exactMemory(processes, Infinity)).toMatchObject({ isSteady: true });
      child.stdin.end("\n");
      await ended;
    }
  },
);

// Needs Python and Linux, as above.
quick(both).skipIf(noPython)("a program that uses more is found", async () => {
  const program = "import sys; kept = b'x' * (120 << 20); print('ready', flush=True); sys.stdin.readline()";
  const child = spawn("/usr/bin/python3", ["-c", program], { stdio: ["pipe", "pipe", "inherit"] });
  const ended = once(child, "close");
  await once(child.stdout, "data");
  const processes = family(child);
  expect(await usesMoreThan(processes, 110 * MEGABYTE)).toBe(true);
  expect(await usesMoreThan(processes, REAL_MAX_BYTES)).toBe(false);
  child.stdin.end("\n");
  await ended;
});
