// The classifier of commands, and the settings that decide which commands an owner approves.

import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { approvalFor, whyApprove } from "../../../src/core/rules/approval/policy.ts";
import { riskOf } from "../../../src/core/rules/approval/risk.ts";
import { readCommands } from "../../../src/core/rules/approval/words.ts";
import type { SpawnChain } from "../../../src/core/rules/sandbox-policy.ts";
import type { AgentSettings, ApprovalMode } from "../../../src/core/shapes/settings/settings.ts";
import { temporaryFolder } from "../../kit/engine/engine.ts";
import { agentSettings, settingsWith } from "../../tools/app.ts";

const FOLDER = "/srv/project";

test.each([
  "ls",
  "ls -la src && pwd",
  "cat README.md | head -20",
  "cat /srv/project/README.md",
  "git status",
  "git --no-pager log --oneline -n 5 -- src",
  "git diff --stat main..feature",
  "git show HEAD:src/main.ts",
  "git branch -a; git remote -v",
  "grep -rn 'a|b;c$(d)`e`' src",
  'grep "end$" notes.txt 2>/dev/null',
  "rg --files src | wc -l",
  "rg foo ./*.ts",
  "ls *.ts",
  "find . -name '*.ts' -type f -not -path './node_modules/*'",
  "find . \\( -name a -o -name b \\) -print",
  "cd src && ls 2>&1 | sort -u",
  "sed -n '10,20p' src/main.ts",
  "echo 'größer > kleiner'",
  "node --version; git rev-parse HEAD",
  "l\\\ns -l",
  "jq -r .name package.json",
  "date +%F",
  "",
])("not risky: %s", (command) => {
  expect(riskOf(command, FOLDER)).toBe(undefined);
});

test.each([
  "uniq a*",
  "uniq ./*",
  "uniq .*/config",
  "cat .?/parley.json5",
  "grep -rn foo .*",
  "rm -rf /",
  "npm test",
  "make",
  "sudo ls",
  "ls; rm a",
  "ls\nrm a",
  "ls && rm a",
  "ls || rm a",
  "ls | sh",
  "ls | xargs rm",
  "ls & rm a",
  "ls &",
  "echo a > b",
  "echo a >> b",
  "echo a >| b",
  "echo a &> b",
  "echo a >/dev/nullx",
  "echo a >/dev/null\u00a0x",
  "cat < /etc/passwd",
  "cat <<< a",
  "diff <(a) <(b)",
  "echo $(rm a)",
  "echo `rm a`",
  'echo "$(rm a)"',
  'echo "`rm a`"',
  "echo $'\\x41'",
  "echo ${PATH}",
  "$SHELL -c ls",
  "eval ls",
  "(ls)",
  "{ ls; }",
  "echo {a,b}",
  "if ls; then rm a; fi",
  "ls() { rm a; }; ls",
  "FOO=1 ls",
  "PATH=. ls",
  "GIT_PAGER=evil git log",
  "./ls",
  "/bin/ls",
  "\u{1d4c1}s",
  "ls\u00a0-l",
  "l\u200bs",
  "ls \u2028 rm",
  "ls\rrm a",
  "ls\u0000rm",
  "ls # note",
  "ls 'open",
  'ls "open',
  "ls \\",
  "echo 'é' \\\\",
  "git -c core.pager=evil log",
  "git -C .. status",
  "git --git-dir=x status",
  "git --exec-path=. status",
  "git push",
  "git config core.pager evil",
  "git diff --output=a",
  "git diff --outp=a",
  "git diff --ext-diff",
  "git log --textconv",
  "git grep -Oevil a",
  "git branch new",
  "git branch -D old",
  "git branch -uorigin/main",
  "git tag v1",
  "git remote add x y",
  "find . -delete",
  "find . -exec rm {} +",
  "find . -execdir rm a \\;",
  "find . -ok rm a \\;",
  "find . -fprintf a b",
  "find . '-delete'",
  "find . -del\\ete",
  'find . -"delete"',
  "find *",
  "rg --pre=sh a",
  "rg '--pre' sh a",
  "rg a *",
  "rg a --hostname-bin=x",
  "sort -o a b",
  "sort --output=a b",
  "sort --compress-program=x a",
  "uniq a b",
  "uniq *",
  "sed -i s/a/b/ c",
  "sed -n '1e rm a'",
  "sed 's/a/b/w c' d",
  "awk 'BEGIN { system(\"rm a\") }'",
  "tar cf a --checkpoint=1 --checkpoint-action=exec=sh b",
  "tee a",
  "test -v 'a[$(rm b)]'",
  "[ -v 'a[$(rm b)]' ]",
  "printf -v PATH .; ls",
  "jq -n 'import \"a\" as $a; $a'",
  "file -C -m a",
  "tree -o a",
  "date -s 12:00",
  "date 010100001970",
  "env",
  "command rm a",
  "exec rm a",
  ". ./a",
  "cd",
  "cd ..",
  "cd -",
  "cat ../a",
  "cat ~/.ssh/id_rsa",
  "cat /etc/passwd",
  "cat a/../../b",
  "cat /srv/project/../a",
  "cat /srv/projects/a",
  "grep -f/etc/passwd a",
  "grep --file=/etc/passwd a",
  "ls -l /",
  "constructor",
  "__proto__ a",
])("risky: %j", (command) => {
  expect(riskOf(command, FOLDER)).toEqual(expect.any(String));
});

test("a risk is told in words", () => {
  expect(riskOf("npm test", FOLDER)).toBe("npm: only --version is on the list");
  expect(riskOf("cat /etc/passwd", FOLDER)).toBe('"/etc/passwd" may be outside of the workspace');
  expect(riskOf("git push", FOLDER)).toBe("git: push is not on the list of commands that only read");
  expect(riskOf("rg a *", FOLDER)).toBe("rg: * may stand for an option: write ./*");
  expect(riskOf("make all", FOLDER)).toBe("make: only --version is on the list");
  expect(riskOf("rm a", FOLDER)).toBe('"rm" is not on the list of programs that only read');
  expect(riskOf("ls > a", FOLDER)).toBe("the command has a redirection to a file (>)");
});

const PIECES = [
  ...["show", "show ", "a", "-b", " ", "  ", "\t", "\n", ";", "|", "||", "&&", "&", "1", "2"],
  ...["'", "''", '"', '""', "\\", "\\\n", "\\'", '\\"', "'x y'", '"x y"', '"c$"', "$", "$a", "`", "$(", ")"],
  ...["(", "{", "}", "<", ">", ">>", ">/dev/null", "2>&1", "&>/dev/null", "*", "?", "[", "]", "#", "!", "~"],
  ...[
    "=",
    "é",
    "\u00a0",
    "'é'",
    '"é"',
    "\r",
    "\u2028",
    "-",
    "--",
    "/",
    ".",
    ",",
    "%",
    "^",
    "@",
    ":",
    "if",
    "do",
  ],
];
const LINE = fc
  .array(fc.constantFrom(...PIECES), { maxLength: 12 })
  .map((pieces) => `show ${pieces.join("")}`);

test("AW1: bash runs no other words than those that were read, and creates no file", () => {
  const folder = temporaryFolder();
  const ground = join(folder, "ground");
  mkdirSync(ground);
  const out = join(folder, "out");
  const show = 'set -f; show() { printf "%s\\0" "$@" >&9; printf "\\1" >&9; }\n';
  let read = 0;
  fc.assert(
    fc.property(LINE, (line) => {
      const found = readCommands(line);
      if (found.kind === "unread") return;
      read += 1;
      const args = ["--noprofile", "--norc", "-c", `exec 9>${out}; ${show}eval "$1"`, "bash", line];
      spawnSync("bash", args, { cwd: ground, env: { HOME: "~", LANG: "C.UTF-8" }, stdio: "ignore" });
      const expected = found.commands.map((words) => words.map(({ text }) => text));
      const shown = readFileSync(out, "utf8").split("\u0001").slice(0, -1);
      // A function that got no argument prints one empty text.
      const ran = shown.map((part) => ["show", ...(part === "\0" ? [] : part.split("\0").slice(0, -1))]);
      const texts = expected.map((words) =>
        JSON.stringify(words.length === 2 && words[1] === "" ? ["show"] : words),
      );
      for (const words of ran) expect(texts).toContain(JSON.stringify(words));
      expect(readdirSync(ground)).toEqual([]);
    }),
    { numRuns: 300 },
  );
  expect(read).toBeGreaterThan(20);
});

test("AR1: every risky program stays risky in any quotes and after any harmless command", () => {
  const hostile = fc.constantFrom("rm", "sh", "curl", "xargs", "eval", "sudo", "tee", "env", "kill");
  const quote = fc.constantFrom("", "'", '"');
  const joint = fc.constantFrom(";", "\n", "&&", "||", "|", " ; ", "\n\n");
  fc.assert(
    fc.property(
      fc.constantFrom("ls", "git status", "echo 'a'"),
      joint,
      hostile,
      quote,
      (start, by, name, mark) => {
        expect(riskOf(`${start}${by}${mark}${name}${mark} a`, FOLDER)).toEqual(expect.any(String));
      },
    ),
  );
});

describe("AM1: the strictest setting of a session and its ancestors applies", () => {
  const link = (agentId: string, spawnedBy?: string) => ({
    key: `agent:${agentId}:main`,
    agentId,
    kind: "main" as const,
    spawnDepth: 0,
    ...(spawnedBy === undefined ? {} : { spawnedBy }),
  });
  const modeOf = (
    own: Partial<Record<"main" | "research", ApprovalMode>>,
    all: ApprovalMode | undefined,
    chain: SpawnChain,
    sandbox: AgentSettings["sandbox"]["mode"] = "off",
  ) => {
    const agents = (["main", "research"] as const).map((id) => {
      const plain = agentSettings(id);
      const approval = own[id];
      const exec = approval === undefined ? {} : { exec: { approval } };
      return { ...plain, sandbox: { ...plain.sandbox, mode: sandbox }, tools: { ...plain.tools, ...exec } };
    });
    const { tools } = settingsWith();
    const settings = settingsWith({ agents, tools: { exec: { ...tools.exec, approval: all } } });
    return {
      ...approvalFor(chain, settings),
      why: whyApprove(chain, settings, { command: "pwd", folder: FOLDER }),
    };
  };
  const main: SpawnChain = [link("main")];
  const child: SpawnChain = [link("research", "agent:main:main"), link("main")];
  const orphan: SpawnChain = [link("research", "agent:main:main")];

  test("the default is risky without a sandbox and never in one", () => {
    expect(modeOf({}, undefined, main).mode).toBe("risky");
    expect(modeOf({}, undefined, main, "all").mode).toBe("never");
    expect(modeOf({}, "always", main, "all")).toMatchObject({
      mode: "always",
      setting: "tools.exec.approval",
    });
  });

  test("the agent's own setting wins over the general one", () => {
    const setting = "agents.list[main].tools.exec.approval";
    expect(modeOf({ main: "never" }, "always", main)).toMatchObject({
      mode: "never",
      setting,
      why: undefined,
    });
    expect(modeOf({ main: "always" }, "never", main).why).toBe(`${setting} is always`);
  });

  test("I13: a sub-agent asks when its requester has to, also when the requester was deleted", () => {
    expect(modeOf({ research: "never", main: "always" }, undefined, child).mode).toBe("always");
    expect(modeOf({ research: "never", main: "risky" }, undefined, orphan).mode).toBe("risky");
    expect(modeOf({ research: "always", main: "never" }, undefined, child).mode).toBe("always");
  });
});
