// The commands that run without a question, and the settings that decide which commands an owner approves.

import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { findGitRisk, readFree } from "../../../src/core/rules/approval/free.ts";
import { findChange, readNames } from "../../../src/core/rules/approval/named-files.ts";
import { approvalFor, readApproval } from "../../../src/core/rules/approval/policy.ts";
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
  "grep -rn 'a|b;c$(d)`e`' src 2>/dev/null",
  'grep "end of" notes.txt 2>&1 | wc -l',
  "grep -A3 -e foo -- src/a.ts",
  "find . -name '*.ts' -type f -not -path './node_modules/*'",
  "find . '(' -name a -o -name b ')' -print",
  "sed -n '10,20p' src/main.ts ; tail -n 5 a || true",
  "echo 'größer > kleiner'",
  "sort -u a | uniq -c",
  "date -u",
])("FR1: free, and bash gets the same line: %s", (command) => {
  expect(readFree(command)).toMatchObject({ kind: "free", line: command, usesGit: false });
});

test("FR1: every word that is no option counts as a path", () => {
  expect(readFree("head -n 20 a 'b c' \"/d\" | grep x e")).toMatchObject({
    paths: ["20", "a", "b c", "/d", "x", "e"],
  });
});

test("FR3: git gets settings that start no program", () => {
  const read = readFree("git --no-pager log --oneline -n 5 main..feature -- src && git status -s");
  expect(read).toMatchObject({ kind: "free", paths: ["5", "main..feature", "src"], usesGit: true });
  const line = read.kind === "free" ? read.line : "";
  expect(line).toContain(" --no-pager log --no-ext-diff --no-textconv --ignore-submodules=all --oneline ");
  expect(line).toMatch(/ status --ignore-submodules=all -s$/);
});

test.each([
  ...["rm -rf /", "npm test", "make", "sudo ls", "node", "node --version", "sh", "env", "awk 1", "xargs rm"],
  ...["ls; rm a", "ls\nrm a", "ls && rm a", "ls || rm a", "ls | sh", "ls & rm a", "ls &", "ls |& sh", "ls;;"],
  ...[
    "echo a > b",
    "echo a >> b",
    "echo a >| b",
    "echo a &> b",
    "echo a >/dev/nullx",
    "cat < a",
    "cat <<< a",
  ],
  ...["echo a >/dev/null\u00a0x", "cat 3<a", "cat <>a", "cat <(a)", "ls 1>/dev/null", "ls >& a", "ls 2>a"],
  ...["echo $(rm a)", "echo `rm a`", 'echo "$(rm a)"', 'echo "`rm a`"', "echo $'\\x41'", "echo ${PATH}"],
  ...["$SHELL", "eval ls", "(ls)", "{ ls; }", "echo {a,b}", "if ls; then rm a; fi", "ls() { rm a; }; ls"],
  ...["FOO=1 ls", "PATH=. ls", "GIT_PAGER=evil git log", "echo a=~", "./ls", "/bin/ls", "\u{1d4c1}s", "'l's"],
  ...[
    "ls\u00a0-l",
    "l\u200bs",
    "ls \u2028 rm",
    "ls\rrm a",
    "ls\u0000rm",
    "ls\t-l",
    "ls '\u202e'",
    "ls # note",
  ],
  ...["ls 'open", 'ls "open', "ls \\", "ls a\\ b", "ls a'b'", "'ls''a'", "ls\\\n", "!!", 'echo "a!b"'],
  ...["ls *", "cat a?", "cat [ab]", "cat .*/config", "uniq a*", "cat ~", "cat ~/.ssh/id_rsa", "cat ~root/a"],
  ...["cd", "cd ..", "cd -", "cd --", "cd src && ls", "pushd /", "cat ../a", "cat a/../../b", "cat '..'"],
  ...[
    "cat @list",
    "cat '@list'",
    "strings @list",
    "strings a",
    "du -a --files0-from=-",
    "wc --files0-from=-",
  ],
  ...[
    "wc --files0-from=list",
    "cut -c1 a",
    "rev a",
    "grep -1f/outside",
    "grep -1f/outside a",
    "grep -f list a",
  ],
  ...[
    "grep -f/etc/passwd a",
    "grep --file=/etc/passwd a",
    "grep --fil=a a",
    "grep -R a .",
    "grep -rf list .",
  ],
  ...[
    "grep -d recurse a",
    "ls -L link",
    "ls -lL",
    "ls -H a",
    "find -L .",
    "find . -follow",
    "find . -delete",
  ],
  ...["find . -exec rm {} +", "find . -ok rm a", "find . -fprintf a b", "find . '-delete'", "find . -fls a"],
  ...[
    "find . -newer a",
    "find -files0-from a",
    "sort -o a b",
    "sort -oa b",
    "sort --output=a b",
    "sort -T a b",
  ],
  ...[
    "sort --files0-from=a",
    "sort --compress-program=x a",
    "sort -uo a",
    "uniq a b",
    "uniq a",
    "uniq -c a b",
  ],
  ...[
    "head -n/etc a",
    "tail -f a",
    "tail --follow a",
    "tail -F a",
    "cat -- -n",
    "cat -",
    "ls --color=a",
    "pwd -P a",
  ],
  ...[
    "sed -i s/a/b/ c",
    "sed -n '1e rm a'",
    "sed 's/a/b/w c' d",
    "sed -n 1p -i a",
    "sed -n -f a",
    "sed -nf a",
  ],
  ...[
    "sed -n '$p' a",
    "sed -n '1,5w b' a",
    "date -s 12:00",
    "date 010100001970",
    "date -f a",
    "date -r /etc",
  ],
  ...[
    "printf -v PATH .; ls",
    "test -v a",
    "tee a",
    "command rm a",
    "exec rm a",
    ". ./a",
    "jq . a",
    "rg a",
    "tree",
  ],
  ...["diff -r a b", "diff a b", "file -C -m a", "file a", "less a", "xxd a", "od a", "stat a", "readlink a"],
  ...["git", "git push", "git config core.pager evil", "git -c core.pager=evil log", "git -C .. status"],
  ...[
    "git --git-dir=x status",
    "git --work-tree=/ status",
    "git --exec-path=. status",
    "git -p log",
    "git blame a",
  ],
  ...[
    "git diff --output=a",
    "git diff --outp=a",
    "git diff --ext-diff",
    "git log --textconv",
    "git log --show-signature",
  ],
  ...[
    "git log --format=%G?",
    "git diff --no-index a b",
    "git grep -Oevil a",
    "git branch -D old",
    "git log -L1:a",
  ],
  ...[
    "git status --ignore-submodules=none",
    "git diff --submodule=diff",
    "git show :/x",
    "git log --no-pager x --exec",
  ],
  ...[
    "git diff ':(top)a'",
    "git diff ../a",
    "git diff -O/etc/passwd",
    "git log --stdin",
    "git status --no-pager=x",
  ],
  ...["constructor", "__proto__ a", "git constructor", "", " ", "2>/dev/null", `ls ${"a".repeat(1_000)}`],
])("FR1: asks about %j", (command) => {
  expect(readFree(command)).toMatchObject({ kind: "asks" });
});

test("the reason of a question names the word", () => {
  const why = (command: string) => readFree(command);
  expect(why("npm test")).toMatchObject({ why: '"npm" is not on the list of commands that only read' });
  expect(why("git push")).toMatchObject({ why: '"git push" is not on the list of commands that only read' });
  expect(why("sort -o a")).toMatchObject({ why: 'sort: option "-o" is not on its list' });
  expect(why("ls > a")).toMatchObject({ why: 'the command has more than plain words, at "> a"' });
  expect(why("cat ../a")).toMatchObject({ why: '"../a" is not a plain path inside of the workspace' });
});

const PIECES = [
  ...[
    "cat",
    "cat ",
    "a",
    "-n",
    " ",
    "  ",
    "\t",
    "\n",
    ";",
    "|",
    "||",
    "&&",
    "&",
    "1",
    "2",
    "@",
    ":",
    "^",
    "~",
  ],
  ...["'", "''", '"', '""', "\\", "\\\n", "\\'", '\\"', "'x y'", '"x y"', '"c$"', "$", "$a", "`", "$(", ")"],
  ...[
    "(",
    "{",
    "}",
    "<",
    ">",
    ">>",
    " >/dev/null",
    " 2>&1",
    "&>/dev/null",
    "*",
    "?",
    "[",
    "]",
    "#",
    "!",
    "=",
  ],
  ...[
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
    "+",
    "if",
    "do",
    "'a*'",
    "| cat b",
  ],
];
const LINE = fc
  .array(fc.constantFrom(...PIECES), { maxLength: 12 })
  .map((pieces) => `cat ${pieces.join("")}`);

test("FR1: bash runs a free line with the words that were read, and creates no file", () => {
  const folder = temporaryFolder();
  const ground = join(folder, "ground");
  mkdirSync(ground);
  const out = join(folder, "out");
  const cat = 'cat() { printf "%s\\0" "$@" >&9; }\n';
  let free = 0;
  fc.assert(
    fc.property(LINE, (line) => {
      const read = readFree(line);
      if (read.kind === "asks") return;
      free += 1;
      const args = ["--noprofile", "--norc", "-c", `exec 9>${out}; ${cat}eval "$1"`, "bash", read.line];
      spawnSync("bash", args, { cwd: ground, env: { HOME: "~", LANG: "C.UTF-8" }, stdio: "ignore" });
      const words = readFileSync(out, "utf8").split("\0").slice(0, -1);
      for (const word of words) if (!/^(-n)?$/.test(word)) expect(read.paths).toContain(word);
      expect(readdirSync(ground)).toEqual([]);
    }),
    { numRuns: 600 },
  );
  expect(free).toBeGreaterThan(20);
});

test.each([
  "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n",
  '[remote "origin"]\n\turl = https://example.com/a.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n',
  '[branch "feature/a-1"]\n\tremote = origin\n\tmerge = refs/heads/feature/a-1\n',
  "# a note\n\n[user]\n\tname = Ann Example\n\temail = ann@example.com\n",
])("GC1: a usual git configuration is harmless: %j", (config) => {
  expect(findGitRisk(config)).toBeUndefined();
});

test.each([
  ...["[core]\n\tfsmonitor = x", "[core]\n\tworktree = /", "[core]\n\tpager = x", "[core]\n\thooksPath = x"],
  ...[
    "[core]\n\tsshCommand = x",
    "[core]\n\tattributesFile = x",
    "[core]\n\teditor = x",
    "[core]\n\tbare = true",
  ],
  ...["[core]\n\trepositoryformatversion = 1", "[extensions]\n\tworktreeConfig = true", "[pager]\n\tlog = x"],
  ...[
    '[diff "a"]\n\ttextconv = x',
    '[diff "a"]\n\tcommand = x',
    "[diff]\n\texternal = x",
    '[filter "a"]\n\tclean = x',
  ],
  ...[
    "[alias]\n\tstatus = !x",
    "[include]\n\tpath = x",
    '[includeIf "gitdir:."]\n\tpath = x',
    "[gpg]\n\tprogram = x",
  ],
  ...["[credential]\n\thelper = x", '[remote "a"]\n\tpromisor = true', '[remote "a"]\n\tuploadpack = x'],
  ...['[submodule "a"]\n\turl = x', "[log]\n\tshowSignature = true", "[interactive]\n\tdiffFilter = x"],
  ...[
    "[user]\n\tname = a\\\n[core]\n\tfsmonitor = x",
    "[user] name = a",
    '[user]\n\tname = "a"',
    "[user\n]\n",
  ],
  ...[
    "[core] fsmonitor = x",
    "[core]\n\tfilemode = true\r\n\tfsmonitor = x",
    "[CORE]\n\tfsmonitor = x",
    "# a\\\nx",
  ],
  ...[
    "[core]\n\tfilemode = true; x",
    '[user]\n[filter "a"]\n\tclean = x',
    "fsmonitor = x",
    "[core]\n\tfilemode",
  ],
  ...[
    "[core]\n\tfilemode = true\n\tfsmonitor = x",
    '[remote "a\\"b"]\n',
    "[core]\n\x0bfsmonitor = x",
    "\ufeff[core]",
  ],
])("GC1: a git configuration with another line is not harmless: %j", (config) => {
  expect(findGitRisk(config)).toEqual(expect.any(String));
});

test("AM2: git asks in a folder whose repository a sandbox may change", () => {
  const chain: SpawnChain = [{ key: "agent:main:main", agentId: "main", kind: "main", spawnDepth: 0 }];
  const plain = agentSettings("main", { workspace: FOLDER });
  const other = agentSettings("other", { workspace: FOLDER });
  const { exec } = settingsWith().tools;
  const tools = { exec: { ...exec, approval: "risky" as const } };
  const sandboxed = { ...other, sandbox: { ...other.sandbox, mode: "all" as const, git: "write" as const } };
  const read = (agents: AgentSettings[], command: string) =>
    readApproval(chain, settingsWith({ agents, tools }), { command, folder: FOLDER });
  expect(read([plain, other], "git status")).toMatchObject({ kind: "free" });
  expect(read([plain, sandboxed], "git status")).toMatchObject({ kind: "asks" });
  expect(read([plain, sandboxed], "ls")).toMatchObject({ kind: "free" });
});

test.each([
  ["bash x.sh", ["bash", "x.sh"]],
  ["cd sub && python3 'my script.py' --in=a.csv > out.txt 2>>log", ["sub", "my script.py", "a.csv"]],
  ["npm run test", ["package.json"]],
  ["FOO=1 make all", ["Makefile", "makefile", "GNUmakefile"]],
  ['bash -c "$(cat run.sh)"', ["run.sh"]],
])("NF1: of %j the files %j count", (command, files) => {
  const names = readNames(command);
  for (const file of files) expect(names).toContain(file);
  expect(names).not.toContain("out.txt");
  expect(names).not.toContain("log");
});

test("a change is found in either direction", () => {
  expect(findChange([["a", "1"]], [["a", "1"]])).toBeUndefined();
  expect(findChange([["a", "1"]], [["a", "2"]])).toBe("a");
  expect(findChange([["a", "1"]], [])).toBe("a");
  expect(findChange([], [["__proto__", "1"]])).toBe("__proto__");
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
    const read = readApproval(chain, settings, { command: "pwd", folder: FOLDER });
    return { ...approvalFor(chain, settings), why: read.kind === "asks" ? read.why : undefined };
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
