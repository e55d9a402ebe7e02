// Runs or checks the documents' examples: programs, and configuration files of other programs.

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { loadSettings } from "../../src/config.ts";
import { changeIn } from "../../src/features/replay/commands/changed.ts";
import { readEvaluation } from "../../src/features/replay/eval/file.ts";
import { cleanup, temporaryFolder } from "../kit/engine/engine.ts";
import { freePort } from "../kit/loopback.ts";
import { lacks } from "../kit/process/lacks.ts";
import { usageProblem } from "./command-words.ts";
import { Ground } from "./ground.ts";
import { checkScript } from "./left-out.ts";
import { inlineCommands, readPage } from "./page.ts";
import { PAGES, ROOT, readDocument } from "./pages.ts";
import { ownConfig } from "./scenes.ts";

const home = temporaryFolder;

/** Makes a folder for an example program from a document, in which the program's imports resolve. */
function folderWith(name: string, text: string): string {
  const folder = temporaryFolder();
  mkdirSync(folder, { recursive: true });
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  writeFileSync(join(folder, name), text);
  return folder;
}

function start(folder: string, name: string, env: Record<string, string>): ChildProcess & { said(): string } {
  const child = spawn(process.execPath, [name], {
    cwd: folder,
    env: { PATH: process.env.PATH ?? "", ...env },
  });
  let said = "";
  for (const stream of [child.stdout, child.stderr])
    stream?.on("data", (chunk: Buffer) => {
      said += chunk.toString();
    });
  cleanup(async () => {
    if (child.exitCode === null && child.kill("SIGKILL")) await once(child, "exit");
  });
  return Object.assign(child, { said: () => said });
}

/** Runs a program that asks an agent. */
async function askingProgram(
  text: string,
  config: Record<string, unknown> = {},
): Promise<ReturnType<typeof start>> {
  const ground = await Ground.open({ PARLEY_TOKEN: "a-token-of-the-documents" });
  ground.configure(config);
  await ground.start();
  const folder = folderWith("ask.mjs", text.replaceAll("7275", String(ground.port)));
  const child = start(folder, "ask.mjs", { PARLEY_TOKEN: "a-token-of-the-documents" });
  const [code] = await once(child, "close");
  expect({ code, said: child.said() }).toMatchObject({ code: 0, said: expect.stringMatching(/\w{4}/) });
  await ground.stop();
  return child;
}

async function a2aProgram(text: string): Promise<void> {
  const child = await askingProgram(text, ownConfig(readPage(readDocument("docs/A2A.md"))));
  expect(child.said()).toContain("artifactUpdate");
  expect(child.said()).toContain('"state":3');
}

async function hookProgram(text: string): Promise<void> {
  const secret = "a-secret-for-the-documents";
  const port = await freePort();
  const child = start(folderWith("receive.mjs", text.replace("8080", String(port))), "receive.mjs", {
    HOOK_SECRET: secret,
  });
  await expect
    .poll(() =>
      fetch(`http://127.0.0.1:${port}`).then(
        ({ status }) => status,
        () => 0,
      ),
    )
    .toBe(401);
  const ground = await Ground.open();
  const { hooks } = ownConfig(readPage(readDocument("docs/OUTGOING.md"))) as {
    hooks: { outgoing: Record<string, unknown>[] };
  };
  const outgoing = hooks.outgoing.map((one) => ({ ...one, url: `http://127.0.0.1:${port}`, secret }));
  ground.configure({ hooks: { outgoing } });
  await ground.start();
  await ground.run('parley send --session main --wait 20 "say hello"');
  await expect.poll(child.said).toContain("run.ended agent:main:main");
  await ground.stop();
}

/** Matches addresses of the gateway in configurations of other programs. */
const DOORS = /^(ws:\/\/127\.0\.0\.1:7275|http:\/\/127\.0\.0\.1:7275\/mcp(\?handle=\w+)?)$/;

/**
 * Checks the configuration of a program that starts or calls Parley: it is JSON with a valid command or
 * address.
 */
async function settingsOfOthers(text: string): Promise<void> {
  const commands: string[][] = [];
  const addresses: string[] = [];
  const look = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return;
    const { command, args, url } = value as { command?: string; args?: string[]; url?: string };
    if (command === "npx") {
      // The package `parley` on npm is another program.
      expect(args?.slice(0, 2)).toEqual(["-y", "parley-gateway"]);
      commands.push((args ?? []).slice(2));
    }
    if (url !== undefined) addresses.push(url);
    for (const inner of Object.values(value)) look(inner);
  };
  look(JSON.parse(text));
  expect([...commands, ...addresses]).not.toEqual([]);
  for (const words of commands) expect(await usageProblem(home(), words)).toBeUndefined();
  for (const address of addresses) expect(address).toMatch(DOORS);
}

/** Checks that docs/MONITORING.md has the fields of a log line. */
function logLine(text: string): void {
  const line = JSON.parse(text.replaceAll("…", "")) as Record<string, unknown>;
  expect(line).toMatchObject({
    level: expect.any(Number),
    time: expect.any(Number),
    part: "engine",
    msg: "a run failed",
  });
}

/** Checks that an editor's settings name the schema file that the command before them writes. */
function editorSettings(text: string): void {
  const settings = JSON.parse(text) as { "json.schemas": { url: string }[] };
  expect(settings["json.schemas"].map(({ url }) => url)).toEqual(["./.parley/parley.schema.json"]);
  expect(readDocument("docs/CONFIGURATION.md")).toContain("--write ~/.parley/parley.schema.json");
}

/** The check of each program, by its document and language. */
/** Reads the file of a change, with the text that it names. */
async function change(text: string): Promise<void> {
  const folder = folderWith("research.md", "Answer in one sentence.");
  const read = await changeIn(JSON.parse(text), folder, "the document's file");
  expect(read).toMatchObject({ ok: true, value: { instructions: { research: "Answer in one sentence." } } });
}

/** Reads the file of an evaluation. Only the record that it names is not there. */
async function evaluation(text: string): Promise<void> {
  const folder = folderWith("eval.json", text);
  const loaded = loadSettings({ env: {}, home: folder });
  if (!loaded.ok) throw new Error(loaded.error);
  expect(await readEvaluation(join(folder, "eval.json"), loaded.value.settings)).toMatchObject({
    ok: false,
    error: expect.stringContaining("CHAIN.json"),
  });
}

const PROGRAMS: Readonly<Record<string, (text: string) => void | Promise<void>>> = {
  "docs/OPENAI.md js": async (text) => void (await askingProgram(text)),
  "docs/A2A.md js": a2aProgram,
  "docs/OUTGOING.md js": hookProgram,
  "docs/ACP.md json": settingsOfOthers,
  "docs/MCP.md json": settingsOfOthers,
  "docs/CLIENTS.md json": settingsOfOthers,
  "docs/CONFIGURATION.md json": editorSettings,
  "docs/MONITORING.md json": logLine,
  "docs/REPLAY.md json": change,
  "docs/HOWTO-EVAL.md json": evaluation,
  // tests/cli/commands/may.test.ts checks these commands and their output.
  "docs/POLICY.md console": () =>
    expect(readDocument("tests/cli/commands/may.test.ts")).toContain("docs/POLICY.md"),
  // tests/e2e/package.deep.test.ts runs these programs in an installed package.
  "docs/CLIENT.md ts": () =>
    expect(readDocument("tests/e2e/package.deep.test.ts")).toContain("docs/CLIENT.md"),
  "docs/CLIENT.md html": (text) => {
    const { exports } = JSON.parse(readDocument("package.json")) as {
      exports: Record<string, { default: string }>;
    };
    expect(text).toContain(`node_modules/parley-gateway/${exports["./client"]?.default.slice(2)}`);
  },
  // The Python library is not installed here; tests/e2e/openai.deep.test.ts makes the same calls with the
  // JavaScript library.
  "docs/OPENAI.md python": (text) => {
    const read = spawnSync("python3", ["-c", "import ast, sys; ast.parse(sys.stdin.read())"], {
      input: text,
    });
    if (read.error === undefined) expect(read.stderr.toString()).toBe("");
  },
  "docs/MONITORING.md yaml": (text) => {
    expect(text).toContain('targets: ["127.0.0.1:7275"]');
    expect(readDocument("docs/grafana/alerts.yml")).toContain(`job="${/job_name: (.*)/.exec(text)?.[1]}"`);
    if (lacks("promtool")) return;
    const file = join(home(), "prometheus.yml");
    writeFileSync(file, text);
    const { status, stderr } = spawnSync("promtool", ["check", "config", "--syntax-only", file]);
    expect({ status, said: stderr.toString() }).toEqual({ status: 0, said: "" });
  },
};
/**
 * Languages of blocks that commands.test.ts, docs.test.ts and mermaid.test.ts check; blocks without a
 * language are drawings.
 */
const OTHERS = ["sh", "text", "chat", "json5", "mermaid", ""];

// Generated pages are left out, because tests/reference.test.ts checks them.
const BLOCKS = PAGES.filter((path) => !path.startsWith("docs/reference/")).flatMap((path) =>
  readPage(readDocument(path))
    .blocks.filter(({ language }) => !OTHERS.includes(language))
    .map(({ language, text, line }) => ({ where: `${path}:${line}`, kind: `${path} ${language}`, text })),
);

test.each(BLOCKS)("the program at $where runs as documented", async ({ kind, text }) => {
  expect(PROGRAMS[kind] === undefined ? `nobody tries "${kind}"` : "").toBe("");
  await PROGRAMS[kind]?.(text);
});

test("each kind of program that has a check occurs in a document", () => {
  const kinds = new Set(BLOCKS.map(({ kind }) => kind));
  expect(Object.keys(PROGRAMS).filter((kind) => !kinds.has(kind))).toEqual([]);
});

test("every command that the documents mention in a sentence exists, and so do its options", async () => {
  const problems: string[] = [];
  const where = home();
  for (const path of PAGES)
    for (const code of new Set(inlineCommands(readDocument(path)))) {
      const [, script] = /^npm (?:run )?(start|test|[\w:-]+)(?: |$)/.exec(code) ?? [];
      if (/^npm (?:run|start|test)/.test(code) && script !== undefined) checkScript(script);
      // The package `parley` on npm is another program.
      if (/^npx (?:-y )?parley(?!-)/.test(code)) problems.push(`${path}: \`${code}\` is another program`);
      const words = /^(?:npx (?:-y )?parley-gateway|parley) (.*)$/.exec(code)?.[1];
      const problem = words === undefined ? undefined : await usageProblem(where, words.split(/\s+/));
      if (problem !== undefined) problems.push(`${path}: \`${code}\`: ${problem}`);
    }
  expect(problems).toEqual([]);
});

test("an invalid command or option is detected", async () => {
  expect(await usageProblem(home(), ["sessions", "histroy"])).toContain("histroy");
  expect(await usageProblem(home(), ["send", "--sesion", "main"])).toContain("--sesion");
  expect(await usageProblem(home(), ["frobnicate"])).toContain("frobnicate");
  expect(await usageProblem(home(), ["sessions", "history", "main", "--limit", "8"])).toBeUndefined();
});
