// Tries messages to a window of a real coding agent that has joined a gateway of this checkout, by
// `parley join` or by its plugin: while the window is idle, and after it was closed (`--wake resume`).
// Gemini CLI, whose idle window cannot be woken, is also asked during a turn. Each must first accept its new
// configuration (`mcp list`). One scripted server plays their models. Needs `script` of util-linux as their
// terminal.

import { type ChildProcess, execFile, spawn } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { inQuotes } from "../src/cli/shell-words.ts";
import { NUDGE, PROGRAM, type Program } from "../src/features/join/programs.ts";
import { handleFor } from "../src/features/join/record.ts";
import { visit } from "../tests/kit/browser.ts";
import { freePort } from "../tests/kit/loopback.ts";
import type { ServedRequest } from "../tests/kit/model-server/requests.ts";
import { type Answer, startModelServer } from "../tests/kit/model-server/server.ts";
import { call } from "../tests/kit/model-server/steps.ts";
import { showView } from "../tests/kit/page-views.ts";
import { addressOf, LAUNCHER, launch, TOKEN, writeHome } from "../tests/kit/process/fleet.ts";
import type { WindowProgram } from "./windows.ts";

const run = promisify(execFile);
export const CHECKOUT = dirname(dirname(LAUNCHER));
const LOOKS_MAX = 90;
const ASKER = "agent:main:main";
const QUESTION = "which port do you use?";
const REPLY = "port 8080";
/** A line of `mcp list` that names the server of the configuration as one that works. */
const ACCEPTED = /parley.*(?:connected|enabled)/i;
const PLUGIN_SERVER = "mcp__plugin_parley_parley";
const ASKED = /\[message (\S+) from session /i;

/** A plugin in this checkout, and how its program installs it. */
export interface Plugin {
  /** Arguments of the program, with which it installs the plugin. */
  readonly install: readonly (readonly string[])[];
  /** Arguments that show the installed plugin. */
  readonly list: readonly string[];
  /** Arguments that let the model call the plugin's tools without asking, which a plugin cannot do itself. */
  readonly allow: readonly string[];
}

interface Options {
  /** The folder with the packages of the agents. */
  readonly programs: string;
  /** The plugin with which the agent joins. Default: it joins by `parley join`. */
  readonly plugin?: Plugin;
}

/** Returns the folder of an agent's package. */
export const packageOf = ({ packageName }: WindowProgram, programs: string): string =>
  resolve(programs, "node_modules", ...packageName.split("/"));

/**
 * Returns a model for a coding agent. It answers each question once, whether a hook delivered the question or
 * only announced it. Calls `begin` before the first question.
 */
function answers(begin: () => Promise<void>) {
  return async ({ api, body, messages, toolNames }: ServedRequest): Promise<Answer> => {
    const seen = JSON.stringify(body);
    const asked = new Set([...seen.matchAll(new RegExp(ASKED, "g"))].map(([, id]) => id));
    const calls = (name: string) =>
      messages.flatMap((message) => message.calls).filter((one) => one.name.endsWith(name)).length;
    // Codex puts MCP tools into a namespace. Qwen Code offers them only after a search. Claude Code puts the
    // name of a plugin before that of its server.
    const server = seen.includes(PLUGIN_SERVER) ? PLUGIN_SERVER : "mcp__parley";
    const prefix = `${server}${api === "openai-responses" ? "/" : "__"}`;
    const named = (name: string) => toolNames.find((one) => one.endsWith(name)) ?? `${prefix}${name}`;
    const sent = calls("sessions_send");
    // Counting is not enough: a program that continues a conversation may have dropped earlier output of its
    // hooks. So the last question is also compared with the last answer.
    const last = (holds: (message: ServedRequest["messages"][number]) => boolean) =>
      messages.findLastIndex(holds);
    const lastAsked = last(({ texts }) => texts.some((text) => ASKED.test(text)));
    const lastSent = last((message) => message.calls.some(({ name }) => name.endsWith("sessions_send")));
    if (asked.size + calls("sessions_inbox") > sent || lastAsked > lastSent)
      return [call(named("sessions_send"), { sessionKey: ASKER, message: REPLY, timeoutSeconds: 0 })];
    // This prompt announces a message that no hook has delivered. opencode puts the prompt in quotes.
    if (messages.at(-1)?.texts.some((text) => text.replace(/^"/, "").startsWith(NUDGE)))
      return [call(named("sessions_inbox"), { limit: 1 })];
    if (sent === 0) await begin();
    return "Done.";
  };
}

interface Ground {
  readonly home: string;
  readonly folder: string;
  /** The name under which the agent has joined. */
  readonly handle: string;
  readonly env: Record<string, string>;
  parley(...args: string[]): Promise<string>;
}

async function until(look: () => Promise<boolean> | boolean, wanted: string): Promise<void> {
  for (let looks = 0; looks < LOOKS_MAX; looks += 1) {
    if (await look()) return;
    await run("sleep", ["1"]);
  }
  throw new Error(`not seen in ${LOOKS_MAX} s: ${wanted}`);
}

const keyOf = (handle: string): string => `agent:main:mcp:${handle}`;

/** Lets the agent `main` send a question to the session of the coding agent; returns its final text. */
const ask = ({ parley, handle }: Ground): Promise<string> =>
  parley("send", "--session", ASKER, "--wait", "120", `ask ${keyOf(handle)} within 90 seconds: ${QUESTION}`);

/** Returns whether the coding agent's MCP server has connected, which creates its session. */
const isKnown = async ({ parley, handle }: Ground): Promise<boolean> =>
  (await parley("--json", "sessions")).includes(`"${keyOf(handle)}"`);

const fileOf = ({ home, handle }: Ground, name: string): string =>
  join(home, ".parley", "joined", handle, name);

/** Returns whether the window can be woken now: its hook waits, or the id of its conversation is known. */
const waits = (ground: Ground, { door }: Program): boolean =>
  existsSync(fileOf(ground, door === "own" ? "1.waiter" : "1.conversation"));

/** Returns whether a turn is in progress, according to the hooks. */
function isBusy(ground: Ground): boolean {
  const file = fileOf(ground, "1.conversation");
  if (!existsSync(file)) return false;
  return (JSON.parse(readFileSync(file, "utf8")) as { busy: boolean }).busy;
}

function openTerminal(command: readonly string[], { folder, env }: Ground): ChildProcess {
  const words = command.map(inQuotes).join(" ");
  const log = process.env.WOKEN_SCREEN ?? "/dev/null";
  return spawn("script", ["-qfec", `stty cols 120 rows 40; exec ${words}`, log], {
    cwd: folder,
    env,
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  });
}

/**
 * Sends two questions while the agent is idle: the first after its start or its first turn, the second after
 * its answer.
 */
async function askIdle(ground: Ground, program: Program): Promise<string[]> {
  await until(() => waits(ground, program), "the window waits");
  await until(() => isKnown(ground), "the window's session");
  await untilIdle(ground);
  const first = await ask(ground);
  await untilIdle(ground);
  return [first, await ask(ground)];
}

/**
 * Waits until no turn is in progress, and some time more, so that the hook at the end of a turn cannot
 * deliver the question.
 */
async function untilIdle(ground: Ground): Promise<void> {
  await until(() => !isBusy(ground), "the end of the turn");
  await run("sleep", ["5"]);
}

/** Closes the window, then sends a question. The agent must continue the conversation without a window. */
async function askClosed(ground: Ground, terminal: ChildProcess): Promise<string> {
  if (terminal.pid !== undefined) process.kill(-terminal.pid);
  const windowFile = fileOf(ground, "1.json");
  const isGone = (): boolean => {
    if (!existsSync(windowFile)) return true;
    const { bridge } = JSON.parse(readFileSync(windowFile, "utf8")) as { bridge: number };
    return !existsSync(`/proc/${bridge}`);
  };
  await until(isGone, "the closed window");
  return ask(ground);
}

/** Returns the text of the sequence that the page shows for a chain. */
async function pageText(url: string, chainId: string): Promise<string> {
  const { page, context } = await visit(url, { token: TOKEN });
  await showView(page, url, { name: "chain", at: `flow/${chainId}` });
  const text = await page.locator("main").innerText();
  await context.close();
  return text.slice(text.lastIndexOf("\nFrom ")).trim();
}

/** Prints the answers. For each chain, prints the receipts and the sequence. */
async function report(
  one: WindowProgram,
  { parley }: Ground,
  { url, results, version }: { readonly url: string; readonly results: readonly string[]; version: string },
): Promise<void> {
  const when = one.idle ? "idle twice, then closed" : "in a turn, then idle, then closed";
  process.stdout.write(`\n## ${one.name} ${version}, ${when}\n\n`);
  for (const result of results) process.stdout.write(result);
  const { chains } = JSON.parse(await parley("call", "chains.list", "{}"));
  for (const { chainId } of chains.toReversed()) {
    const { steps } = JSON.parse(await parley("call", "chains.get", JSON.stringify({ chainId })));
    for (const { receipt } of steps)
      if (receipt !== undefined) process.stdout.write(`\n${Object.keys(receipt.times).join(" -> ")}\n`);
    process.stdout.write(`\n${await pageText(url, chainId)}\n`);
  }
}

/** Installs a plugin. Parley is installed there like a package, so that the real npx finds it. */
async function installPlugin(
  { install, list }: Plugin,
  { home, folder, env }: Ground,
  own: (...args: string[]) => Promise<string>,
): Promise<string> {
  writeFileSync(join(home, ".npmrc"), `prefix=${join(home, "npm")}\n`);
  await run("npm", ["install", "--global", "--ignore-scripts", CHECKOUT], { cwd: folder, env });
  for (const args of install) await own(...args);
  return own(...list);
}

/** Tries an agent. Returns whether it accepted its configuration and gave each answer, or why not. */
export async function tryWindow(
  one: WindowProgram,
  { programs, plugin }: Options,
): Promise<{ readonly holds: boolean; readonly version: string; readonly why?: string }> {
  const packageFolder = packageOf(one, programs);
  const { version } = JSON.parse(readFileSync(join(packageFolder, "package.json"), "utf8")) as {
    version: string;
  };
  const root = mkdtempSync(join(tmpdir(), "parley-woken-"));
  const [home, folder] = [join(root, "home"), join(root, "shop")];
  for (const made of [home, folder]) mkdirSync(made);
  const asked = Promise.withResolvers<void>();
  const model = await startModelServer(
    answers(async () => {
      if (!one.idle) await asked.promise;
      // A hook of a plugin does nothing before the window's MCP server has started once.
      const hook = join(home, ".parley", "joined", "hook.sh");
      if (plugin !== undefined) await until(() => existsSync(hook), "the hook of the plugin");
    }),
  );
  const start = one.start({ server: model, home, folder, packageFolder });
  const bin = join(programs, "node_modules", ".bin");
  const path = [resolve(bin), dirname(process.execPath), process.env.PATH ?? ""].join(":");
  const env = { PATH: path, HOME: home, TERM: "xterm-256color", ...start.env };
  const parley = async (...args: string[]): Promise<string> =>
    (await run(process.execPath, [LAUNCHER, ...args], { cwd: folder, env })).stdout;
  const handle = plugin === undefined ? "window" : handleFor(one.id, realpathSync(folder));
  const ground = { home, folder, handle, env, parley };
  writeHome(home, {
    gateway: { port: await freePort(), auth: { token: TOKEN } },
    tools: { sessions: { visibility: "agent" } },
  });
  const gateway = launch(home, ["gateway"]);
  const url = await addressOf(gateway);
  const [file = "", ...first] = start.program;
  const own = async (...args: string[]): Promise<string> => {
    const running = run(file, [...first, ...args], { cwd: folder, env });
    running.child.stdin?.end("y\ny\n");
    const { stdout, stderr } = await running;
    return `${stdout}${stderr}`;
  };
  if (plugin === undefined) await parley("join", one.id, "--session", handle, "--wake", "resume", "--yes");
  else process.stdout.write(await installPlugin(plugin, ground, own));
  if (plugin === undefined && start.consent !== undefined) await own(...start.consent);
  const servers = await own("mcp", "list");
  process.stdout.write(servers);
  const terminal = openTerminal([...start.program, ...(plugin?.allow ?? []), ...start.args], ground);
  try {
    let results: string[];
    if (plugin !== undefined) {
      await until(() => existsSync(fileOf(ground, "1.json")), "the window");
      await parley("join", one.id, "--wake", "resume", "--yes");
    }
    if (one.idle) {
      results = await askIdle(ground, PROGRAM[one.id]);
    } else {
      await until(() => model.requests.length > 0, "the first turn");
      await until(() => isKnown(ground), "the window's session");
      const answered = ask(ground);
      const told = async () => (await parley("sessions", "history", keyOf(handle))).includes(QUESTION);
      await until(told, "the message");
      asked.resolve();
      results = [await answered];
      await untilIdle(ground);
      results.push(await ask(ground));
    }
    results.push(await askClosed(ground, terminal));
    await report(one, ground, { url, results, version });
    if (!ACCEPTED.test(servers)) return { holds: false, version, why: "its MCP server is not accepted" };
    const missing = results.filter((result) => !result.includes(REPLY));
    return missing.length === 0
      ? { holds: true, version }
      : { holds: false, version, why: `${missing.length} of ${results.length} answers are missing` };
  } catch (error) {
    const why = (error as Error).message;
    process.stdout.write(`\n## ${one.name}: ${why}\n`);
    return { holds: false, version, why };
  } finally {
    asked.resolve();
    await parley("leave", one.id, "--yes").catch(() => {});
    try {
      if (terminal.pid !== undefined) process.kill(-terminal.pid);
    } catch {
      // The window was already closed.
    }
    gateway.kill();
    await model.close();
    if (process.env.WOKEN_KEEP === undefined) rmSync(root, { recursive: true, force: true });
    else process.stdout.write(`${root}: ${readdirSync(folder).join(" ")}\n`);
  }
}
