// Signs real coding agents in at the MCP address of a gateway of this checkout, without a pasted token:
// `npm run conformance:oauth`. Installs them from npm (a gigabyte, some minutes) into a temporary folder, or
// into `--dir FOLDER`, which is reused the next time. Each program is added and logged in by its own
// commands, the consent is given in a headless browser, and its model then calls `sessions_list`. Only
// loopback and npm are needed. Writes a table of docs/reference/TRIED.md. Exit code 1: a program is not
// signed in.

import { execFile } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { closeBrowser, visit } from "../tests/kit/browser.ts";
import { cleanUp } from "../tests/kit/cleanup.ts";
import { type ModelServer, startModelServer } from "../tests/kit/model-server/server.ts";
import { TOKEN } from "../tests/kit/process/fleet.ts";
import { Pty } from "../tests/kit/pty.ts";
import { typed } from "../tests/kit/typed.ts";
import {
  CODING_AGENTS,
  type CodingAgent,
  type Installed,
  idOf,
  installAgent,
  installedOf,
} from "./coding-agents.ts";
import { Puppet, withProgram } from "./puppet.ts";
import { writeTable } from "./table.ts";
import { type RunningGateway, withGateway } from "./with-gateway.ts";

const run = promisify(execFile);
const PAGE = fileURLToPath(new URL("../docs/reference/TRIED.md", import.meta.url));
const COMMAND_MAX_MS = 60_000;
/** Maximum time of one step of a sign-in: some programs need half a minute to start. */
const STEP_MAX_MS = 120_000;
const LOOK_MS = 200;
const SHOWN_CHARS = 300;
const SCREEN_CHARS = 3_000;

/** How a person adds the server to a program, and logs in. */
interface Steps {
  /** Arguments of the program that add the server. */
  readonly add?: (url: string) => readonly string[];
  /** A file in the working folder that adds the server, for a program without such a command. */
  readonly file?: (url: string) => { readonly name: string; readonly text: string };
  readonly login: readonly string[];
  /** Keys of a person in a program that has no command for the login, and the screen that precedes them. */
  readonly keys?: readonly { readonly after: RegExp; readonly typed: string }[];
  /** The screen after the login. Default: the program ends. */
  readonly done?: RegExp;
  /** Arguments that let the model call the tools without asking. */
  readonly allow?: readonly string[];
  /** The login, for people. */
  readonly shown: string;
}

const STEPS: Readonly<Record<string, Steps>> = {
  "Claude Code": {
    add: (url) => ["mcp", "add", "--transport", "http", "parley", url],
    login: ["mcp", "login", "parley"],
    allow: ["--allowedTools=mcp__parley"],
    shown: "`claude mcp login parley`",
  },
  Codex: {
    // `codex mcp add` logs in at once, so the login is this command.
    login: ["mcp", "add", "parley", "--url", "URL"],
    allow: ["-c", 'mcp_servers.parley.default_tools_approval_mode="approve"'],
    shown: "`codex mcp add parley --url …`",
  },
  opencode: {
    file: (url) => ({
      name: "opencode.json",
      text: JSON.stringify({ mcp: { parley: { type: "remote", url } } }),
    }),
    login: ["mcp", "auth", "parley"],
    shown: "`opencode mcp auth parley`",
  },
  "Gemini CLI": {
    add: (url) => ["mcp", "add", "--scope", "user", "--transport", "http", "--trust", "parley", url],
    // Before the first answer, a command would be a prompt for the model.
    login: ["-i", "Begin."],
    keys: [
      { after: /Done\./, typed: "/mcp auth parley" },
      // Enter would take another word of an older list of completions.
      { after: /> \/mcp auth parley\s+parley\s/, typed: "\r" },
      { after: /Do you want to continue/, typed: "\r" },
    ],
    done: /[Ss]uccessfully (?:re-)?authenticated|Successfully reloaded/,
    shown: "`/mcp auth parley`",
  },
};

/** A program that is installed, with its own home, and the browser that it finds. */
interface Ground extends RunningGateway {
  readonly agent: CodingAgent;
  readonly program: Installed;
  readonly steps: Steps;
  readonly work: string;
  /** The fake browser writes the addresses here that the program opens. */
  readonly opened: string;
}

/** Polls until `look` returns something. Throws after the time limit, with the reason. */
async function untilSeen<T>(why: () => string, look: () => T | undefined): Promise<T> {
  for (const end = Date.now() + STEP_MAX_MS; Date.now() < end; ) {
    const seen = look();
    if (seen !== undefined) return seen;
    await pause(LOOK_MS);
  }
  throw new Error(why());
}

/** Writes a program that stands for the browser: it notes the address. Returns the folder for the PATH. */
function fakeBrowser(home: string, opened: string): string {
  const bin = join(home, "bin");
  mkdirSync(bin, { recursive: true });
  const file = join(bin, "xdg-open");
  writeFileSync(file, `#!/bin/sh\nfor address; do :; done\nprintf '%s\\n' "$address" >> '${opened}'\n`);
  chmodSync(file, 0o755);
  for (const name of ["open", "sensible-browser"]) symlinkSync(file, join(bin, name));
  return bin;
}

function prepareGround(
  gateway: RunningGateway,
  server: ModelServer,
  agent: CodingAgent,
  home: string,
): Ground {
  const own = join(home, idOf(agent));
  const work = join(own, "work");
  mkdirSync(work, { recursive: true });
  const opened = join(own, "opened");
  const program = installedOf(agent, folder, server, own);
  const bin = fakeBrowser(own, opened);
  const path = `${bin}:${dirname(process.execPath)}:${process.env.PATH}`;
  const env = { ...program.env, PATH: path, BROWSER: join(bin, "xdg-open"), DISPLAY: ":99" };
  const steps = STEPS[agent.name];
  if (steps === undefined) throw new Error(`${agent.name} has no steps`);
  return { ...gateway, agent, program: { ...program, env }, steps, work, opened };
}

/** Adds the server by the program's own command, or by its file. */
async function add({ program, steps, work, httpUrl }: Ground): Promise<void> {
  const url = `${httpUrl}/mcp`;
  const file = steps.file?.(url);
  if (file !== undefined) writeFileSync(join(work, file.name), file.text);
  const [command = "", ...args] = [...program.command, ...(steps.add?.(url) ?? [])];
  if (steps.add === undefined) return;
  const started = run(command, args, { cwd: work, env: program.env, timeout: COMMAND_MAX_MS });
  started.child.stdin?.end();
  await started;
}

/** Allows the sign-in as a person does. Returns how the client is registered. */
async function consent(ground: Ground, address: string): Promise<string> {
  const id = new URL(address).searchParams.get("client_id") ?? "";
  const { page, context } = await visit(ground.httpUrl, { allow: /./ });
  await page.goto(address);
  await page.getByLabel(/^Your token/).fill(TOKEN);
  await page.getByRole("button", { name: "Allow" }).click();
  await page.waitForURL((url) => url.origin !== ground.httpUrl);
  await context.close();
  return id.startsWith("https:") ? `document at ${new URL(id).hostname}` : "dynamic";
}

/** Logs in by the program's own command. Returns how the client is registered. */
async function login(ground: Ground): Promise<string> {
  const { program, steps, work, opened, httpUrl } = ground;
  const args = steps.login.map((one) => (one === "URL" ? `${httpUrl}/mcp` : one));
  const interactive = steps.keys === undefined ? [] : program.args.filter((one) => one !== "-p");
  const pty = new Pty([...program.command, ...interactive, ...args], {
    folder: work,
    env: program.env,
    columns: 200,
    rows: 50,
  });
  const ended = { code: undefined as number | null | undefined };
  void pty.exited.then((code) => {
    ended.code = code;
  });
  const screen = (): string => pty.text().replaceAll(/\s+/g, " ").slice(-SCREEN_CHARS);
  puppet.end();
  for (const { after, typed: keys } of steps.keys ?? []) {
    await untilSeen(
      () => `the screen does not show ${after}: ${screen()}`,
      () => after.test(pty.screen()) || undefined,
    );
    pty.type(keys);
  }
  const address = await untilSeen(
    () => `it opens no browser: ${screen()}`,
    () => (existsSync(opened) ? readFileSync(opened, "utf8").split("\n")[0] : undefined),
  );
  const registration = await consent(ground, address);
  await untilSeen(
    () => `it does not finish: ${screen()}`,
    () => (steps.done === undefined ? ended.code !== undefined : steps.done.test(pty.text())) || undefined,
  );
  if (steps.done === undefined && ended.code !== 0) throw new Error(`code ${ended.code}: ${screen()}`);
  await cleanUp();
  return registration;
}

/** Lets the program's model call a tool. Throws if the answer is not that of the gateway. */
async function callTool({ agent, program, steps, work }: Ground): Promise<void> {
  const command = [...program.command, ...program.args, ...(steps.allow ?? [])];
  const started = { name: agent.name, command, env: program.env, cwd: work };
  const answer = await withProgram(started, puppet, (tool) => tool("sessions_list", {}));
  if (!answer.includes("agent:main:mcp:")) throw new Error(`sessions_list: ${answer.slice(0, SHOWN_CHARS)}`);
}

/** Returns the row of a program. */
async function tryOne(ground: Ground): Promise<{ ok: boolean; row: string }> {
  const { agent, steps, client } = ground;
  const { packageName, version } = agent.headless;
  const cells = [`${agent.name}, \`${packageName}\` ${version}`, steps.shown];
  try {
    await add(ground);
    const registration = await login(ground);
    await callTool(ground);
    const { tokens } = await client.request("tokens.list");
    const names = tokens.map(({ name }) => name).join(", ");
    for (const { id } of tokens) await client.request("tokens.revoke", { id });
    return { ok: true, row: `| ${[...cells, registration, `yes, as ${names}`].join(" | ")} |` };
  } catch (error) {
    const why = (error as Error).message.replaceAll(/\s+/g, " ").replaceAll("|", "\\|");
    process.stderr.write(`${why}\n`);
    return { ok: false, row: `| ${[...cells, "", `no: ${why.slice(0, SHOWN_CHARS)}`].join(" | ")} |` };
  } finally {
    await cleanUp();
  }
}

const known = CODING_AGENTS.filter(({ name }) => STEPS[name] !== undefined);
const USAGE = `npm run conformance:oauth -- [options]
  --dir DIR    install into DIR, and reuse it the next time
  --only NAME  try only this program: ${known.map(({ name }) => name).join(", ")}
  --print      do not write docs/reference/TRIED.md`;
const values = typed(USAGE, {
  dir: { type: "string" },
  only: { type: "string" },
  print: { type: "boolean" },
});
const folder = resolve(values.dir ?? mkdtempSync(join(tmpdir(), "parley-coding-agents-")));
const home = mkdtempSync(join(tmpdir(), "parley-sign-ins-"));
const puppet = new Puppet();
const server = await startModelServer((request) => puppet.answer(request));
const rows: string[] = [];
let fine = true;
try {
  await withGateway(join(home, "gateway"), {}, async (gateway) => {
    for (const agent of known.filter(({ name }) => values.only === undefined || values.only === name)) {
      await installAgent(agent, folder);
      process.stderr.write(`${agent.name} …\n`);
      const { ok, row } = await tryOne(prepareGround(gateway, server, agent, home));
      fine &&= ok;
      rows.push(row);
    }
  });
} finally {
  await closeBrowser();
  await server.close();
  rmSync(home, { recursive: true, force: true });
  if (values.dir === undefined) rmSync(folder, { recursive: true, force: true });
}
const table = ["| program | login | registration | signed in |", "|---|---|---|---|", ...rows];
console.log(table.join("\n"));
if (values.print !== true && values.only === undefined) writeTable(PAGE, "sign-ins", table);
process.exitCode = fine ? 0 : 1;
