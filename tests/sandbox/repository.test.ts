// The git repository of a workspace: what contained commands may do to it, and when.

import { existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { useConfigHome } from "../kit/config-home.ts";
import { Box, limitsOf, running, until, whyNot } from "./kit.ts";

const config = useConfigHome();

test("a contained agent writes the repository of a workspace that is its own, and of no other unless it is told to", () => {
  const gits = (agents: string): string[] =>
    config()
      .good(`{ agents: ${agents} }`)
      .settings.agents.map(({ sandbox }) => sandbox.git);
  const list = '[{ id: "a" }, { id: "b", workspace: "~/code" }, { id: "c", sandbox: { mode: "non-main" } }]';
  expect(gits(`{ defaults: { sandbox: { mode: "all" } }, list: ${list} }`)).toEqual([
    "write",
    "read",
    "read",
  ]);
  expect(gits(`{ defaults: { sandbox: { mode: "all" }, workspace: "~/code" } }`)).toEqual(["read"]);
  expect(gits(`{ defaults: { sandbox: { git: "write" } }, list: ${list} }`)).toEqual([
    "write",
    "write",
    "write",
  ]);
});

const missing = await whyNot("bubblewrap");

// Where bubblewrap does not work nothing is contained; whyNot has said so, and fails in CI.
describe.skipIf(missing !== undefined)("bubblewrap", () => {
  let box: Box;
  beforeEach(() => {
    box = new Box();
    mkdirSync(box.workspace);
    mkdirSync(box.outside);
    writeFileSync(join(box.outside, "token"), "s3cret");
  });
  afterEach(() => box.remove());

  test("RE1: nothing of a repository that is there can be planted, moved or put away; it is read", async () => {
    const git = join(box.workspace, ".git");
    mkdirSync(join(git, "hooks"), { recursive: true });
    writeFileSync(join(git, "config"), "[core]\n");
    const tries = [
      "echo x > .git/hooks/pre-commit",
      "echo x >> .git/config",
      "echo ../evil > .git/commondir",
      "mv .git old",
      "rm -rf .git",
      "ln -sfn evil .git",
      "mkdir evil && mv -T evil .git",
      "umount .git",
    ];
    const tried = `${tries.map((one) => `(${one}) >/dev/null 2>&1 && echo "did: ${one}"`).join("; ")}; cat .git/config`;
    expect(await box.says(tried)).toBe("[core]");
    expect([readdirSync(box.workspace).sort(), readdirSync(git).sort()]).toEqual([
      [".git", "evil"],
      ["config", "hooks"],
    ]);
    expect(readdirSync(join(git, "hooks"))).toEqual([]);
    expect(await box.tool("write", { path: ".git/hooks/pre-commit", content: "x" })).toMatchObject({
      status: "error",
    });
    expect(await box.says("echo x > .git/config; cat .git/config", { needs: { git: "write" } })).toBe("x");
  });

  test("RE2: what is put over .git is no link's target, not even one that is swapped in meanwhile", async () => {
    symlinkSync(box.outside, join(box.workspace, ".git"));
    const sandbox = await box.sandbox();
    const program = { kind: "shell", command: "cat .git/token" } as const;
    expect(await sandbox.run(program, limitsOf())).toMatchObject({
      ok: false,
      code: "sandbox_unavailable",
    });
    rmSync(join(box.workspace, ".git"));
    // A program that was there before the repository is not kept from swapping it.
    const stop = new AbortController();
    const marker = `86402.${process.pid}`;
    const moves = "mv -T .git d; mv -T evil .git; mv -T .git evil; mv -T d .git";
    const swap = `mkdir .git; ln -s ${box.outside} evil; while :; do ${moves}; done # ${marker}`;
    const swapping = box.run(swap, { limits: { signal: stop.signal } });
    await until(() => running(marker).length > 0 && existsSync(join(box.workspace, "evil")));
    for (let round = 0; round < 12; round++) {
      const look = `cat .git/token evil/token d/token; for place in * .git; do cat $place/token; done`;
      const end = await sandbox.run({ kind: "shell", command: look }, limitsOf());
      expect(end.ok ? end.value.output.read().text : "").not.toContain("s3cret");
    }
    stop.abort();
    await swapping;
  });
});
