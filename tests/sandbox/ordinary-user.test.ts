// The sandbox of a gateway that an ordinary user runs. Tests run as root, so these start a process of that
// user.

import { spawnSync } from "node:child_process";
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect } from "vitest";
import { test } from "../kit/deep.ts";
import { lacks } from "../kit/process/lacks.ts";
import { PATIENCE_MS } from "../kit/until.ts";
import { whyNot } from "./kit.ts";

const NOBODY = 65_534;
const missing = await whyNot("bubblewrap");
const source = (path: string): string => fileURLToPath(new URL(`../../src/${path}`, import.meta.url));
/**
 * Starts a program as that user. Some machines let only root open the device of network carriers, so it has one
 * of its own.
 */
const AS_NOBODY = [
  ...["-m", "sh", "-c"],
  "{ mount -t tmpfs tmpfs /dev/net && mknod -m 666 /dev/net/tun c 10 200; } 2>/dev/null; " +
    `exec setpriv --reuid=${NOBODY} --regid=${NOBODY} --clear-groups "$@"`,
  "sh",
];
const asNobody = (...command: string[]) =>
  spawnSync("unshare", [...AS_NOBODY, ...command], { encoding: "utf8", env: { PATH: process.env.PATH } });
/** Whether this process may act as another user who can read Node and the sources. */
const canPlay =
  missing === undefined &&
  process.getuid?.() === 0 &&
  asNobody(process.execPath, "--check", source("sandbox/find.ts")).status === 0;
const cannotPlay = lacks("root that can act as another user", canPlay);

let folder: string;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "parley-ordinary-")));
  chmodSync(folder, 0o755);
  mkdirSync(join(folder, "workspace"));
  if (canPlay) chownSync(join(folder, "workspace"), NOBODY, NOBODY);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Runs sandboxed commands in a process of that user, and returns the result of each. */
function contained(
  commands: readonly string[],
  network = false,
): { ending: string; exitCode: number; text: string }[] {
  const program = `
    import { createSandboxFinder } from ${JSON.stringify(source("sandbox/find.ts"))};
    import { realWorld } from ${JSON.stringify(source("world.ts"))};
    const finder = createSandboxFinder({ world: realWorld({ level: "silent" }), keepOut: [] });
    const needs = { backend: "bubblewrap", network: ${network}, memoryMb: 96, processesMax: 24, diskMb: 96 };
    const found = await finder.find(needs, ${JSON.stringify(join(folder, "workspace"))});
    if (!found.ok) throw new Error(found.error);
    const limits = { timeoutMs: ${PATIENCE_MS}, outputMaxBytes: 9_999, signal: new AbortController().signal };
    const ends = [];
    for (const command of ${JSON.stringify(commands)}) {
      const end = await found.value.run({ kind: "shell", command }, limits);
      if (!end.ok) throw new Error(end.error);
      ends.push({ ending: end.value.ending, exitCode: end.value.exitCode, text: end.value.output.read().text });
    }
    console.log(JSON.stringify(ends));`;
  const args = ["--no-warnings", "--input-type=module", "-e", program];
  const { stdout, stderr } = asNobody(process.execPath, ...args);
  expect(stderr).toBe("");
  return JSON.parse(stdout);
}

// Skipped if an ordinary user runs the tests, because then the escape suite proves the same.
test.deep.skipIf(cannotPlay)(
  "the sandbox of an ordinary user gives the same guarantees: files, privileges, processes, memory, disk",
  () => {
    const ends = contained([
      "touch made; id -u; cat /etc/shadow 2>/dev/null || echo none; (unshare -U true) 2>/dev/null || echo no",
      "(echo 1 > /proc/sys/kernel/hostname) 2>/dev/null || echo no",
      "for i in $(seq 40); do sleep 5 & done 2>&1 | grep -c -m1 'fork: retry'",
      "for i in 1 2 3; do (head -c 60M /dev/zero | tail -c 60M | sleep 20) & done; wait",
      "i=0; while :; do i=$((i+1)); head -c 4M /dev/zero > f$i; sleep 0.01; done",
      "rm f*; echo cleared",
      "mkdir h; cd h; exec 3>a 4>b 5>c 6>d; chmod 0 .; for n in 3 4 5 6; do head -c 90M /dev/zero >&$n; done; sleep 60",
      "chmod 700 h; rm -r h; echo cleared",
    ]);
    expect(ends).toMatchObject([
      { ending: "ended", text: "1000\nnone\nno\n" },
      { ending: "ended", text: "no\n" },
      { ending: "ended", text: "1\n" },
      { ending: "memory" },
      { ending: "disk" },
      { ending: "ended", text: "cleared\n" },
      { ending: "disk" },
      { ending: "ended", text: "cleared\n" },
    ]);
  },
);

const cannotCarry = lacks("pasta") || lacks("/dev/net/tun", existsSync("/dev/net/tun"));

// Needs the program pasta, its device, and another user.
test.skipIf(cannotPlay || cannotCarry)(
  "UL1: the sandbox of an ordinary user also has its own network",
  () => {
    const route = "grep -c '\\s00000000\\s.*\\s00000000\\s' /proc/net/route";
    expect(contained([route, "id -u; echo x > here; cat here"], true)).toMatchObject([
      { ending: "ended", text: "1\n" },
      { ending: "ended", text: "1000\nx\n" },
    ]);
  },
);
