// The files about the windows of a joined program.

import { mkdirSync, mkdtempSync, readdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import {
  ancestorsOf,
  claimNews,
  continueWindow,
  hasKeeper,
  isContinued,
  isOpen,
  openWindow,
  skipNews,
  takeOver,
  windowOf,
} from "../../../src/features/join/windows.ts";
import { fakeWorld } from "../../kit/world.ts";

const OWN = { bridge: process.pid, program: process.pid };
const BOOT_FILE = "/proc/sys/kernel/random/boot_id";
const EARLIER_BOOT = "00000000-0000-4000-8000-000000000000";

const makeFolder = (): string => mkdtempSync(join(tmpdir(), "parley-windows-"));

/** Makes the files look as if processes of an earlier start of the machine had written them. */
function restartMachine(folder: string): void {
  const boot = readFileSync(BOOT_FILE, "utf8").trim();
  for (const name of readdirSync(folder)) {
    const file = join(folder, name);
    writeFileSync(file, readFileSync(file, "utf8").replaceAll(boot, EARLIER_BOOT));
  }
}

test("the lock of a killed process is removed, even if the wall clock was set back since", async () => {
  const world = fakeWorld();
  const folder = makeFolder();
  const lock = join(folder, "lock");
  mkdirSync(lock);
  const later = (world.clock.now() + 3_600_000) / 1_000;
  utimesSync(lock, later, later);
  const opened = openWindow(folder, OWN, world.clock);
  await world.advance(12_000);
  expect(await opened).toBe(1);
});

test("after a restart of the machine, a process with the id of a former one does not hold its window", async () => {
  const { clock } = fakeWorld();
  const folder = makeFolder();
  expect(await openWindow(folder, OWN, clock)).toBe(1);
  continueWindow(folder, 1);
  takeOver(folder, 2, "waker");
  expect(await claimNews(folder, 1, undefined, clock)).toBe(true);
  expect(windowOf(folder, ancestorsOf(process.pid, process.platform))).toMatchObject({
    number: 1,
    continued: true,
  });
  expect([isOpen(folder, 1), isContinued(folder, 1), hasKeeper(folder, 2)]).toEqual([true, true, true]);

  restartMachine(folder);
  expect([isOpen(folder, 1), isContinued(folder, 1), hasKeeper(folder, 2)]).toEqual([false, false, false]);
  expect(windowOf(folder, ancestorsOf(process.pid, process.platform))).toBeUndefined();
  expect(await openWindow(folder, OWN, clock)).toBe(1);
  expect(await claimNews(folder, 1, undefined, clock)).toBe(true);
});

test("a program that another one of the same folder has started belongs to its own window", async () => {
  const { clock } = fakeWorld();
  const folder = makeFolder();
  const [inner, outer] = [3_000_002, 3_000_001];
  await openWindow(folder, { ...OWN, program: outer }, clock);
  await openWindow(folder, { ...OWN, program: inner }, clock);
  expect(windowOf(folder, [inner, outer])).toMatchObject({ number: 2 });
  expect(windowOf(folder, [outer])).toMatchObject({ number: 1 });
  // The wake that continues a conversation may itself run below the window's program.
  continueWindow(folder, 1);
  expect(windowOf(folder, [inner, process.pid, outer])).toMatchObject({ number: 2, continued: false });
  expect(windowOf(folder, [process.pid, outer])).toMatchObject({ number: 1, continued: true });
});

test("the claim of a process that has ended does not keep the cursor from moving", async () => {
  const { clock } = fakeWorld();
  const folder = makeFolder();
  expect(await claimNews(folder, 1, undefined, clock)).toBe(true);
  await skipNews(folder, 1, { from: undefined, to: "m1" }, clock);
  expect(readdirSync(folder)).not.toContain("1.cursor");
  restartMachine(folder);
  await skipNews(folder, 1, { from: undefined, to: "m1" }, clock);
  expect(readFileSync(join(folder, "1.cursor"), "utf8")).toBe("m1");
});
