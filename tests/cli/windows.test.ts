// The files about the windows of a joined program.

import { mkdirSync, mkdtempSync, utimesSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openWindow } from "../../src/cli/join/windows.ts";
import { fakeWorld } from "../kit/world.ts";

const OWN = { bridge: process.pid, program: process.pid };

test("the lock of a killed process is removed, even if the wall clock was set back since", async () => {
  const world = fakeWorld();
  const folder = mkdtempSync(join(tmpdir(), "parley-windows-"));
  const lock = join(folder, "lock");
  mkdirSync(lock);
  const later = (world.clock.now() + 3_600_000) / 1_000;
  utimesSync(lock, later, later);
  const opened = openWindow(folder, OWN, world.clock);
  await world.advance(12_000);
  expect(await opened).toBe(1);
});
