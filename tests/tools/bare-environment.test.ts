// Start-up files in a workspace. An ordinary shell whose home is the workspace executes them, but a bare exec
// does not.

import { execFileSync, spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { execTool } from "../../src/tools/exec.ts";
import { type ToolResult, toolResult } from "../../src/tools/tool.ts";
import { agentSettings, MAIN_CHAIN, settingsWith } from "./app.ts";

let folder: string;
let workspace: string;
let state: string;

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "parley-bare-")));
  workspace = join(folder, "workspace");
  state = join(folder, "state");
  mkdirSync(workspace);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function exec(command: string): Promise<ToolResult> {
  const { tools, store, ...settings } = settingsWith();
  const limits = { ...tools.exec, timeoutSeconds: 60, maxOutputBytes: 20_000 };
  const ctx = {
    agent: agentSettings("main", { workspace }),
    chain: MAIN_CHAIN,
    settings: { ...settings, store: { ...store, dir: state }, tools: { ...tools, exec: limits } },
    signal: new AbortController().signal,
    engine: { now: () => Date.now(), commit: (): Promise<never> => Promise.reject(new Error("no store")) },
  };
  const call = { callId: "c", attempt: 1, name: "exec", arguments: { command } };
  return toolResult(await execTool.execute(ctx, { command }, call));
}

const isThere = (program: string): boolean => spawnSync("which", [program]).status === 0;
const git = (...args: string[]): void => void execFileSync("git", args, { cwd: workspace, stdio: "pipe" });

/** Files by their path in the workspace. MARK stands for a command that creates a marker file. */
type Files = Readonly<Record<string, string>>;

interface Plant {
  readonly name: string;
  readonly program: string;
  readonly files: Files;
  /** Whether the workspace is a repository with one commit. */
  readonly repository?: true;
  readonly command: string;
}

const MARK = "touch WORKSPACE/mark; true";
const PYTHON = "import pathlib; pathlib.Path('WORKSPACE/mark').touch()";
const EVIL = { evil: `#!/bin/sh\n${MARK}\n` };
const version = spawnSync("python3", ["-c", "import sys; print('%d.%d' % sys.version_info[:2])"], {
  encoding: "utf8",
}).stdout?.trim();

const repositoryWith = (config: string): Pick<Plant, "repository" | "files" | "program"> => ({
  program: "git",
  repository: true,
  files: { ...EVIL, "hooks/pre-commit": `#!/bin/sh\n${MARK}\n`, ".git/extra": config },
});
const COMMIT = "git -c user.name=n -c user.email=a@b commit --allow-empty -q -m x";

const plants: readonly Plant[] = [
  {
    name: ".gitconfig",
    program: "git",
    repository: true,
    files: { ...EVIL, ".gitconfig": "[core]\nfsmonitor = WORKSPACE/evil\n" },
    command: "git status",
  },
  {
    name: ".config/git/config",
    program: "git",
    repository: true,
    files: { ...EVIL, ".config/git/config": "[core]\nfsmonitor = WORKSPACE/evil\n" },
    command: "git status",
  },
  { name: "core.fsmonitor", ...repositoryWith("[core]\nfsmonitor = WORKSPACE/evil"), command: "git status" },
  { name: "core.hooksPath", ...repositoryWith("[core]\nhooksPath = hooks"), command: COMMIT },
  {
    name: "core.editor",
    ...repositoryWith("[core]\neditor = WORKSPACE/evil"),
    command: "git -c user.name=n -c user.email=a@b commit --allow-empty",
  },
  {
    name: "core.sshCommand",
    ...repositoryWith("[core]\nsshCommand = WORKSPACE/evil"),
    command: "git ls-remote ssh://127.0.0.1:1/x",
  },
  {
    name: "gpg.program",
    ...repositoryWith("[commit]\ngpgSign = true\n[gpg]\nprogram = WORKSPACE/evil"),
    command: COMMIT,
  },
  {
    name: "credential.helper",
    ...repositoryWith("[credential]\nhelper = !WORKSPACE/evil"),
    command: "echo url=https://example.org | git credential fill",
  },
  {
    name: "ext:: transport",
    ...repositoryWith('[protocol "ext"]\nallow = always'),
    command: "git ls-remote 'ext::WORKSPACE/evil'",
  },
  {
    name: "a hook in .git/hooks",
    program: "git",
    repository: true,
    files: { ".git/hooks/pre-commit": `#!/bin/sh\n${MARK}\n` },
    command: COMMIT,
  },
  {
    name: "a bare repository in a folder",
    program: "git",
    files: {
      ...EVIL,
      "src/HEAD": "ref: refs/heads/main\n",
      "src/config": "[core]\nbare = true\n[alias]\nst = !WORKSPACE/evil\n",
      "src/objects/x": "",
      "src/refs/x": "",
    },
    command: "cd src && git st",
  },
  {
    name: "usercustomize.py of the home",
    program: "python3",
    files: { [`.local/lib/python${version}/site-packages/usercustomize.py`]: PYTHON },
    command: "python3 -c 0",
  },
  {
    name: "a .pth file of the home",
    program: "python3",
    files: { [`.local/lib/python${version}/site-packages/x.pth`]: `${PYTHON}\n` },
    command: "python3 -c 0",
  },
  {
    name: ".npmrc of the project: script-shell",
    program: "npm",
    files: { ...EVIL, ".npmrc": "script-shell=WORKSPACE/evil\n", "package.json": '{"scripts":{"x":"true"}}' },
    command: "npm run x",
  },
  {
    name: ".npmrc of the project: node-options",
    program: "npm",
    files: {
      "evil.js": 'require("fs").writeFileSync("WORKSPACE/mark", "")',
      ".npmrc": "node-options=--require WORKSPACE/evil.js\n",
      "package.json": `{"scripts":{"x":"${process.execPath} -e 0"}}`,
    },
    command: "npm run x",
  },
  ...[".bashrc", ".profile", ".bash_profile"].map((name) => ({
    name,
    program: "bash",
    files: { [name]: `${MARK}\n` },
    command: name === ".bashrc" ? "bash -ic true" : "bash -lc true",
  })),
  { name: ".zshenv", program: "zsh", files: { ".zshenv": `${MARK}\n` }, command: "zsh -c true" },
  {
    name: "config.fish",
    program: "fish",
    files: { ".config/fish/config.fish": `${MARK}\n` },
    command: "fish -c true",
  },
];

function put(plant: Plant): void {
  if (plant.repository) {
    git("init", "-q", "-b", "main");
    git("-c", "user.name=n", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "one");
    git("config", "include.path", "extra");
  }
  for (const [path, text] of Object.entries(plant.files)) {
    mkdirSync(dirname(join(workspace, path)), { recursive: true });
    writeFileSync(join(workspace, path), text.replaceAll("WORKSPACE", workspace));
    chmodSync(join(workspace, path), 0o755);
  }
}

// Programs that are not installed on this machine are skipped.
const present = plants.filter(({ program }) => isThere(program));
test.each(present)("BE1, BE2: exec ignores the start-up files in a workspace: $name", async (plant) => {
  put(plant);
  const command = plant.command.replaceAll("WORKSPACE", workspace);
  const mark = join(workspace, "mark");
  spawnSync("bash", ["-c", command], {
    cwd: workspace,
    env: { PATH: process.env.PATH, HOME: workspace, LANG: "C.UTF-8", TERM: "dumb" },
  });
  expect(existsSync(mark)).toBe(true);
  rmSync(mark);
  const result = await exec(command);
  expect(result.status).toBe("ok");
  expect(existsSync(mark), String(result.output)).toBe(false);
});

test("BE1: the bare commands of each agent have their own home in the state folder, accessible to its owner only", async () => {
  const seen = await exec('printf "%s\\n" "$HOME" "$TMPDIR"; touch ~/kept "$TMPDIR/x"');
  const home = join(state, "homes", "main");
  expect(seen).toMatchObject({ exitCode: 0, output: `${home}\n${home}/tmp\n` });
  for (const path of [home, join(home, "tmp")]) expect(statSync(path).mode & 0o777).toBe(0o700);
  expect(existsSync(join(home, "kept"))).toBe(true);
});
