// Sends a question to each real coding agent that has joined a gateway of this checkout. An agent that its
// hook or plugin can wake is idle; the others are in a turn. No agent polls for messages. `npm run woken:each
// -- FOLDER [NAME]`. FOLDER has the packages of the agents (`npm install --prefix FOLDER …`); a missing one
// is skipped. One scripted server replaces their models. Needs `script` of util-linux as their terminal.
// Prints receipts and sequences. Exit code 1: an answer is missing.

import { type ChildProcess, execFile, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { closeBrowser, visit } from "../tests/kit/browser.ts";
import { cleanUp } from "../tests/kit/engine/engine.ts";
import { freePort } from "../tests/kit/loopback.ts";
import type { ServedRequest } from "../tests/kit/model-server/requests.ts";
import { type Answer, startModelServer } from "../tests/kit/model-server/server.ts";
import { call } from "../tests/kit/model-server/steps.ts";
import { showView } from "../tests/kit/page-views.ts";
import { addressOf, LAUNCHER, launch, TOKEN, writeHome } from "../tests/kit/process/fleet.ts";
import { WINDOWS, type WindowProgram } from "./windows.ts";

const run = promisify(execFile);
const LOOKS_MAX = 90;
const ASKER = "agent:main:main";
const WINDOW = "agent:main:mcp:window";
const QUESTION = "which port do you use?";
const REPLY = "port 8080";

const [programs, ...names] = process.argv.slice(2);
if (programs === undefined) {
  process.stderr.write("Skipped: name the folder that has the coding agents.\n");
  process.exit(2);
}
const folderOf = ({ packageName }: WindowProgram): string =>
  resolve(programs, "node_modules", ...packageName.split("/"));

/** Answers each question that a hook or plugin delivered, once; until the first one it calls `begin`. */
function answers(begin: () => Promise<void>) {
  return async ({ api, body, messages, toolNames }: ServedRequest): Promise<Answer> => {
    const asked = new Set(
      [...JSON.stringify(body).matchAll(/Message (\S+) from session /g)].map(([, id]) => id),
    );
    const sent = messages.flatMap(({ calls }) => calls).filter(({ name }) => name.endsWith("sessions_send"));
    if (asked.size > sent.length) {
      // Codex puts tools of an MCP server into a namespace; Qwen Code lists them only after a search.
      const other = api === "openai-responses" ? "mcp__parley/sessions_send" : "mcp__parley__sessions_send";
      const name = toolNames.find((one) => one.endsWith("sessions_send")) ?? other;
      return [call(name, { sessionKey: ASKER, message: REPLY, timeoutSeconds: 0 })];
    }
    if (sent.length === 0) await begin();
    return "Done.";
  };
}

interface Ground {
  readonly home: string;
  readonly folder: string;
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

/** Lets the agent `main` send a question to the session of the coding agent; returns its final text. */
const ask = ({ parley }: Ground): Promise<string> =>
  parley("send", "--session", ASKER, "--wait", "120", `ask ${WINDOW} within 90 seconds: ${QUESTION}`);

/** Returns whether the coding agent's MCP server has connected, which creates its session. */
const isKnown = async ({ parley }: Ground): Promise<boolean> =>
  (await parley("--json", "sessions")).includes(`"${WINDOW}"`);

const waits = ({ home }: Ground): boolean =>
  existsSync(join(home, ".parley", "joined", "window", "1.waiter"));

function openTerminal(command: readonly string[], { folder, env }: Ground): ChildProcess {
  const words = command.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ");
  const log = process.env.WOKEN_SCREEN ?? "/dev/null";
  return spawn("script", ["-qfec", `stty cols 120 rows 40; exec ${words}`, log], {
    cwd: folder,
    env,
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  });
}

/** Sends two questions while the agent is idle: one after its start or first turn, one after its answer. */
async function askIdle(ground: Ground): Promise<string[]> {
  await until(() => waits(ground), "the window waits");
  await until(() => isKnown(ground), "the window's session");
  return [await ask(ground), await ask(ground)];
}

/** Returns the text of the sequence that the page shows for a chain. */
async function pageText(url: string, chainId: string): Promise<string> {
  const { page, context } = await visit(url, { token: TOKEN });
  await showView(page, url, { name: "chain", at: `flow/${chainId}` });
  const text = await page.locator("main").innerText();
  await context.close();
  return text.slice(text.lastIndexOf("\nFrom ")).trim();
}

/** Prints the answers, and the receipts and the sequence of each chain. */
async function report(
  one: WindowProgram,
  { parley }: Ground,
  { url, results }: { readonly url: string; readonly results: readonly string[] },
): Promise<void> {
  const { version } = JSON.parse(readFileSync(join(folderOf(one), "package.json"), "utf8"));
  process.stdout.write(`\n## ${one.name} ${version}, ${one.idle ? "idle" : "in a turn"}\n\n`);
  for (const result of results) process.stdout.write(result);
  const { chains } = JSON.parse(await parley("call", "chains.list", "{}"));
  for (const { chainId } of chains.toReversed()) {
    const { steps } = JSON.parse(await parley("call", "chains.get", JSON.stringify({ chainId })));
    for (const { receipt } of steps)
      if (receipt !== undefined) process.stdout.write(`\n${Object.keys(receipt.times).join(" -> ")}\n`);
    process.stdout.write(`\n${await pageText(url, chainId)}\n`);
  }
}

async function tryProgram(one: WindowProgram): Promise<boolean> {
  const root = mkdtempSync(join(tmpdir(), "parley-woken-"));
  const [home, folder] = [join(root, "home"), join(root, "shop")];
  for (const made of [home, folder]) mkdirSync(made);
  const asked = Promise.withResolvers<void>();
  const model = await startModelServer(
    answers(async () => {
      if (!one.idle) await asked.promise;
    }),
  );
  const start = one.start({ server: model, home, folder, packageFolder: folderOf(one) });
  const env = { PATH: process.env.PATH ?? "", HOME: home, TERM: "xterm-256color", ...start.env };
  const parley = async (...args: string[]): Promise<string> =>
    (await run(process.execPath, [LAUNCHER, ...args], { cwd: folder, env })).stdout;
  const ground = { home, folder, env, parley };
  writeHome(home, {
    gateway: { port: await freePort(), auth: { token: TOKEN } },
    tools: { sessions: { visibility: "agent" } },
  });
  const gateway = launch(home, ["gateway"]);
  const url = await addressOf(gateway);
  await parley("join", one.id, "--session", "window", "--yes");
  const [consent, ...words] = start.consent ?? [];
  if (consent !== undefined) await run(consent, words, { cwd: folder, env });
  const terminal = openTerminal(start.command, ground);
  try {
    let results: string[];
    if (one.idle) {
      results = await askIdle(ground);
    } else {
      await until(() => model.requests.length > 0, "the first turn");
      await until(() => isKnown(ground), "the window's session");
      const answered = ask(ground);
      const told = async () => (await parley("sessions", "history", WINDOW)).includes(QUESTION);
      await until(told, "the message");
      asked.resolve();
      results = [await answered];
    }
    await report(one, ground, { url, results });
    return results.every((result) => result.includes(REPLY));
  } catch (error) {
    process.stdout.write(`\n## ${one.name}: ${(error as Error).message}\n`);
    return false;
  } finally {
    asked.resolve();
    if (terminal.pid !== undefined) process.kill(-terminal.pid);
    gateway.kill();
    await model.close();
    if (process.env.WOKEN_KEEP === undefined) rmSync(root, { recursive: true, force: true });
    else process.stdout.write(`${root}: ${readdirSync(folder).join(" ")}\n`);
  }
}

let holds = true;
for (const one of WINDOWS) {
  if (names.length > 0 && !names.includes(one.id)) continue;
  if (existsSync(folderOf(one))) holds = (await tryProgram(one)) && holds;
  else process.stdout.write(`\n## ${one.name}: ${one.packageName} is not installed\n`);
}
await cleanUp();
await closeBrowser();
process.exit(holds ? 0 : 1);
