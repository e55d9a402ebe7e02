import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { type Machine, releaseIdleMemory, thisMachine } from "../../src/world/idle-memory.ts";
import { temporaryFolder } from "../kit/engine/engine.ts";
import { fakeWorld } from "../kit/world.ts";

const MB = 1024 * 1024;

function open() {
  const world = fakeWorld();
  const state = { cpuMs: 0, rssMb: 100, collected: 0, dropped: 0 };
  const machine: Machine = {
    cpuMs: () => state.cpuMs,
    residentBytes: () => state.rssMb * MB,
    dropCode() {
      state.dropped += 1;
    },
    collect() {
      state.collected += 1;
      state.rssMb = 110;
    },
  };
  const stop = releaseIdleMemory(world.clock, machine);
  /** Uses this amount of processor time within the next ten seconds. */
  const spend = async (ms: number): Promise<void> => {
    state.cpuMs += ms;
    await world.advance(10_000);
  };
  return { state, spend, stop };
}

test("IM1: garbage is collected when the process becomes idle, but not while it works", async () => {
  const { state, spend } = open();
  state.rssMb = 400;
  await spend(5_000);
  await spend(900);
  await spend(300);
  expect(state.collected).toBe(0);
  await spend(50);
  expect(state.collected).toBe(1);
});

test("IM2: after each busy time garbage is collected once, and only if memory has grown enough", async () => {
  const { state, spend } = open();
  await spend(5_000);
  await spend(0);
  expect(state.collected).toBe(0);
  state.rssMb = 300;
  await spend(0);
  expect(state.collected).toBe(0);
  await spend(5_000);
  await spend(0);
  await spend(0);
  expect(state.collected).toBe(1);
});

test("IM3: the copy of compiled code is dropped ten seconds after the start, and with each collection", async () => {
  const { state, spend } = open();
  expect(state.dropped).toBe(0);
  await spend(5_000);
  expect(state.dropped).toBe(1);
  await spend(5_000);
  expect(state.dropped).toBe(1);
  state.rssMb = 400;
  await spend(0);
  expect(state).toMatchObject({ collected: 1, dropped: 2 });
});

test("IM3: in a real process, the code of a module is in the cache on disk before the process ends", async () => {
  const folder = temporaryFolder(tmpdir());
  const module = join(folder, "module.mjs");
  writeFileSync(module, "export const answer = () => 42; answer();");
  const program = `
    import { readdirSync } from "node:fs";
    import { enableCompileCache } from "node:module";
    import { thisMachine } from ${JSON.stringify(new URL("../../src/world/idle-memory.ts", import.meta.url).href)};
    const { directory } = enableCompileCache(${JSON.stringify(join(folder, "cache"))});
    await import(${JSON.stringify(module)});
    const count = () => readdirSync(directory, { recursive: true }).length;
    const before = count();
    thisMachine().dropCode();
    console.log(count() > before);`;
  const args = ["--input-type=module", "--eval", program];
  const { stdout } = await promisify(execFile)(process.execPath, args, { env: {} });
  expect(stdout).toBe("true\n");
});

test("after the idle check was stopped, no garbage is collected", async () => {
  const { state, spend, stop } = open();
  stop();
  state.rssMb = 400;
  await spend(5_000);
  await spend(0);
  expect(state.collected).toBe(0);
});

test("in a real process, the collection frees unused memory", () => {
  const machine = thisMachine();
  machine.collect();
  const before = process.memoryUsage().heapUsed;
  let garbage: unknown[] | undefined = Array.from({ length: 300_000 }, (_, at) => ({ at }));
  expect(process.memoryUsage().heapUsed).toBeGreaterThan(before);
  const full = process.memoryUsage().heapUsed + garbage.length * 0;
  garbage = undefined;
  machine.collect();
  expect(process.memoryUsage().heapUsed).toBeLessThan(full);
});
