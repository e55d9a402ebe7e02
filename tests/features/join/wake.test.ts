// Tests how joined programs are woken if their windows are idle or closed: real windows, hooks and gateway,
// and fakes of the coding agents. `npm run woken:each` tests the real ones.

import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { NUDGE } from "../../../src/features/join/programs.ts";
import { configFile, type Gateway, makeHome, run, runJson, startGateway, TOKEN } from "../../cli/kit.ts";
import { test } from "../../kit/deep.ts";
import { cleanup } from "../../kit/engine/engine.ts";
import { startTelegram } from "../../kit/platforms/telegram/server.ts";
import { LAUNCHER } from "../../kit/process/fleet.ts";
import { Window } from "./window.ts";

const SLOW = { interval: 200 };
const CONVERSATION = "0b9a2f0e-0000-4000-8000-000000000000";
const BOT_TOKEN = "123456789:AAH-not-a-real-token-of-any-bot-0";
const TEST_MS = 120_000;

/** A program that logs its arguments, and then executes the file `behaviour.mjs` beside it. */
const PROGRAM = (folder: string): string => `#!${process.execPath}
import { appendFileSync } from "node:fs";
const words = [process.argv[1].split("/").at(-1), ...process.argv.slice(2)];
appendFileSync(${JSON.stringify(join(folder, "calls"))}, JSON.stringify(words) + "\\n");
await import(${JSON.stringify(join(folder, "behaviour.mjs"))});
`;

/** Code that runs the hook as a program does at the start of a turn, and stores its output. */
const hooks = (folder: string, program: string, event: string): string => `
import { spawnSync } from "node:child_process";
import { appendFileSync } from "node:fs";
const input = JSON.stringify({ hook_event_name: "${event}", session_id: "${CONVERSATION}", prompt: process.argv.at(-1) });
const args = [${JSON.stringify(LAUNCHER)}, "inbox", "--hook", "${program}", "--joined", "writer"];
const { stdout } = spawnSync(process.execPath, args, { input, encoding: "utf8" });
appendFileSync(${JSON.stringify(join(folder, "heard"))}, stdout + "\\n");
`;

interface Scene {
  readonly gateway: Gateway;
  readonly home: string;
  readonly folder: string;
  /** Opens a window that finds the test's programs on its search path. */
  open(): Promise<Window>;
  calls(): string[][];
  heard(): string;
  send(text: string): Promise<void>;
}

async function openScene(
  program: string,
  options: {
    readonly programs?: readonly string[];
    readonly behaviour?: string;
    readonly join?: readonly string[];
    readonly desktop?: boolean;
    readonly config?: Record<string, unknown>;
  } = {},
): Promise<Scene> {
  const { home } = await makeHome(options.config);
  const gateway = await startGateway(home);
  const folder = mkdtempSync(join(tmpdir(), "parley-wake-"));
  const bin = join(folder, "bin");
  mkdirSync(bin);
  const { programs = [], behaviour = "", desktop = true } = options;
  for (const name of [...programs, "notify-send"])
    writeFileSync(join(bin, name), PROGRAM(folder), { mode: 0o755 });
  writeFileSync(join(bin, "package.json"), '{"type":"module"}');
  writeFileSync(join(folder, "behaviour.mjs"), behaviour);
  await run(home, ["join", program, "--yes", "--session", "writer", ...(options.join ?? [])], { folder });
  // If a window is closed, a process waits for its messages. It ends when the program leaves.
  cleanup(async () => {
    await run(home, ["leave", program, "--yes"], { folder });
  });
  const textOf = (name: string): string =>
    existsSync(join(folder, name)) ? readFileSync(join(folder, name), "utf8") : "";
  return {
    gateway,
    home,
    folder,
    async open() {
      const window = new Window(home, {
        PATH: `${bin}:/usr/bin:/bin`,
        ...(desktop ? { DISPLAY: ":0" } : {}),
      });
      window.startServer("writer");
      await expect.poll(() => existsSync(join(home, ".parley/joined/writer/1.json")), SLOW).toBe(true);
      await window.hook(program, "writer", "SessionStart", { session_id: CONVERSATION });
      return window;
    },
    calls: () =>
      textOf("calls")
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line) as string[]),
    heard: () => textOf("heard"),
    async send(message) {
      const args = { sessionKey: "agent:main:mcp:writer", message, timeoutSeconds: 0 };
      await runJson(home, ["tool", "sessions_send", JSON.stringify(args), "--as", "agent:research:main"]);
    },
  };
}

const isOpen = ({ home }: Scene): boolean => existsSync(join(home, ".parley/joined/writer/1.json"));

async function close(scene: Scene, window: Window): Promise<void> {
  window.close();
  await expect.poll(() => isOpen(scene), SLOW).toBe(false);
}

test(
  "an idle window of Codex gets one queued prompt for all waiting messages, and its hook delivers each once",
  async () => {
    const scene = await openScene("codex", { programs: ["codex"] });
    const window = await scene.open();
    await scene.send("which port?");
    await scene.send("which host?");
    const queued = ["codex", "queue", "--thread", CONVERSATION, "--message", NUDGE];
    await expect.poll(scene.calls, SLOW).toEqual([queued]);
    const prompt = { session_id: CONVERSATION, prompt: NUDGE };
    const told = await window.hook("codex", "writer", "UserPromptSubmit", prompt);
    expect(told).toMatch(/"hookEventName":"UserPromptSubmit"[\s\S]*which port\?[\s\S]*which host\?/);
    // This prompt was queued before the hook delivered the messages, so it must start no turn.
    const again = await window.hook("codex", "writer", "UserPromptSubmit", prompt);
    expect(again).toContain('{"decision":"block","reason":"Parley: the messages were shown already."}');
    expect(scene.calls()).toEqual([queued]);
  },
  TEST_MS,
);

test.deep(
  "a window that was opened while the configuration file has problems is woken",
  async () => {
    const scene = await openScene("codex", { programs: ["codex"] });
    const good = readFileSync(configFile(scene.home), "utf8");
    writeFileSync(configFile(scene.home), JSON.stringify({ ...JSON.parse(good), gatewayy: {} }));
    await scene.open();
    await scene.send("which port?");
    const queued = ["codex", "queue", "--thread", CONVERSATION, "--message", NUDGE];
    await expect.poll(scene.calls, SLOW).toEqual([queued]);
  },
  TEST_MS,
);

test.deep(
  "the owner of a window that cannot be woken gets one desktop notification for all waiting messages",
  async () => {
    const scene = await openScene("gemini");
    const window = await scene.open();
    await scene.send("which port?");
    await scene.send("which host?");
    const body = `A message waits for Gemini CLI in ${scene.folder}: it cannot be woken while it is idle.`;
    const notice = ["notify-send", "--app-name=Parley", "--", "Parley", body];
    await expect.poll(scene.calls, SLOW).toEqual([notice]);
    const told = await window.hook("gemini", "writer", "BeforeAgent", { session_id: CONVERSATION });
    expect(told).toMatch(/which port\?[\s\S]*which host\?/);
    await scene.send("a later question");
    // A message that arrives during a turn is delivered by the hook at the end of the turn.
    expect(await window.hook("gemini", "writer", "AfterAgent", { session_id: CONVERSATION })).toContain(
      "a later question",
    );
    expect(scene.calls()).toEqual([notice]);
  },
  TEST_MS,
);

test.deep(
  "after the gateway got another token and the program joined again, an open window uses the new tokens",
  async () => {
    const scene = await openScene("gemini");
    const window = await scene.open();
    await scene.gateway.stop();
    const config = join(scene.home, ".parley/parley.json5");
    writeFileSync(config, readFileSync(config, "utf8").replace(TOKEN, `${TOKEN}-2`));
    await startGateway(scene.home);
    await run(scene.home, ["join", "gemini", "--yes"], { folder: scene.folder });
    const args = { sessionKey: "agent:research:main", message: "which port?", timeoutSeconds: 0 };
    window.call("sessions_send", args);
    const asked = () =>
      run(scene.home, ["sessions", "history", "agent:research:main"]).then(({ out }) => out);
    await expect.poll(asked, SLOW).toContain("which port?");
    await scene.send("port 80");
    await expect.poll(scene.calls, SLOW).toHaveLength(1);
  },
  TEST_MS,
);

test.deep.each([
  ["without a desktop, the first owner is notified in a chat", []],
  ["the chat that --notify names is notified", ["--notify", "telegram:1001"]],
] as const)(
  "%s once for a waiting message",
  async (_, join) => {
    const server = await startTelegram();
    cleanup(() => server.close());
    server.addBot(BOT_TOKEN, "parley_test_bot");
    server.addChat({ id: 1001, type: "private" });
    const telegram = { apiRoot: server.url, botToken: BOT_TOKEN, allowFrom: ["1001"] };
    const owners = join.length === 0 ? ["telegram:1001"] : [];
    const config = { channels: { telegram }, commands: { owners } };
    const scene = await openScene("gemini", { join, desktop: false, config });
    await scene.open();
    await scene.send("which port?");
    const texts = () => server.sent.map(({ text }) => text);
    const body = `A message waits for Gemini CLI in ${scene.folder}: it cannot be woken while it is idle.`;
    await expect.poll(texts, SLOW).toEqual([body]);
    expect(scene.calls()).toEqual([]);
  },
  TEST_MS,
);

test.deep(
  "with --wake resume, a closed conversation is continued once for all waiting messages, and keeps its session",
  async () => {
    const scene = await openScene("gemini", { programs: ["gemini"], join: ["--wake", "resume"] });
    writeFileSync(join(scene.folder, "behaviour.mjs"), hooks(scene.folder, "gemini", "BeforeAgent"));
    await close(scene, await scene.open());
    await scene.send("which port?");
    await scene.send("which host?");
    await expect.poll(scene.heard, SLOW).toMatch(/which port\?[\s\S]*which host\?/);
    expect(scene.calls()).toEqual([
      ["gemini", "--resume", CONVERSATION, "-p", NUDGE, "--allowed-tools=mcp_parley_*"],
    ]);
    const continued = join(scene.home, ".parley/joined/writer/1.continued");
    await expect.poll(() => existsSync(continued), SLOW).toBe(false);
    const window = await scene.open();
    expect(await window.hook("gemini", "writer", "AfterAgent")).toBe("<code 0>");
  },
  TEST_MS,
);

test.deep.each([
  ["that is missing", [], "", "could not start `gemini`: command not found"],
  [
    "that fails",
    ["gemini"],
    'console.error("no key"); process.exit(3);',
    "`gemini` failed (exit code 3): no key",
  ],
  ["that reads nothing", ["gemini"], "", "it was continued without a window but did not read the message"],
] as const)(
  "with --wake resume and a program %s, the owner is notified of the reason, and the next window gets the message",
  async (_, programs, behaviour, reason) => {
    const scene = await openScene("gemini", { programs, behaviour, join: ["--wake", "resume"] });
    await close(scene, await scene.open());
    await scene.send("which port?");
    const noticed = () => scene.calls().filter(([name]) => name === "notify-send");
    await expect.poll(noticed, SLOW).toHaveLength(1);
    expect(noticed()[0]?.at(-1)).toBe(`A message waits for Gemini CLI in ${scene.folder}: ${reason}.`);
    const window = new Window(scene.home);
    window.startServer("writer");
    await expect.poll(() => isOpen(scene), SLOW).toBe(true);
    expect(await window.hook("gemini", "writer", "SessionStart")).toContain("which port?");
    expect(scene.calls().filter(([name]) => name === "gemini").length).toBeLessThan(2);
  },
  TEST_MS,
);

/**
 * Code of a program that answers each message of its inbox, like a model that got the messages from the hook.
 */
const answers = (home: string, folder: string, port: number): string => `
import { appendFileSync, readFileSync } from "node:fs";
const handle = process.cwd().endsWith("one") ? "one" : "two";
const { tokens } = JSON.parse(readFileSync(${JSON.stringify(join(home, ".parley/joined"))} + "/" + handle + ".json", "utf8"));
const call = async (name, args) => {
  const response = await fetch("http://127.0.0.1:${port}/mcp", {
    method: "POST",
    headers: {
      authorization: "Bearer " + tokens[0],
      accept: "application/json, text/event-stream",
      "content-type": "application/json",
      "mcp-protocol-version": "2025-11-25",
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } }),
  });
  const found = /\\{.*\\}/.exec(await response.text())[0];
  return JSON.parse(JSON.parse(found).result.content[0].text);
};
const { messages } = await call("sessions_inbox", { limit: 1 });
const { from, text } = messages.at(-1);
const sent = await call("sessions_send", { sessionKey: from, message: text + "!", timeoutSeconds: 0 });
appendFileSync(${JSON.stringify(join(folder, "calls"))}, JSON.stringify([handle, sent.status, sent.code ?? ""]) + "\\n");
`;

test.deep(
  "two conversations that wake and answer each other stop at the hop limit of their chain",
  async () => {
    const { home, port } = await makeHome({ session: { agentToAgent: { maxHops: 4 } } });
    await startGateway(home);
    const root = mkdtempSync(join(tmpdir(), "parley-circle-"));
    const bin = join(root, "bin");
    mkdirSync(bin);
    writeFileSync(join(bin, "package.json"), '{"type":"module"}');
    writeFileSync(join(bin, "gemini"), PROGRAM(root), { mode: 0o755 });
    writeFileSync(join(root, "behaviour.mjs"), answers(home, root, port));
    for (const handle of ["one", "two"]) {
      const folder = join(root, handle);
      mkdirSync(folder);
      await run(home, ["join", "gemini", "--yes", "--session", handle, "--wake", "resume"], { folder });
      cleanup(async () => {
        await run(home, ["leave", "gemini", "--yes"], { folder });
      });
      const window = new Window(home, { PATH: `${bin}:/usr/bin:/bin` });
      window.startServer(handle);
      const file = join(home, ".parley/joined", handle, "1.json");
      await expect.poll(() => existsSync(file), SLOW).toBe(true);
      await window.hook("gemini", handle, "SessionStart", { session_id: CONVERSATION });
      window.close();
      await expect.poll(() => existsSync(file), SLOW).toBe(false);
    }
    const args = { sessionKey: "agent:main:mcp:one", message: "ping", timeoutSeconds: 0 };
    await runJson(home, ["tool", "sessions_send", JSON.stringify(args), "--as", "agent:main:mcp:two"]);
    const sent = (): unknown[] => {
      const text = existsSync(join(root, "calls")) ? readFileSync(join(root, "calls"), "utf8") : "";
      const lines = text.split("\n").filter((line) => line !== "");
      return lines.map((line) => JSON.parse(line)).filter(([name]) => name !== "gemini");
    };
    await expect.poll(sent, { interval: 500 }).toEqual([
      ["one", "accepted", ""],
      ["two", "accepted", ""],
      ["one", "accepted", ""],
      ["two", "forbidden", "chain_limit"],
    ]);
  },
  TEST_MS + 60_000,
);
