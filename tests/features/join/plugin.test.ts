// The commands in a program's plugin: they join, deliver messages and leave as those of `parley join` do. `npm
// run plugins` installs the plugins into the real programs.

import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Commands, ProgramId } from "../../../src/features/join/programs.ts";
import { handleFor } from "../../../src/features/join/record.ts";
import { makeHome, run, runJson, startGateway } from "../../cli/kit.ts";
import { LAUNCHER } from "../../kit/process/fleet.ts";
import { pluginCommands } from "./client-files.ts";
import { Window } from "./window.ts";

const quoted = (words: readonly string[]): string =>
  words.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ");

/** Stands for npx, with this checkout as the package: like npx, it starts a shell that starts the program. */
const NPX = `#!/bin/sh
[ "$1 $2" = "-y parley-gateway" ] || exit 9
shift 2
sh -c '"$0" "$@"; exit $?' '${process.execPath}' '${LAUNCHER}' "$@"
`;

interface Place {
  readonly home: string;
  readonly folder: string;
  readonly handle: string;
  readonly commands: Commands;
  open(env?: Record<string, string>): Promise<Window>;
  isOpen(number: number): boolean;
}

async function placeFor(program: ProgramId, home: string): Promise<Place> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "parley-plugin-")));
  const bin = join(home, "bin");
  mkdirSync(bin, { recursive: true });
  writeFileSync(join(bin, "npx"), NPX);
  chmodSync(join(bin, "npx"), 0o755);
  const handle = handleFor(program, folder);
  const commands = pluginCommands(program);
  const isOpen = (number: number): boolean =>
    existsSync(join(home, ".parley", "joined", handle, `${number}.json`));
  let windows = 0;
  return {
    ...{ home, folder, handle, commands, isOpen },
    async open(env = {}) {
      const window = new Window(home, { PATH: `${bin}:${process.env.PATH}`, ...env }, folder);
      window.startCommand(quoted(commands.mcp));
      windows += 1;
      await expect.poll(() => isOpen(windows)).toBe(true);
      return window;
    },
  };
}

async function send(home: string, sessionKey: string): Promise<void> {
  const args = JSON.stringify({ sessionKey, message: "which port?", timeoutSeconds: 0 });
  await runJson(home, ["tool", "sessions_send", args, "--as", "agent:research:main"]);
}

test("each window of a plugin is a session of its folder, whose hook delivers each message once, until leave", async () => {
  const { home } = await makeHome();
  await startGateway(home);
  const { folder, handle, commands, open } = await placeFor("qwen", home);
  const hook = quoted(commands.hook);
  const early = new Window(home, {}, folder);
  expect(await early.hookCommand(hook, "Stop")).toBe("<code 0>");

  const [one, two] = [await open(), await open()];
  for (const window of [one, two]) expect(await window.hookCommand(hook, "Stop")).toBe("<code 0>");
  await send(home, `agent:main:mcp:${handle}.2`);
  expect(await one.hookCommand(hook, "Stop")).toBe("<code 0>");
  expect(await early.hookCommand(hook, "Stop")).toBe("<code 0>");
  const told = /^\{"decision":"block","reason":"New messages[\s\S]*which port\?[\s\S]*<code 0>$/;
  expect(await two.hookCommand(hook, "Stop")).toMatch(told);
  expect(await two.hookCommand(hook, "Stop")).toBe("<code 0>");

  const again = await run(home, ["join", "qwen", "--yes"], { folder });
  expect(again.out).toContain(`has joined in this folder as ${handle}. Its configuration needs no change.`);
  expect(existsSync(join(folder, ".qwen"))).toBe(false);
  const left = await run(home, ["leave", "qwen", "--yes"], { folder });
  expect(left).toMatchObject({ code: 0, err: expect.stringContaining("Its plugin joins again") });
  expect(await two.hookCommand(hook, "Stop")).toBe("<code 0>");
});

test("a program that another one runs in another folder gets its own messages, not those of the outer window", async () => {
  const { home } = await makeHome();
  await startGateway(home);
  const places = [await placeFor("qwen", home), await placeFor("qwen", home)];
  const [outer, inner] = places.sort((a, b) => (a.handle < b.handle ? -1 : 1)) as [Place, Place];
  const hook = quoted(outer.commands.hook);
  const window = await outer.open();
  expect(await window.hookCommand(hook, "Stop")).toBe("<code 0>");
  await send(home, `agent:main:mcp:${outer.handle}`);
  await window.nest(inner.folder);
  window.startCommand(quoted(inner.commands.mcp));
  await expect.poll(() => inner.isOpen(1)).toBe(true);
  expect(await window.hookCommand(hook, "Stop")).toBe("<code 0>");
  await send(home, `agent:main:mcp:${inner.handle}`);
  expect(await window.hookCommand(hook, "Stop")).toMatch(/which port\?[\s\S]*<code 0>$/);
});

test("the background hook of Claude Code's plugin wakes an idle window with exit code 2", async () => {
  const { home } = await makeHome();
  await startGateway(home);
  const { handle, commands, open } = await placeFor("claude-code", home);
  const window = await open({ CLAUDE_CODE_ENTRYPOINT: "cli" });
  const hook = quoted(commands.hook);
  expect(await window.hookCommand(hook, "UserPromptSubmit")).toBe("<code 0>");
  const told = window.hookCommand(hook, "Stop");
  await send(home, `agent:main:mcp:${handle}`);
  expect(await told).toMatch(/^New messages[\s\S]*which port\?[\s\S]*<code 2>$/);
});

test("in a folder that has joined without the plugin, the plugin opens no second window and says why", async () => {
  const { home } = await makeHome();
  await startGateway(home);
  const { folder, commands } = await placeFor("codex", home);
  await run(home, ["join", "codex", "--yes", "--session", "writer"], { folder });
  const [, , , ...args] = commands.mcp;
  const refused = await run(home, args, { folder });
  expect(refused).toMatchObject({ code: 1, out: "" });
  expect(refused.err).toContain("Codex has joined in this folder as writer, without the plugin");
  expect(refused.err).toContain("npx parley-gateway leave codex");
});

test("without a gateway, the first window of a plugin runs one and joins with its new token", async () => {
  const home = mkdtempSync(join(tmpdir(), "parley-first-"));
  mkdirSync(join(home, ".parley"), { mode: 0o700 });
  const config = { gateway: { port: 0 } };
  writeFileSync(join(home, ".parley", "parley.json5"), JSON.stringify(config), { mode: 0o600 });
  const { handle, commands, open } = await placeFor("gemini", home);
  const window = await open();
  const record = readFileSync(join(home, ".parley", "joined", `${handle}.json`), "utf8");
  expect(JSON.parse(record)).toMatchObject({ program: "gemini", changes: [] });
  expect(await window.hookCommand(quoted(commands.hook), "AfterAgent")).toBe("<code 0>");
});
