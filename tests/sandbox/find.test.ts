// Tests which backend is chosen, and the error if none works. Fake programs on the search path replace the
// backends.

import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { dockerArguments } from "../../src/sandbox/docker.ts";
import { createSandboxFinder, type SandboxFinder } from "../../src/sandbox/find.ts";
import { realWorld, type World } from "../../src/world.ts";
import { lacks } from "../kit/process/lacks.ts";
import { NEEDS } from "./kit.ts";

let folder: string;
let aheadMs: number;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "parley-find-"));
  aheadMs = 0;
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Adds a program with this script to the search path. */
function plant(name: string, script: string): void {
  writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`);
  chmodSync(join(folder, name), 0o755);
}

function finder(): SandboxFinder {
  const real = realWorld({ level: "silent" });
  const clock: World["clock"] = {
    ...real.clock,
    now: () => real.clock.now() + aheadMs,
    at: (atMs, fire) => real.clock.at(atMs - aheadMs, fire),
  };
  const world: World = { ...real, clock };
  return createSandboxFinder({ world, keepOut: [], environment: { PATH: folder } });
}

const workspace = (): string => join(folder, "workspace");

test("FB3: if no backend works, the error gives the reason for each, and how to install one on four systems", async () => {
  const found = await finder().find({ ...NEEDS, backend: "auto" }, workspace());
  expect(found).toMatchObject({ ok: false, code: "sandbox_unavailable" });
  const { error, hint } = found as { error: string; hint: string };
  if (process.platform === "linux") expect(error).toContain("bubblewrap is not installed");
  expect(error).toContain("docker is not installed");
  for (const words of [
    "apt install",
    "dnf install",
    "pacman -S",
    "macOS",
    "docker pull",
    "npx parley-gateway doctor",
  ]) {
    expect(hint).toContain(words);
  }
});

test("a configured backend is the only one that is tried", async () => {
  const found = await finder().find({ ...NEEDS, backend: "docker" }, workspace());
  expect((found as { error: string }).error).toBe("no sandbox works here: docker is not installed");
});

// Only Linux has bubblewrap; on other systems the check stops earlier.
test.skipIf(lacks("Linux", process.platform === "linux"))(
  "a version of bubblewrap that is too old is refused",
  async () => {
    plant("bwrap", "echo bubblewrap 0.6.1");
    const probe = await finder().probe("bubblewrap");
    expect(probe).toMatchObject({ usable: false, why: "is too old (bubblewrap 0.6.1; 0.8 is needed)" });
  },
);

// Only Linux has bubblewrap; on other systems the check stops earlier.
test.skipIf(lacks("Linux", process.platform === "linux"))(
  "FB1: bubblewrap is not used if it is installed but the system forbids it",
  async () => {
    const refusal = "bwrap: Creating new namespace failed: Operation not permitted";
    plant("bwrap", `[ "$1" = --version ] && echo bubblewrap 0.11.0 && exit; echo ${refusal} >&2; exit 1`);
    const probe = await finder().probe("bubblewrap");
    expect(probe.usable).toBe(false);
    expect((probe as { why: string }).why).toContain(refusal);
  },
);

test("if docker has no daemon or lacks the image, the error says which one is missing", async () => {
  plant("docker", "echo 'Cannot connect to the Docker daemon' >&2; exit 1");
  expect(await finder().probe("docker")).toMatchObject({
    why: "has no running daemon (Cannot connect to the Docker daemon)",
  });
  plant("docker", `[ "$1" = version ] && echo 28 && exit; echo no such image >&2; exit 1`);
  expect(await finder().probe("docker", "mine:1")).toMatchObject({
    why: "lacks the image mine:1: run docker pull mine:1",
  });
});

test("FB2: a backend that works is tested only once; one that failed is tested again after a while", async () => {
  const one = finder();
  expect((await one.probe("docker")).usable).toBe(false);
  plant("docker", "echo fine");
  expect((await one.probe("docker")).usable).toBe(false);
  aheadMs += 60_000;
  expect((await one.probe("docker")).usable).toBe(true);
  rmSync(join(folder, "docker"));
  aheadMs += 60_000;
  expect((await one.probe("docker")).usable).toBe(true);
});

test("docker gets every limit as an option, and no folder name can inject an option into a mount", () => {
  const place = `/a b,c"d:e`;
  const ground = { needs: NEEDS, workspace: place, namedWorkspace: place, node: "/node", code: "/code" };
  const limits = { timeoutMs: 1_500 };
  const args = dockerArguments(ground, { kind: "shell", command: "echo $1" }, limits, {
    name: "n",
    full: false,
    held: [],
    user: "7:8",
  });
  const after = (flag: string): string | undefined => args[args.indexOf(flag) + 1];
  expect(after("--network")).toBe("none");
  expect(after("--cap-drop")).toBe("ALL");
  expect(after("--security-opt")).toBe("no-new-privileges");
  expect(after("--user")).toBe("7:8");
  expect(after("--memory")).toBe("512m");
  expect(after("--memory-swap")).toBe("512m");
  expect(after("--pids-limit")).toBe("66");
  expect(after("--pull")).toBe("never");
  expect(args).toContain("--read-only");
  expect(after("--mount")).toBe(`type=bind,"source=/a b,c""d:e","target=/a b,c""d:e"`);
  expect(args).toContain(`type=bind,"source=/code","target=/run/parley/code",readonly`);
  expect(args.slice(-6)).toEqual(["3", "bash", "--noprofile", "--norc", "-c", "echo $1"]);
  expect(args.join(" ")).not.toContain("privileged");
});

test("SV3: a workspace that contains another agent's workspace (even a missing one) is refused; a sibling is not", async () => {
  const outer = join(folder, "ws");
  const inner = join(outer, "deep/inner");
  const parts = { world: realWorld({ level: "silent" }), keepOut: [], environment: { PATH: folder } };
  const one = createSandboxFinder({ ...parts, workspaces: [outer, inner, `${outer}-2`] });
  const refused = /contains .*inner, the workspace of another agent/;
  const errorOf = async (place: string): Promise<string> => {
    const found = await one.find({ ...NEEDS, backend: "docker" }, place);
    return found.ok ? "" : found.error;
  };
  expect(await errorOf(outer)).toMatch(refused);
  expect(existsSync(outer)).toBe(false);
  mkdirSync(join(outer, "deep"), { recursive: true });
  symlinkSync(tmpdir(), inner);
  expect(await errorOf(outer)).toMatch(refused);
  rmSync(inner);
  for (const fine of [inner, `${outer}-2`]) expect(await errorOf(fine)).toMatch(/docker is not installed/);
});

test("S7: no sandbox starts if a store or configuration is in a folder that every sandbox can see", async () => {
  const world = realWorld({ level: "silent" });
  const one = createSandboxFinder({
    world,
    keepOut: ["/usr/local/etc/parley.json5"],
    environment: { PATH: folder },
  });
  expect(await one.find(NEEDS, workspace())).toMatchObject({
    ok: false,
    error: expect.stringContaining("every sandbox would show /usr/local/etc/parley.json5"),
  });
});
