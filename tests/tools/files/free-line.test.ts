// Lines that may run without a question, in workspaces that somebody has prepared. Every line that is found
// free is really run, so a test shows that it neither starts a program nor reads a file outside.

import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { readFree } from "../../../src/core/rules/approval/free.ts";
import { whyNotFree } from "../../../src/tools/free-line.ts";
import { temporaryFolder } from "../../kit/engine/engine.ts";

const SECRET = "token-of-the-gateway";

interface Ground {
  readonly workspace: string;
  /** A file outside of the workspace with the secret. */
  readonly secret: string;
  /** A program that leaves `mark` when it runs. */
  readonly program: string;
  readonly mark: string;
}

function prepare(): Ground {
  const folder = temporaryFolder();
  const workspace = join(folder, "workspace");
  const ground = {
    ...{ workspace, secret: join(folder, "secret") },
    ...{ program: join(folder, "program"), mark: join(folder, "mark") },
  };
  mkdirSync(join(workspace, "src"), { recursive: true });
  writeFileSync(ground.secret, `${SECRET}\n`);
  writeFileSync(join(workspace, "a.txt"), "one\ntwo\n");
  writeFileSync(join(workspace, "src", "b.txt"), "one\n");
  writeFileSync(ground.program, `#!/bin/sh\ntouch ${ground.mark}\ncat\n`);
  chmodSync(ground.program, 0o755);
  return ground;
}

const HOME = { PATH: process.env.PATH ?? "", HOME: "/nowhere", LANG: "C.UTF-8" };

function git({ workspace }: Ground, ...args: string[]): void {
  const named = ["-c", "user.name=Ann", "-c", "user.email=ann@example.com", ...args];
  const { status, stderr } = spawnSync("git", named, { cwd: workspace, env: HOME, encoding: "utf8" });
  if (status !== 0) throw new Error(stderr);
}

/** Makes a repository with one commit and one change. */
function prepareRepository(): Ground {
  const ground = prepare();
  git(ground, "init", "-q", "-b", "main");
  git(ground, "add", ".");
  git(ground, "commit", "-q", "-m", "first");
  writeFileSync(join(ground.workspace, "a.txt"), "one\nthree\n");
  return ground;
}

/** Runs a line as `exec` does if it is free. Returns its output, or why it asks. */
async function run({ workspace }: Ground, command: string): Promise<{ output?: string; why?: string }> {
  const read = readFree(command);
  const why = read.kind === "asks" ? read.why : await whyNotFree(workspace, read);
  if (why !== undefined || read.kind === "asks") return { why: why ?? "" };
  const { output } = spawnSync("bash", ["--noprofile", "--norc", "-c", read.line], {
    ...{ cwd: workspace, env: HOME, encoding: "utf8", timeout: 20_000 },
  });
  return { output: output.join("") };
}

test.each([
  ["cat a.txt src/b.txt | sort -u | wc -l", "2\n"],
  ["grep -rn two .", "./a.txt:2:two\n"],
  ["find . -name 'b.*' -type f", "./src/b.txt\n"],
  ["ls src && cat nothing 2>/dev/null || echo none", "b.txt\nnone\n"],
  ["sed -n '2,$p' a.txt", "two\n"],
  ["head -n 1 a.txt; pwd", "one\n"],
])("FL1: %s runs without a question", async (command, output) => {
  const ground = prepare();
  expect((await run(ground, command)).output).toContain(output);
});

test("FL1: absolute paths, and links within the workspace, are free", async () => {
  const ground = prepare();
  symlinkSync("src", join(ground.workspace, "inner"));
  symlinkSync(ground.workspace, join(ground.workspace, "again"));
  expect(await run(ground, `cat ${ground.workspace}/a.txt`)).toEqual({ output: "one\ntwo\n" });
  expect(await run(ground, "cat inner/b.txt again/src/b.txt")).toEqual({ output: "one\none\n" });
});

test.each([
  ...["cat LINK", "cat ./LINK", "head -n 1 LINK", "tail -5 LINK", "wc LINK", "sort LINK", "sed -n 1p LINK"],
  ...[
    "grep -n token LINK",
    "grep -e token LINK",
    "grep -- token LINK",
    "grep LINK a.txt",
    "cat a.txt 'LINK'",
  ],
  ...["cat a.txt && cat LINK", "cat a.txt | cat LINK", "cat FOLDER/secret", "cat src/../LINK", "ls FOLDER"],
  ...[
    "ls FOLDER/",
    "ls -- FOLDER",
    "grep -r token FOLDER",
    "find FOLDER/ -type f",
    "cat src/up/secret",
    "cat 5",
  ],
  ...[
    "head -n 5",
    "cat src/LINK",
    "cat DANGLING",
    "cat CHAIN",
    "cat LOOP",
    "cat '~/LINK'",
    "cat -- -n",
    "cat @LINK",
  ],
  ...["cat LINK/", "cat LINK/.", "cat ./src/./LINK", "cat src//LINK", "cat SECRET", "cat /proc/self/environ"],
  ...[
    "cat /dev/stdin",
    "cat /dev/fd/0",
    "ls /",
    "wc -l /etc/passwd",
    "cat file:LINK",
    "cat PIPE",
    "which LINK",
  ],
])("FL1: a planted link leads nobody out: %s asks", async (command) => {
  const ground = prepare();
  const plant = (target: string, ...path: string[]) => symlinkSync(target, join(ground.workspace, ...path));
  plant(ground.secret, "LINK");
  plant(ground.secret, "5");
  plant(ground.secret, "-n");
  plant(ground.secret, "src", "LINK");
  plant("..", "FOLDER");
  plant("../..", "src", "up");
  plant("LINK", "CHAIN");
  plant("LOOP", "LOOP");
  plant("/nowhere/at/all", "DANGLING");
  mkdirSync(join(ground.workspace, "~"));
  plant(ground.secret, "~", "LINK");
  plant(ground.secret, "file:LINK");
  spawnSync("mkfifo", [join(ground.workspace, "PIPE")]);
  expect(await run(ground, command.replace("SECRET", ground.secret))).toEqual({ why: expect.any(String) });
});

test.each([["grep -rn token-of ."], ["ls -lR"], ["find . -type f"]])(
  "FL1: %s does not follow the links below its folder",
  async (command) => {
    const ground = prepare();
    symlinkSync(ground.secret, join(ground.workspace, "src", "LINK"));
    symlinkSync("..", join(ground.workspace, "src", "up"));
    const { output = SECRET } = await run(ground, command);
    expect(output).not.toContain(SECRET);
    expect(output).not.toContain("program\n");
  },
);

const SHOWING = [
  "git status",
  "git diff",
  "git log -p",
  "git show",
  "git diff --stat HEAD",
  "git status -s | cat",
];

describe("FL2: git in the repository of the workspace", () => {
  test("shows a usual clone without a question", async () => {
    const ground = prepareRepository();
    git(ground, "remote", "add", "origin", "https://example.com/a.git");
    git(ground, "config", "branch.main.merge", "refs/heads/main");
    expect((await run(ground, "git status -s")).output).toBe(" M a.txt\n");
    expect((await run(ground, "git diff HEAD -- a.txt")).output).toContain("+three");
    expect((await run(ground, "git --no-pager log --oneline main")).output).toContain("first");
    expect((await run(ground, "git show HEAD:src/b.txt")).output).toBe("one\n");
  });

  test.each([
    ["diff.a.textconv", "*.txt diff=a"],
    ["diff.a.command", "*.txt diff=a"],
    ["filter.a.clean", "*.txt filter=a"],
    ["filter.a.process", "*.txt filter=a"],
    ["diff.external", ""],
    ["core.fsmonitor", ""],
    ["core.pager", ""],
    ["pager.log", ""],
    ["gpg.program", ""],
  ])("asks if the configuration has %s", async (key, attributes) => {
    const ground = prepareRepository();
    writeFileSync(join(ground.workspace, ".gitattributes"), `${attributes}\n`);
    git(ground, "config", key, ground.program);
    for (const command of SHOWING) expect(await run(ground, command)).toEqual({ why: expect.any(String) });
  });

  test("asks if the configuration includes another one, or names another place", async () => {
    for (const [key, value] of [
      ["include.path", "../evil"],
      ["includeIf.gitdir:**.path", "../evil"],
      ["core.worktree", "/"],
      ["core.attributesFile", "/etc/passwd"],
      ["extensions.worktreeConfig", "true"],
      ["alias.status", "!touch x"],
    ] as const) {
      const ground = prepareRepository();
      git(ground, "config", key, value);
      expect(await run(ground, "git status")).toMatchObject({ why: expect.stringContaining("setting") });
    }
  });

  test("starts no program that the user's settings, hooks or submodules name", async () => {
    const ground = prepareRepository();
    const home = temporaryFolder();
    writeFileSync(
      join(home, ".gitconfig"),
      `[core]\n fsmonitor = ${ground.program}\n[filter "a"]\n clean = ${ground.program}\n`,
    );
    writeFileSync(join(ground.workspace, ".gitattributes"), "*.txt filter=a\n");
    writeFileSync(join(ground.workspace, ".git", "hooks", "post-index-change"), `#!${ground.program}\n`);
    chmodSync(join(ground.workspace, ".git", "hooks", "post-index-change"), 0o755);
    // A repository below, which git treats as a submodule.
    const below = { ...ground, workspace: join(ground.workspace, "below") };
    mkdirSync(below.workspace);
    git(below, "init", "-q");
    writeFileSync(join(below.workspace, "c.txt"), "one\n");
    writeFileSync(join(below.workspace, ".gitattributes"), "*.txt filter=b\n");
    git(below, "add", ".");
    git(below, "commit", "-q", "-m", "below");
    git(ground, "add", "below");
    git(ground, "commit", "-q", "-m", "second");
    git(below, "config", "filter.b.clean", ground.program);
    writeFileSync(join(below.workspace, "c.txt"), "two\n");
    rmSync(ground.mark, { force: true });
    for (const command of SHOWING) {
      const read = readFree(command);
      if (read.kind === "asks") throw new Error(read.why);
      expect(await whyNotFree(ground.workspace, read)).toBeUndefined();
      spawnSync("bash", ["-c", read.line], { cwd: ground.workspace, env: { ...HOME, HOME: home } });
    }
    expect(existsSync(ground.mark)).toBe(false);
  });

  test.each([
    ["packed-refs"],
    ["shallow"],
    ["info/attributes"],
    ["objects/info/alternates"],
    ["refs/heads/other"],
    ["config"],
    ["logs/HEAD"],
  ])("asks if .git/%s is a link", async (file) => {
    const ground = prepareRepository();
    const path = join(ground.workspace, ".git", file);
    rmSync(path, { force: true });
    symlinkSync(ground.secret, path);
    expect(await run(ground, "git log")).toEqual({ why: expect.any(String) });
  });

  test("asks if the repository is elsewhere, or borrows objects", async () => {
    const ground = prepareRepository();
    const bare = prepare();
    git(bare, "init", "-q", "--separate-git-dir", join(bare.workspace, "..", "store"));
    expect(await run(bare, "git status")).toEqual({ why: "the folder .git of the workspace is elsewhere" });
    expect(await run(prepare(), "git status")).toMatchObject({ why: expect.stringContaining("no git") });
    writeFileSync(join(ground.workspace, ".git", "objects", "info", "alternates"), "/srv/other/objects\n");
    expect(await run(ground, "git log")).toEqual({ why: "git uses .git/objects/info/alternates" });
    const linked = prepare();
    symlinkSync(join(ground.workspace, ".git"), join(linked.workspace, ".git"));
    expect(await run(linked, "git log")).toMatchObject({ why: expect.any(String) });
    const common = prepareRepository();
    writeFileSync(join(common.workspace, ".git", "commondir"), join(ground.workspace, ".git"));
    expect(await run(common, "git log")).toEqual({ why: "git uses .git/commondir" });
  });

  test("a .git that is no repository does not make git look in the folders above", async () => {
    const ground = prepareRepository();
    git(ground, "config", "core.fsmonitor", ground.program);
    const inner = join(ground.workspace, "src");
    mkdirSync(join(inner, ".git"));
    writeFileSync(join(inner, ".git", "config"), "[core]\n\tbare = false\n");
    rmSync(ground.mark, { force: true });
    for (const command of SHOWING) await run({ ...ground, workspace: inner }, command);
    expect(existsSync(ground.mark)).toBe(false);
  });
});
