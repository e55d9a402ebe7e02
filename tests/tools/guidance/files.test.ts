// Instruction files and skills: which files count, in which order, and within which limits.

import { execFileSync } from "node:child_process";
import { chownSync, mkdirSync, realpathSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { guidanceReach } from "../../../src/core/rules/prompt/guidance.ts";
import { frontMatter, GuidanceFiles } from "../../../src/tools/guidance/guidance.ts";
import { temporaryFolder } from "../../kit/cleanup.ts";
import { lacks } from "../../kit/process/lacks.ts";
import { agentSettings, MAIN_CHAIN, settingsWith } from "../app.ts";

const EVERYTHING = { outside: true };
const CONTAINED = { outside: false };

function put(path: string, text: string | Buffer): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

/** Makes a home with a workspace two folders below it. */
function makeHome() {
  // Other tests may use the folder above the temporary one, so the home is two below.
  const home = join(realpathSync(temporaryFolder()), "people", "ada");
  const workspace = join(home, "projects", "tea");
  mkdirSync(workspace, { recursive: true });
  const reader = new GuidanceFiles({ now: () => Date.now(), home });
  const agent = { workspace, instructionFiles: true, skills: true };
  return { home, workspace, agent, reader, read: (reach = EVERYTHING) => reader.forAgent(agent, reach) };
}

const skill = (name: string, description = `How to ${name}.`) =>
  `---\nname: ${name}\ndescription: ${description}\n---\nThe body of ${name}.\n`;

test("files of the workspace and the folders above it are used, CLAUDE.md only where AGENTS.md is missing", async () => {
  const { home, workspace, read } = makeHome();
  put(join(dirname(home), "AGENTS.md"), "above the home");
  put(join(home, "AGENTS.md"), "home\n");
  put(join(home, "projects", "CLAUDE.md"), "projects");
  put(join(workspace, "AGENTS.md"), "tea");
  put(join(workspace, "CLAUDE.md"), "not this");
  const { files } = await read();
  expect(files).toEqual([
    { path: join(home, "AGENTS.md"), text: "home" },
    { path: join(home, "projects", "CLAUDE.md"), text: "projects" },
    { path: join(workspace, "AGENTS.md"), text: "tea" },
  ]);
});

test("a workspace's files about the agent and its person follow its AGENTS.md; above it only AGENTS.md counts", async () => {
  const { home, workspace, read } = makeHome();
  put(join(home, "projects", "SOUL.md"), "of another place");
  put(join(home, "projects", "AGENTS.md"), "projects");
  for (const name of ["USER.md", "TOOLS.md", "SOUL.md", "AGENTS.md", "IDENTITY.md"])
    put(join(workspace, name), name);
  put(join(workspace, "skills", "brew", "SKILL.md"), skill("brew"));
  const { files, skills } = await read();
  const order = ["projects", "AGENTS.md", "SOUL.md", "IDENTITY.md", "USER.md", "TOOLS.md"];
  expect(files.map(({ text }) => text)).toEqual(order);
  expect(skills.map(({ name }) => name)).toEqual(["brew"]);
});

test("GU1: the search ends at the root of a repository", async () => {
  const { home, workspace, read } = makeHome();
  put(join(home, "AGENTS.md"), "home");
  put(join(home, "projects", "AGENTS.md"), "projects");
  put(join(workspace, "AGENTS.md"), "tea");
  mkdirSync(join(home, "projects", ".git"));
  expect((await read()).files.map(({ text }) => text)).toEqual(["projects", "tea"]);
});

const noRoot = lacks("root", process.getuid?.() === 0);

// Only root can give a file to another user.
test.skipIf(noRoot)("GU1: a file of another user above the workspace is not used", async () => {
  const { home, workspace, read } = makeHome();
  put(join(home, "projects", "AGENTS.md"), "a trap");
  put(join(workspace, "AGENTS.md"), "tea");
  chownSync(join(home, "projects", "AGENTS.md"), 12_345, 12_345);
  const { files, skipped } = await read();
  expect(files.map(({ text }) => text)).toEqual(["tea"]);
  expect(skipped).toEqual([{ path: join(home, "projects", "AGENTS.md"), why: "belongs to another user" }]);
});

// Only root can give a file to another user.
test.skipIf(noRoot)(
  "GU1: a file that counts in one agent's workspace does not count above the workspace of another user's agent",
  async () => {
    const { home, agent } = makeHome();
    // The files are old enough to be cached.
    const reader = new GuidanceFiles({ now: () => Date.now() + 60_000, home });
    const outer = { ...agent, workspace: join(home, "projects") };
    put(join(outer.workspace, "AGENTS.md"), "a trap");
    chownSync(join(outer.workspace, "AGENTS.md"), 12_345, 12_345);
    expect((await reader.forAgent(outer, EVERYTHING)).files).toHaveLength(1);
    expect((await reader.forAgent(agent, EVERYTHING)).files).toEqual([]);
  },
);

test("GU2: a long file is cut between two characters, and files above the common limit are left out, the farthest first", async () => {
  const { home, workspace, read } = makeHome();
  put(join(workspace, "AGENTS.md"), `x${"é".repeat(20_000)}`);
  put(join(home, "projects", "AGENTS.md"), "y".repeat(32_768));
  put(join(home, "AGENTS.md"), "z".repeat(1_000));
  const { files, skipped } = await read();
  expect(files.map(({ text, cutFromBytes }) => [text[0], Buffer.byteLength(text), cutFromBytes])).toEqual([
    ["y", 32_768, undefined],
    ["x", 32_767, 40_001],
  ]);
  expect(files[1]?.text).not.toContain("\ufffd");
  expect(skipped).toEqual([
    { path: join(home, "AGENTS.md"), why: expect.stringContaining("limit of 65536") },
  ]);
});

test("a link may not leave its folder; a folder, a pipe and bytes that are not text are skipped with a reason", async () => {
  const { home, workspace, read } = makeHome();
  put(join(home, "secret"), "velvet");
  symlinkSync(join(home, "secret"), join(workspace, "AGENTS.md"));
  expect(await read()).toMatchObject({ files: [], skipped: [{ why: expect.stringContaining("leaves") }] });
  rmSync(join(workspace, "AGENTS.md"));
  put(join(workspace, "CLAUDE.md"), "shared");
  symlinkSync("CLAUDE.md", join(workspace, "AGENTS.md"));
  expect((await read()).files.map(({ text }) => text)).toEqual(["shared"]);
  for (const make of [
    (path: string) => mkdirSync(path),
    (path: string) => execFileSync("mkfifo", [path]),
    (path: string) => writeFileSync(path, Buffer.from([1, 0, 2])),
    (path: string) => symlinkSync("nowhere", path),
  ]) {
    rmSync(join(workspace, "AGENTS.md"), { recursive: true });
    make(join(workspace, "AGENTS.md"));
    const found = await read();
    expect(found).toMatchObject({ files: [], skipped: [{ path: join(workspace, "AGENTS.md") }] });
  }
});

test("G1: a sandboxed session gets only files and skills of its workspace", async () => {
  const { home, workspace, read } = makeHome();
  put(join(home, "AGENTS.md"), "home");
  put(join(workspace, "AGENTS.md"), "tea");
  put(join(home, ".parley/skills/far/SKILL.md"), skill("far"));
  put(join(workspace, ".agents/skills/near/SKILL.md"), skill("near"));
  const { files, skills } = await read(CONTAINED);
  expect(files.map(({ text }) => text)).toEqual(["tea"]);
  expect(skills.map(({ name }) => name)).toEqual(["near"]);
  const boxed = { ...agentSettings("main").sandbox, mode: "all" as const };
  const settings = settingsWith({ agents: [agentSettings("main", { sandbox: boxed })] });
  expect(guidanceReach(MAIN_CHAIN, settings)).toEqual(CONTAINED);
});

test("the main session of an agent whose other sessions are sandboxed gets the files and skills of the workspace", async () => {
  const { home, workspace, reader, agent } = makeHome();
  put(join(home, "AGENTS.md"), "home");
  put(join(workspace, "AGENTS.md"), "tea");
  put(join(workspace, ".claude/skills/brew/SKILL.md"), skill("brew"));
  const sandbox = { ...agentSettings("main").sandbox, mode: "non-main" as const };
  const settings = settingsWith({ agents: [agentSettings("main", { workspace, sandbox })] });
  const { files, skills } = await reader.forAgent(agent, guidanceReach(MAIN_CHAIN, settings));
  expect(files.map(({ text }) => text)).toEqual(["home", "tea"]);
  expect(skills.map(({ name }) => name)).toEqual(["brew"]);
});

test("SC1: a change is seen by the next run, also one in the same moment and of the same size", async () => {
  const { home, workspace, agent } = makeHome();
  const path = join(workspace, "AGENTS.md");
  let now = Date.now();
  const reader = new GuidanceFiles({ now: () => now, home });
  const texts = async () => (await reader.forAgent(agent, EVERYTHING)).files.map(({ text }) => text);
  put(path, "one");
  const same = new Date(now - 60_000);
  utimesSync(path, same, same);
  expect(await texts()).toEqual(["one"]);
  // The file changed a moment ago, so nothing was cached.
  put(path, "two");
  utimesSync(path, same, same);
  expect(await texts()).toEqual(["two"]);
  now += 10_000_000;
  expect(await texts()).toEqual(["two"]);
  put(path, "three");
  expect(await texts()).toEqual(["three"]);
  rmSync(path);
  expect(await texts()).toEqual([]);
});

test("skills are found in three folders, the nearest of two with one name counts, and a bad one is skipped with a reason", async () => {
  const { home, workspace, reader, read } = makeHome();
  put(join(workspace, ".agents/skills/brew/SKILL.md"), skill("brew", "near"));
  put(join(workspace, ".claude/skills/pour/SKILL.md"), skill("pour"));
  put(join(home, ".parley/skills/brew/SKILL.md"), skill("brew", "far"));
  put(join(home, ".parley/skills/clean/SKILL.md"), skill("clean"));
  put(join(home, ".parley/skills/dull/SKILL.md"), "no front matter");
  put(join(home, ".parley/skills/notes.txt"), "not a folder");
  const { skills, skipped } = await read();
  expect(skills.map(({ name, description }) => [name, description])).toEqual([
    ["brew", "near"],
    ["pour", "How to pour."],
    ["clean", "How to clean."],
  ]);
  expect(skipped.map(({ why }) => why)).toEqual([
    'another skill has the name "brew"',
    "has no description in its front matter",
  ]);
  const [first] = skills;
  if (first === undefined) throw new Error("no skill");
  expect(await reader.skillText(first)).toMatchObject({ value: { text: skill("brew", "near"), cut: false } });
  symlinkSync(join(home, ".parley/skills/clean"), join(workspace, ".agents/skills/out"));
  expect((await read()).skipped.map(({ why }) => why)).toContainEqual(expect.stringContaining("leaves"));
});

test.each([
  ["---\nname: a\ndescription: plain: text\n---\n", { name: "a", description: "plain: text" }],
  ["---\r\nname: 'a'\r\ndescription: \"b\"\r\n---\r\n", { name: "a", description: "b" }],
  ["---\ndescription: >-\n  one\n  two\nlicense: MIT\n---\n", { description: "one two", license: "MIT" }],
  ["---\ndescription: one\n  two\nmetadata:\n  x: y\n---\n", { description: "one two", metadata: "x: y" }],
  ["name: a\n", undefined],
  ["---\nname: a\n", undefined],
])("front matter of %j", (text, fields) => {
  const found = frontMatter(text);
  expect(found && Object.fromEntries(found)).toEqual(fields);
});
