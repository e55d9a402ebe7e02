// Makes the state of OpenClaw that tests/features/import reads, with the real program:
// `npm run import:source`.
// Installs the program from the npm registry (about a gigabyte) into a temporary folder, or into
// `--dir FOLDER`, which is reused the next time. Runs its gateway on the tests' model server, lets two agents
// answer, adds jobs, pairs a node host, and lets people write to two bots on the tests' Telegram server.
// Keeps only the rows that the import reads: others hold keys and facts of the machine. Of the workspaces it
// keeps the names of the files that the program made, with texts of the tests.

import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { cleanUp } from "../tests/kit/cleanup.ts";
import { startModelServer } from "../tests/kit/model-server/server.ts";
import { startTelegram, type TelegramServer } from "../tests/kit/platforms/telegram/server.ts";
import type { FakeBot } from "../tests/kit/platforms/telegram/state.ts";
import { typed } from "../tests/kit/typed.ts";
import { install } from "./coding-agents.ts";

const run = promisify(execFile);
const VERSION = "2026.9.6";
const TARGET = resolve(`tests/features/import/openclaw-${VERSION}`);
const PORT = 18790;
const LOOK_MS = 500;
const LOOKS_MAX = 240;
const FILES = [
  "agents/main/agent/openclaw-agent.sqlite",
  "agents/research/agent/openclaw-agent.sqlite",
  "state/openclaw.sqlite",
];
const KEPT = new RegExp(
  "^(session_nodes|session_windows|transcript_events|schema_meta|cron_jobs|device_pairing_paired" +
    "|cron_job_scratch|channel_pairing_(requests|allow_entries)|current_conversation_bindings)$",
);
/** In the files that are kept, a server of the tests has this address. */
const NO_ADDRESS = "http://127.0.0.1:1";
const [FIRST_TOKEN, WORK_TOKEN] = [9001, 9002].map((id) => `${id}:${"a-bot-of-the-tests-".repeat(2)}`);
const [OWNER, GROUP] = [4711, -1001];

const configOf = (modelUrl: string) => ({
  gateway: { mode: "local", port: PORT, bind: "loopback", auth: { mode: "token", token: "of-the-source" } },
  models: {
    providers: {
      test: {
        ...{ baseUrl: `${modelUrl}/openai/v1`, apiKey: "a-key-for-tests", api: "openai-completions" },
        models: ["test-model", "spare-model"].map((id) => {
          return { id, name: id, contextWindow: 100_000, maxTokens: 4_000 };
        }),
      },
    },
  },
  agents: {
    ownership: "explicit",
    defaults: {
      model: { primary: "test/test-model", fallbacks: ["test/spare-model"] },
      systemAgent: { agentId: "main" },
      heartbeat: { every: "45m", target: "last" },
    },
    entries: { main: {}, research: {} },
  },
  session: { reset: { mode: "daily", atHour: 4 } },
});

interface Program {
  readonly bin: string;
  readonly home: string;
}

const envOf = ({ home }: Program) => ({
  PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
  HOME: home,
  NO_COLOR: "1",
});

async function said(program: Program, ...args: string[]): Promise<string> {
  const { stdout } = await run(process.execPath, [program.bin, ...args], {
    env: envOf(program),
    cwd: program.home,
  });
  return stdout;
}

/** Runs the program until `work` is done. */
async function during(
  program: Program,
  args: readonly string[],
  work: (shown: () => string) => Promise<void>,
): Promise<void> {
  const child = spawn(process.execPath, [program.bin, ...args], { env: envOf(program), cwd: program.home });
  const ended = once(child, "exit");
  let text = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (bytes: Buffer) => {
      text += bytes.toString();
    });
  try {
    await work(() => text);
  } finally {
    child.kill("SIGTERM");
    await ended;
  }
}

async function until<T>(look: () => Promise<T | undefined>): Promise<T> {
  for (let looks = 0; looks < LOOKS_MAX; looks += 1) {
    const found = await look();
    if (found !== undefined) return found;
    await new Promise((done) => setTimeout(done, LOOK_MS));
  }
  throw new Error(`not seen: ${look}`);
}

/** Adds two bots, their agents and their allow lists, with the program's own commands. */
async function addBots(program: Program, apiRoot: string): Promise<void> {
  const add = (token = "", ...more: string[]) =>
    said(program, "channels", "add", "--channel", "telegram", "--token", token, ...more);
  await add(FIRST_TOKEN);
  await add(WORK_TOKEN, "--account", "work");
  const settings = {
    "channels.telegram.apiRoot": apiRoot,
    "channels.telegram.allowFrom": [String(OWNER)],
    "channels.telegram.groups": { [String(GROUP)]: { requireMention: false } },
  };
  for (const [path, value] of Object.entries(settings))
    await said(program, "config", "set", path, JSON.stringify(value), "--strict-json");
  await said(program, "agents", "bind", "--agent", "research", "--bind", "telegram:work");
  await said(program, "agents", "bind", "--agent", "main", "--bind", "telegram:default");
}

/** Lets a person write to a bot, and waits for the bot's answer. */
async function write(
  telegram: TelegramServer,
  bot: FakeBot,
  from: number,
  text: string,
  chatId = from,
): Promise<void> {
  const isGroup = chatId < 0;
  if (!telegram.chats.has(chatId))
    telegram.addChat({ id: chatId, type: isGroup ? "supergroup" : "private", title: "Team" });
  const { length } = telegram.sent;
  const chat = { id: chatId, ...(isGroup ? { type: "supergroup", title: "Team" } : { type: "private" }) };
  const sender = { id: from, is_bot: false, first_name: `Person ${from}` };
  telegram.nextMessageId += 1;
  const message = { message_id: telegram.nextMessageId, date: Math.floor(Date.now() / 1_000) };
  telegram.push(bot, { message: { ...message, chat, from: sender, text } });
  const isAnswered = () => telegram.sent.slice(length).some((sent) => sent.chatId === chatId);
  await until(async () => isAnswered() || undefined);
}

/** Lets the owner write directly and in a group. Of three strangers, two are paired. */
async function meetPeople(program: Program, telegram: TelegramServer, bots: FakeBot[]): Promise<void> {
  const [first, work] = bots;
  if (first === undefined || work === undefined) throw new Error("no bots");
  await write(telegram, first, OWNER, "hello from telegram");
  await write(telegram, first, OWNER, "hello from the group", GROUP);
  for (const [bot, person] of [
    [first, 801],
    [first, 802],
    [work, 803],
  ] as const)
    await write(telegram, bot, person, "may I?");
  for (const [account, person] of [
    ["default", 801],
    ["work", 803],
  ] as const) {
    const { requests } = JSON.parse(
      await said(program, "pairing", "list", "telegram", "--account", account, "--json"),
    ) as { requests: { id: string; code: string }[] };
    const { code = "" } = requests.find(({ id }) => id === String(person)) ?? {};
    await said(program, "pairing", "approve", "telegram", code, "--account", account);
  }
}

async function fill(program: Program): Promise<void> {
  await said(program, "agent", "--agent", "main", "--message", "hello from the source");
  await said(program, "agent", "--agent", "research", "--message", "what is new in research?");
  const job = ["--agent", "research", "--session", "isolated", "--message", "what is new?", "--no-deliver"];
  const weekdays = ["--cron", "30 7 * * 1-5", "--tz", "Europe/Berlin"];
  await said(program, "cron", "add", "--name", "Morning", ...weekdays, ...job);
  const event = ["--session", "main", "--agent", "main", "--system-event", "look"];
  await said(program, "cron", "add", "--name", "Main", "--every", "1h", ...event);
  const { jobs } = JSON.parse(await said(program, "cron", "list", "--all", "--json")) as {
    jobs: { id: string; declarationKey?: string }[];
  };
  const heartbeat = jobs.find(({ declarationKey }) => declarationKey?.startsWith("heartbeat:"));
  await said(program, "cron", "scratch", heartbeat?.id ?? "", "--set", "Look at the garden.");
  const host = ["node", "run", "--host", "127.0.0.1", "--port", String(PORT), "--display-name", "Attic"];
  await during(program, host, async () => {
    const requestId = await until(async () => {
      const pending = JSON.parse(await said(program, "nodes", "pending", "--json"));
      return pending[0]?.requestId as string | undefined;
    });
    await said(program, "nodes", "approve", requestId);
  });
}

/** Adds an MCP server, and settings with which the program itself would need Docker. */
async function finish(program: Program): Promise<void> {
  const server = { command: "notes-server", args: ["--stdio"], env: { NOTES: "of-the-tests" } };
  await said(program, "mcp", "set", "notes", JSON.stringify(server));
  await said(program, "config", "set", "agents.defaults.sandbox.mode", "non-main");
}

/** Returns the files of the agents' workspaces by path, with a text of the tests instead of the program's. */
function workspaceFiles(state: string): Record<string, string> {
  const own = { "MEMORY.md": "The garden has a gate.", "memory/2026-01-20.md": "Rain.", "USER.md": "" };
  for (const [path, text] of Object.entries(own)) {
    mkdirSync(dirname(join(state, "workspace-main", path)), { recursive: true });
    appendFileSync(join(state, "workspace-main", path), text);
  }
  const paths = readdirSync(state, { recursive: true, encoding: "utf8" }).filter((path) =>
    /^workspace[^/]*\/(?!\.)[^.]+\.md$/.test(path),
  );
  return Object.fromEntries(paths.sort().map((path) => [path, `text of ${path}`]));
}

/** Deletes the other rows of a copy, and the folder in which the program is installed. */
function trimmed(file: string, installed: string): Buffer {
  const database = new DatabaseSync(file, { enableForeignKeyConstraints: false });
  const tables = database.prepare("select name, sql from sqlite_master where type = 'table'").all();
  const triggers = database.prepare("select name from sqlite_master where type = 'trigger'").all();
  for (const { name } of triggers) database.exec(`drop trigger "${name}"`);
  const virtual = tables
    .filter(({ sql }) => String(sql).startsWith("CREATE VIRTUAL"))
    .map(({ name }) => name);
  for (const name of virtual) database.exec(`drop table "${name}"`);
  for (const { name } of tables) {
    const isShadow = virtual.some((one) => String(name).startsWith(String(one)));
    if (!isShadow && !KEPT.test(String(name))) database.exec(`delete from "${name}"`);
  }
  if (tables.some(({ name }) => name === "session_nodes"))
    database.prepare("update session_nodes set entry_json = replace(entry_json, ?, '/opt')").run(installed);
  database.exec("pragma journal_mode = delete; vacuum");
  database.close();
  return gzipSync(readFileSync(file), { level: 9 });
}

const values = typed("npm run import:source -- [--dir DIR]", { dir: { type: "string" } });
const folder = resolve(values.dir ?? mkdtempSync(join(tmpdir(), "openclaw-")));
const home = mkdtempSync(join(tmpdir(), "openclaw-home-"));
const models = await startModelServer(() => "noted");
const telegram = await startTelegram();
const bots = [FIRST_TOKEN, WORK_TOKEN].map((token, at) => telegram.addBot(token ?? "", `bot_${at}_bot`));
try {
  await install(folder, { dependencies: { openclaw: VERSION } }, ["--ignore-scripts"]);
  const program = { bin: join(folder, "node_modules/openclaw/openclaw.mjs"), home };
  const state = join(home, ".openclaw");
  mkdirSync(state, { mode: 0o700 });
  writeFileSync(join(state, "openclaw.json"), JSON.stringify(configOf(models.url)), { mode: 0o600 });
  await addBots(program, telegram.url);
  await during(program, ["gateway", "run"], async (shown) => {
    await until(async () => (/\[gateway\] ready/.test(shown()) ? true : undefined));
    await fill(program);
    await meetPeople(program, telegram, bots);
  });
  await finish(program);
  rmSync(TARGET, { recursive: true, force: true });
  mkdirSync(TARGET);
  writeFileSync(join(TARGET, "workspaces.json"), `${JSON.stringify(workspaceFiles(state), undefined, 2)}\n`);
  const config = readFileSync(join(state, "openclaw.json"), "utf8");
  const kept = config.replaceAll(models.url, NO_ADDRESS).replaceAll(telegram.url, NO_ADDRESS);
  writeFileSync(join(TARGET, "openclaw.json"), kept);
  for (const path of FILES) {
    const name = `${path.replaceAll("/", "--")}.gz`;
    writeFileSync(join(TARGET, name), trimmed(join(state, path), join(folder, "node_modules")));
  }
  const made = `Made by openclaw ${VERSION} from npm, with \`npm run import:source\`.\n`;
  writeFileSync(join(TARGET, "README.md"), made);
} finally {
  await models.close();
  await cleanUp();
  rmSync(home, { recursive: true, force: true });
  if (values.dir === undefined) rmSync(folder, { recursive: true, force: true });
}
