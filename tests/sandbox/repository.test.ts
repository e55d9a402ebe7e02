// The git repository of a workspace, and the access of sandboxed commands to it.

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { useConfigHome } from "../kit/process/config-home.ts";
import { until } from "../kit/until.ts";
import { Box, limitsOf, running, whyNot } from "./kit.ts";

const config = useConfigHome();

test("by default a sandboxed agent may write to its own workspace's repository, and to others only if configured", () => {
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

// Skipped if bubblewrap does not work here; `whyNot` reports the reason, and fails in CI.
describe.skipIf(missing !== undefined)("bubblewrap", () => {
  let box: Box;
  beforeEach(() => {
    box = new Box();
    mkdirSync(box.workspace);
    mkdirSync(box.outside);
    writeFileSync(join(box.outside, "token"), "s3cret");
  });
  afterEach(() => box.remove());

  test("RE1: existing parts of a repository can be read, but not replaced, moved or removed", async () => {
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

  const git = (folder: string, ...args: string[]): void => {
    const who = ["-c", "user.name=n", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"];
    execFileSync("git", [...who, ...args], {
      cwd: folder,
      stdio: "pipe",
      env: { ...process.env, HOME: box.outside },
    });
  };
  const makeRepository = (folder: string): void => {
    mkdirSync(folder, { recursive: true });
    git(folder, "init", "-q", "-b", "main");
    git(folder, "commit", "-q", "--allow-empty", "-m", "one");
  };
  const evil = '"[core]\n\tfsmonitor = $PWD/evil\n"';

  interface Layout {
    readonly name: string;
    make(): void;
    /** Sandboxed commands that try to make git run `evil` when git is used outside later. */
    readonly tries: readonly string[];
    /** The folder in which git later runs outside of the sandbox. */
    readonly where: string;
  }
  const layouts: readonly Layout[] = [
    {
      name: "gitdir: ./.bare",
      make: () => {
        makeRepository(box.workspace);
        renameSync(join(box.workspace, ".git"), join(box.workspace, ".bare"));
        writeFileSync(join(box.workspace, ".git"), "gitdir: ./.bare\n");
      },
      tries: [
        "cp evil .bare/hooks/pre-commit",
        `printf ${evil} >> .bare/config`,
        "mv .bare old && cp -r old .bare && cp evil .bare/hooks/pre-commit",
        `cp -r .bare other && printf ${evil} >> other/config && echo gitdir: ./other > .git`,
      ],
      where: ".",
    },
    {
      name: "a worktree of a repository in the workspace",
      make: () => {
        makeRepository(join(box.workspace, "source"));
        renameSync(join(box.workspace, "source/.git"), join(box.workspace, ".bare"));
        writeFileSync(join(box.workspace, ".git"), "gitdir: ./.bare\n");
        git(box.workspace, "worktree", "add", "-q", "trees/feature");
      },
      tries: [
        "cp evil .bare/hooks/pre-commit",
        `cp -r .bare other && printf ${evil} >> other/config && echo gitdir: $PWD/other > trees/feature/.git`,
        "mv trees old && mkdir -p trees/feature && echo gitdir: $PWD/other > trees/feature/.git",
      ],
      where: "trees/feature",
    },
    {
      name: "a submodule",
      make: () => {
        makeRepository(box.workspace);
        makeRepository(join(box.outside, "library"));
        git(box.workspace, "submodule", "--quiet", "add", join(box.outside, "library"), "deep/library");
        git(box.workspace, "commit", "-q", "-m", "two");
      },
      tries: [
        "cp evil .git/modules/deep/library/hooks/pre-commit",
        `cp -r .git/modules/deep/library other && printf ${evil} >> other/config && echo gitdir: $PWD/other > deep/library/.git`,
        "mv deep old && mkdir -p deep/library && echo gitdir: $PWD/other > deep/library/.git",
        "mv deep/library old && mkdir -p deep/library && echo gitdir: $PWD/other > deep/library/.git",
      ],
      where: "deep/library",
    },
    {
      name: "core.hooksPath",
      make: () => {
        makeRepository(box.workspace);
        mkdirSync(join(box.workspace, "tools/hooks"), { recursive: true });
        git(box.workspace, "config", "core.hooksPath", "tools/hooks");
      },
      tries: [
        "cp evil tools/hooks/pre-commit",
        "mv tools old && mkdir -p tools/hooks && cp evil tools/hooks/pre-commit",
        "mv tools/hooks old; mkdir -p tools/hooks && cp evil tools/hooks/pre-commit",
      ],
      where: ".",
    },
    {
      name: "core.hooksPath, not there yet",
      make: () => {
        makeRepository(box.workspace);
        mkdirSync(join(box.workspace, ".husky"));
        git(box.workspace, "config", "core.hooksPath", ".husky/_");
      },
      tries: ["mkdir -p .husky/_ && cp evil .husky/_/pre-commit"],
      where: ".",
    },
    {
      name: "an included file",
      make: () => {
        makeRepository(box.workspace);
        writeFileSync(join(box.workspace, "shared.gitconfig"), "[alias]\n\tst = status\n");
        git(box.workspace, "config", "include.path", "../shared.gitconfig");
      },
      tries: [`printf ${evil} >> shared.gitconfig`, "mv shared.gitconfig old", "rm -f shared.gitconfig"],
      where: ".",
    },
  ];

  test.each(layouts)(
    "RE1: git outside the sandbox executes nothing that a sandboxed program left behind: $name",
    async (layout) => {
      layout.make();
      const mark = join(box.folder, "mark");
      writeFileSync(join(box.workspace, "evil"), `#!/bin/sh\ntouch ${mark}\n`, { mode: 0o755 });
      await box.run(layout.tries.map((one) => `(${one})`).join("; "));
      git(join(box.workspace, layout.where), "status");
      git(join(box.workspace, layout.where), "commit", "-q", "--allow-empty", "-m", "last");
      expect(existsSync(mark)).toBe(false);
      // If the sandbox may write to the repository, the first command succeeds.
      await box.run(layout.tries[0] ?? "", { needs: { git: "write" } });
      git(join(box.workspace, layout.where), "status");
      git(join(box.workspace, layout.where), "commit", "-q", "--allow-empty", "-m", "last");
      expect(existsSync(mark)).toBe(true);
    },
  );

  test("RE3: missing or linked hooks cannot be protected, so the program is refused, and the error says what to do", async () => {
    makeRepository(box.workspace);
    const sandbox = await box.sandbox();
    const tried = () => sandbox.run({ kind: "shell", command: "true" }, limitsOf());
    git(box.workspace, "config", "core.hooksPath", ".githooks");
    const missing = await tried();
    expect(missing).toMatchObject({
      ok: false,
      error: expect.stringContaining(".githooks, which does not exist"),
    });
    expect(missing).toMatchObject({
      hint: expect.stringContaining("Create it (it may be empty), or set sandbox.git"),
    });
    mkdirSync(join(box.workspace, "real"));
    symlinkSync("real", join(box.workspace, ".githooks"));
    expect(await tried()).toMatchObject({ ok: false, error: expect.stringContaining("is a link") });
    git(box.workspace, "config", "core.hooksPath", "real");
    expect(await tried()).toMatchObject({ ok: true });
  });

  test("RE2: nothing is mounted over the target of a linked .git, even if the link is created during the start", async () => {
    symlinkSync(box.outside, join(box.workspace, ".git"));
    const sandbox = await box.sandbox();
    const program = { kind: "shell", command: "cat .git/token" } as const;
    expect(await sandbox.run(program, limitsOf())).toMatchObject({
      ok: false,
      code: "sandbox_unavailable",
    });
    rmSync(join(box.workspace, ".git"));
    // A program that started before the repository was created can still replace it, so this one is stopped.
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
