// Control groups of sandboxes: when a process removes them.

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterEach, expect, test } from "vitest";
import { buildProcessWall, type ProcessWall, removeLeftWalls } from "../../src/sandbox/process/wall.ts";
import { lacks } from "../kit/process/lacks.ts";

const source = fileURLToPath(new URL("../../src/sandbox/process/wall.ts", import.meta.url));
const tried = buildProcessWall("tried", 8);
tried?.remove();
const noGroups = lacks("the right to make control groups", tried !== undefined);
const walls: (ProcessWall | undefined)[] = [];
afterEach(() => {
  for (const wall of walls.splice(0)) wall?.remove();
});

/** Runs a program in another process, with the module as `wall`, and returns its output. */
function elsewhere(body: string): string {
  const program = `import * as wall from ${JSON.stringify(source)};\n${body}`;
  const args = ["--no-warnings", "--input-type=module", "-e", program];
  return spawnSync(process.execPath, args, { encoding: "utf8" }).stdout.trim();
}

// Only root can create control groups, and only if the system allows it.
test.skipIf(noGroups)(
  "PW3: an empty control group that a process has prepared but not entered is not removed, not even by another process (S2, S4)",
  () => {
    const wall = buildProcessWall("about-to-be-entered", 8);
    walls.push(wall);
    removeLeftWalls();
    elsewhere("wall.removeLeftWalls();");
    expect(existsSync(wall?.entrance ?? "")).toBe(true);
    wall?.remove();
    expect(existsSync(wall?.entrance ?? "")).toBe(false);
  },
);

// Only root can create control groups.
test.skipIf(noGroups)("PW3: if a process has exited, its control group is removed", () => {
  const entrance = elsewhere('console.log(wall.buildProcessWall("left", 8).entrance);');
  expect(existsSync(entrance)).toBe(true);
  removeLeftWalls();
  expect(existsSync(entrance)).toBe(false);
});
