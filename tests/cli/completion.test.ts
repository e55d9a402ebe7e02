// Shell completion as a shell uses it: bash loads the script and calls its function with the words of a line.

import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { USAGE_GROUPS } from "../../src/core/shapes/usage.ts";
import { lacks } from "../kit/process/lacks.ts";
import { run } from "./kit.ts";

// All tests of this file share one home.
const home = mkdtempSync(join(tmpdir(), "parley-completion-"));
const scripts = new Map<string, string>();

beforeAll(async () => {
  for (const shell of ["bash", "zsh", "fish"])
    scripts.set(shell, (await run(home, ["completion", shell])).out);
  for (const folder of ["files", "files/sub"]) mkdirSync(join(home, folder), { recursive: true });
  writeFileSync(join(home, "files/my backup.sqlite"), "");
});

afterAll(() => rmSync(home, { recursive: true }));

const script = (shell: string): string => scripts.get(shell) ?? "";

/**
 * Returns bash's suggestions for the last of these words. Bash treats "=" as a separate word, so it gets its
 * own.
 */
function offered(...words: string[]): string[] {
  const ask = `${script("bash")}
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_parley && printf '%s\\n' "\${COMPREPLY[@]}"`;
  const cwd = join(home, "files");
  const args = ["--norc", "-c", ask, "bash", "parley", ...words];
  // PATH is empty, because completion must work without other programs.
  const { stdout, stderr } = spawnSync("/bin/bash", args, { encoding: "utf8", cwd, env: { PATH: "" } });
  expect(stderr).toBe("");
  return stdout.split("\n").filter((line) => line !== "");
}

test("completion suggests every command and subcommand that the help lists", async () => {
  const help = (await run(home, ["--help"])).out;
  const listed = [...help.matchAll(/^ {2}([a-z][a-z-]*)/gm)].map(([, name]) => name);
  expect(listed.length).toBeGreaterThan(20);
  expect(offered("").sort()).toEqual(listed.sort());
  expect(offered("sess")).toEqual(["sessions"]);
  expect(offered("service", "").sort()).toEqual(["install", "status", "uninstall"]);
  expect(offered("--json", "--config", "sessions", "service", "un")).toEqual(["uninstall"]);
});

test("completion suggests the options of the command, of its default subcommand, and of the program", () => {
  expect(offered("service", "install", "-").sort()).toEqual(
    ["--config", "--help", "--json", "--no-start", "--print", "--token", "--url", "--version"].sort(),
  );
  // "parley sessions" means "parley sessions list".
  expect(offered("sessions", "--arch")).toEqual(["--archived"]);
  expect(offered("sessions", "tree", "--arch")).toEqual(["--archived"]);
  expect(offered("agents", "--arch")).toEqual([]);
  // The value of an option is not mistaken for a subcommand.
  expect(offered("send", "--session", "service", "--w")).toEqual(["--wait"]);
});

test("completion suggests the choices of options and arguments, also after an equals sign", () => {
  expect(offered("completion", "").sort()).toEqual(["bash", "fish", "zsh"]);
  expect(offered("usage", "--by", "")).toEqual([...USAGE_GROUPS]);
  expect(offered("usage", "--by", "=", "ag")).toEqual(["agent"]);
  expect(offered("usage", "--by", "=")).toEqual([...USAGE_GROUPS]);
  expect(offered("usage", "--by", "=", "agent", "--da")).toEqual(["--days"]);
  expect(offered("send", "--wait", "")).toEqual([]);
});

test("completion suggests files for a file argument, also if their names contain spaces", () => {
  expect(offered("--config", "my")).toEqual(["my backup.sqlite"]);
  expect(offered("store", "restore", "my")).toEqual(["my backup.sqlite"]);
  expect(offered("node", "run", "--cwd", "su")).toEqual(["sub"]);
  expect(offered("agents", "my")).toEqual([]);
});

test("completion does not execute shell code in the typed words, and suggests nothing for it", () => {
  expect(offered("$(touch touched)", "`touch touched`", "x")).toEqual([]);
  expect(offered("sessions", "*", "")).toEqual(offered("sessions", ""));
  const { stdout } = spawnSync("ls", [join(home, "files")], { encoding: "utf8" });
  expect(stdout).not.toContain("touched");
});

test("an unknown shell is a usage error; --json prints the script inside a document", async () => {
  expect(await run(home, ["completion", "tcsh"])).toMatchObject({ code: 2, out: "" });
  const { out } = await run(home, ["--json", "completion", "bash"]);
  expect(JSON.parse(out)).toEqual({ ok: true, shell: "bash", script: script("bash") });
});

// Skipped without zsh, because only zsh can parse this script.
test.skipIf(lacks("zsh"))("zsh accepts its completion script, and suggests the same words as bash", () => {
  const ask = `autoload -U compinit; compinit -D 2>/dev/null; ${script("zsh")}
_parley_look usage --by; print -r -- $offers; _parley_look service; print -r -- $offers`;
  const { stdout, stderr } = spawnSync("zsh", ["-f", "-c", ask], { encoding: "utf8" });
  expect(stderr).toBe("");
  expect(stdout).toBe(`${USAGE_GROUPS.join(" ")}\ninstall uninstall status\n`);
});

// Skipped without fish, because only fish can parse this script.
test.skipIf(lacks("fish"))(
  "fish accepts its completion script, and offers the same words as bash and zsh",
  () => {
    const ask = `${script("fish")}\ncomplete -C 'parley service '`;
    const { stdout, stderr } = spawnSync("fish", ["--no-config", "-c", ask], { encoding: "utf8" });
    expect(stderr).toBe("");
    expect(stdout.split("\n").map((line) => line.split("\t")[0])).toEqual(
      expect.arrayContaining(["install", "uninstall", "status"]),
    );
  },
);

test("the completion scripts for zsh and fish contain every command", () => {
  for (const name of offered("")) {
    expect(script("zsh")).toContain(`':${name}') at='${name}';;`);
    expect(script("fish")).toContain(`complete -c parley -n '__parley_at \\'\\'' -a '${name}' -d `);
  }
  expect(script("fish")).toContain("-l by -x -a 'agent ");
  expect(script("fish")).toContain("-n '__parley_at \\'store restore\\'' -F");
});
