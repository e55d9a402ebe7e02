// The environment that the commands of each document need: steps of the reader, fakes, and values of
// placeholders. Default: three agents that may reach each other and use the offline model.

import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import JSON5 from "json5";
import { once } from "../../src/core/once.ts";
import type { Finished } from "../cli/kit.ts";
import { Talk } from "../features/import/source.ts";
import { openExposed } from "../gateway/clients/a2a.ts";
import { TOKEN } from "../gateway/kit.ts";
import { ACP_AGENT } from "../kit/acp-agent.ts";
import { cleanup } from "../kit/engine/engine.ts";
import { SECRET, startReceiver } from "../kit/hook-receiver.ts";
import { startTelegram, type TelegramServer } from "../kit/platforms/telegram/server.ts";
import { freshUrl } from "../store/transfer/moves.ts";
import { Ground } from "./ground.ts";
import { type Page, readPage } from "./page.ts";
import { readDocument } from "./pages.ts";
import { Phone } from "./phone.ts";

type Json = Record<string, unknown>;

export interface Scene {
  /**
   * `reader`: the document starts the gateway. `mortal`: the document also kills the gateway, which is
   * therefore a separate process. By default a gateway runs before the first command.
   */
  readonly gateway?: "none" | "reader" | "mortal";
  readonly config?: (page: Page, ground: Ground) => Json | undefined | Promise<Json>;
  readonly env?: Readonly<Record<string, string>>;
  /** Values of the placeholders that a reader replaces. */
  readonly words?: Readonly<Record<string, (ground: Ground) => string | Promise<string>>>;
  /** Text that a person types into a command. */
  readonly input?: Readonly<Record<string, string>>;
  /**
   * Steps that the document tells the reader to take before a command. The key is the beginning of the
   * command.
   */
  readonly before?: Readonly<Record<string, (ground: Ground, page: Page) => void | Promise<void>>>;
  /**
   * Commands that run until they are stopped, with the output that shows that they have started. The key
   * is the beginning of the command.
   */
  readonly lasting?: Readonly<Record<string, RegExp>>;
  /** Commands that the reader runs at another gateway. The key is the beginning of the command. */
  readonly elsewhere?: Readonly<Record<string, (command: string) => Promise<Finished>>>;
  /** Plays a conversation on the phone. Returns the text that differs from the document. */
  readonly phone?: (ground: Ground, lines: readonly string[]) => Promise<string | undefined>;
}

const THREE_AGENTS: Json = {
  agents: { list: [{ id: "main", default: true }, { id: "research" }, { id: "ops" }] },
  tools: { sessions: { visibility: "all" }, agentToAgent: { enabled: true } },
};

/** Parses the document's configuration (a JSON5 block) at index `number`. */
export function ownConfig(page: Page, number = 0): Json {
  const block = page.blocks.filter(({ language }) => language === "json5")[number];
  if (block === undefined) throw new Error("there is no such configuration");
  return JSON5.parse(block.text) as Json;
}

/** Starts the other gateway of docs/PEERING.md, with its configuration. */
const lab = once(async () => {
  const ground = await Ground.open();
  ground.configure(ownConfig(readPage(readDocument("docs/PEERING.md"))));
  await ground.start();
  return ground;
});

/** The pairing code that `lab` has printed. */
let labCode = "";

async function runAtLab(command: string): Promise<Finished> {
  const done = await (await lab()).run(command);
  labCode = /--code (\S+)/.exec(done.out)?.[1] ?? "";
  return done;
}

/** Restarts the gateway with the agent elsewhere of docs/A2A.md, at a gateway that exposes it. */
async function joinFar(ground: Ground, page: Page): Promise<void> {
  const { http } = await openExposed();
  const { keys } = (await (await fetch(`${http}/a2a/jwks.json`)).json()) as { keys: { kid: string }[] };
  const config = ownConfig(page, 1) as { agents: { list: { id: string; runtime?: Json }[] } };
  const list = config.agents.list.map(({ runtime, ...agent }) =>
    runtime === undefined
      ? agent
      : { ...agent, runtime: { ...runtime, card: `${http}/a2a/research`, key: keys[0]?.kid, token: TOKEN } },
  );
  await ground.stop();
  ground.configure({ ...config, agents: { list } });
  await ground.start();
}

const moment = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 25));

/** Returns the first id that a command of Parley prints as JSON. */
async function first(ground: Ground, list: string, ...words: string[]): Promise<string> {
  for (let tries = 0; tries < 400; tries += 1) {
    const [row] = (await ground.json(words))[list] as { id?: string; code?: string }[];
    const found = row?.id ?? row?.code;
    if (found !== undefined) return found;
    await moment();
  }
  throw new Error(`nothing to see with parley ${words.join(" ")}`);
}

/** Returns the id of the second job, because the documents name the first one. */
async function cronId(ground: Ground): Promise<string> {
  const { jobs } = await ground.json(["cron"]);
  return (jobs as { id: string }[])[1]?.id ?? "";
}

export const BOT_TOKEN = "123456789:AAH-not-a-real-token-of-any-bot-0";

/** Starts a fake platform with a bot to which Ada has written; returns the bot's configuration. */
async function bot(): Promise<string> {
  return (await platform()).url;
}

async function platform(): Promise<TelegramServer> {
  const server = await startTelegram();
  cleanup(() => server.close());
  const one = server.addBot(BOT_TOKEN, "parley_test_bot");
  server.addChat({ id: 1001, type: "private" });
  const from = { id: 1001, is_bot: false, first_name: "Ada" };
  const chat = { id: 1001, type: "private", first_name: "Ada" };
  server.push(one, { message: { message_id: 1, date: 1_790_000_000, chat, from, text: "hello" } });
  return server;
}

/** Sends Ada's next message. */
function writes(server: TelegramServer, text: string): void {
  const [one] = server.bots;
  if (one === undefined) throw new Error("there is no bot");
  server.nextMessageId += 10;
  const from = { id: 1001, is_bot: false, first_name: "Ada" };
  const chat = { id: 1001, type: "private", first_name: "Ada" };
  server.push(one, { message: { message_id: server.nextMessageId, date: 1_790_000_000, chat, from, text } });
}

/** The bot of the how-to; all commands of that document share it. */
let howToBot: TelegramServer | undefined;

/** The phone of the tour. */
let phone: Phone | undefined;

function leaveClawState({ home }: Ground): void {
  const talk = new Talk();
  talk.user("how do you do?");
  talk.assistant("very well");
  const id = "11111111-1111-4111-8111-111111111111";
  const folder = join(home, ".openclaw", "agents", "main", "sessions");
  mkdirSync(folder, { recursive: true });
  const sessions = {
    "agent:main:main": { sessionId: id, updatedAt: Date.parse("2026-01-20T10:00:00.000Z") },
  };
  writeFileSync(join(folder, "sessions.json"), JSON.stringify(sessions));
  const header = { type: "session", version: 3, id, timestamp: "2026-01-20T10:00:00.000Z", cwd: "/srv/x" };
  writeFileSync(
    join(folder, `${id}.jsonl`),
    [header, ...talk.lines].map((line) => JSON.stringify(line)).join("\n"),
  );
}

/** Fakes the machine's service manager: it reports parley's service as running. */
async function services(ground: Ground): Promise<void> {
  await ground.stop();
  ground.program(
    "systemctl",
    "case $* in *show*parley*) echo ActiveState=active; echo SubState=running;; esac",
  );
  ground.program("loginctl", "");
}

/** Creates a sub-agent's job and a conversation, so that commands have output. */
async function talk(ground: Ground): Promise<void> {
  await ground.run('parley send --session main --wait 20 "spawn: say it is done"');
  await ground.run('parley send --session main --wait 20 "ask research: what comes first?"');
}

export const SCENES: Readonly<Record<string, Scene>> = {
  "README.md": { gateway: "reader", config: () => undefined },
  "docs/CHANNELS.md": {
    config: () => undefined,
    before: {
      "npx parley-gateway channels add telegram": async (ground) => {
        ground.facts.apiRoot = await bot();
      },
      "npx parley-gateway channels  ": async (ground) => {
        await ground.stop();
        await ground.start();
      },
    },
    words: {
      "add telegram": ({ facts }) => `add telegram --set botToken=${BOT_TOKEN} apiRoot=${facts.apiRoot}`,
      K7QX2MRD: (ground) => first(ground, "peers", "channels", "pair"),
    },
  },
  "CONTRIBUTING.md": { gateway: "reader", config: () => undefined },
  "docs/TOUR.md": {
    gateway: "mortal",
    config: () => undefined,
    input: { "npx parley-gateway chat": "list sessions\n" },
    before: {
      // A newcomer has no configuration file.
      "npx parley-gateway init": ({ configPath }) => rmSync(configPath),
      "npx parley-gateway channels add": async () => {
        phone = await Phone.open(BOT_TOKEN);
      },
    },
    words: {
      "botToken=TOKEN": () => `botToken=${BOT_TOKEN} apiRoot=${phone?.url}`,
      K7QX2MRD: (ground) => first(ground, "peers", "channels", "pair"),
    },
    phone: (_, lines) => phone?.play(lines) ?? Promise.resolve("no bot is set up"),
  },
  "docs/ACP.md": {
    config: (page) => {
      const config = ownConfig(page) as {
        agents: { list: { id: string; runtime?: Json; workspace?: string }[] };
      };
      const coder = config.agents.list.find(({ id }) => id === "coder");
      if (coder?.runtime === undefined) throw new Error("the document has no coder any more");
      coder.runtime.command = [...ACP_AGENT];
      return { ...config, tools: THREE_AGENTS.tools };
    },
    before: {
      "npx parley-gateway permissions": async (ground) => {
        if (ground.facts.asked !== undefined) return;
        ground.facts.asked = "yes";
        await ground.run('parley send --session agent:coder:main "ask"');
      },
    },
    words: {
      "6f1c0a52-0000-4000-8000-000000000000": (ground) => first(ground, "permissions", "permissions"),
    },
  },
  "docs/CRON.md": { words: { ID: cronId } },
  "docs/INCOMING.md": {
    config: (page) => ownConfig(page),
    env: { HOOKS_TOKEN: "a-token-of-the-documents" },
  },
  "docs/CODING-AGENTS.md": {
    config: (page, { home }) => {
      const shop = join(home, "projects", "shop");
      mkdirSync(shop, { recursive: true });
      execFileSync("git", ["init", "--quiet", shop]);
      return ownConfig(page, 1);
    },
    before: {
      "npx parley-gateway permissions  ": async (ground, page) => {
        await ground.stop();
        const config = ownConfig(page, 2) as { agents: { list: { runtime: Json }[] } };
        for (const { runtime } of config.agents.list) runtime.command = [...ACP_AGENT];
        ground.configure(config);
        await ground.start();
        await ground.run('parley send --session agent:writer:main "ask"');
      },
    },
    words: {
      "6f1c0a52-0000-4000-8000-000000000000": (ground) => first(ground, "permissions", "permissions"),
    },
  },
  "docs/HOWTO-TELEGRAM-RESEARCH.md": {
    env: { BOT_TOKEN },
    config: async (page) => {
      howToBot = await platform();
      const config = ownConfig(page) as { channels: { telegram: Json } };
      config.channels.telegram = {
        ...{ ...config.channels.telegram, apiRoot: howToBot.url },
        inbound: { debounceMs: 0 },
      };
      return config;
    },
    before: {
      "npx parley-gateway sessions history agent:assistant:main": async (ground) => {
        if (howToBot === undefined) throw new Error("there is no bot");
        const code = await first(ground, "peers", "channels", "pair");
        await ground.run(`parley channels pair approve ${code}`);
        writes(howToBot, "ask research: which database would you take for a small shop?");
        while (!howToBot.sent.some(({ text }) => text?.includes("research answered"))) await moment();
        await ground.run("parley deliveries");
      },
    },
  },
  "docs/HOWTO-EVAL.md": { config: (page) => ownConfig(page) },
  "docs/CLUSTER.md": {
    gateway: "none",
    config: async (page, ground) => {
      ground.env.PARLEY_DATABASE_URL = await freshUrl();
      ground.mortal.add("7276");
      return ownConfig(page);
    },
    env: { PARLEY_TOKEN: "a-token-that-all-of-them-have" },
    words: {
      "postgres://parley:secret@127.0.0.1:5432/parley": ({ env }) => env.PARLEY_DATABASE_URL ?? "",
      // The document waits ten seconds, so that a reader can switch terminals. A test needs only two.
      "wait 10 seconds": () => "wait 2 seconds",
    },
    lasting: { "npx parley-gateway gateway --port": /another terminal/ },
    before: {
      "npx parley-gateway --url ws://127.0.0.1:7277 sessions": ({ kill }) => kill("7276"),
    },
  },
  "docs/IMPORT.md": {
    gateway: "none",
    config: (_, ground) => {
      leaveClawState(ground);
      return undefined;
    },
  },
  "docs/A2A.md": {
    config: (page) => ownConfig(page),
    before: { "npx parley-gateway send --session agent:far:main": joinFar },
  },
  "docs/MCP.md": { before: { "npx parley-gateway mcp": talk } },
  "docs/NODES.md": {
    lasting: { "parley node run": /npx parley-gateway node approve \S{9}/ },
    words: {
      "ws://gateway.example:7275": ({ port }) => `ws://127.0.0.1:${port}`,
      "ABCD-EFGH": (ground) => first(ground, "pending", "node", "pending"),
    },
    before: {
      "npx parley-gateway node invoke": async (ground) => {
        while (!/attic .* connected/.test((await ground.run("parley node")).out)) await moment();
      },
    },
  },
  "docs/PEERING.md": {
    config: (page) => ownConfig(page, 1),
    elsewhere: { "npx parley-gateway peer invite": runAtLab },
    words: {
      "http://lab.example:7275": async () => `http://127.0.0.1:${(await lab()).port}`,
      "ABCD-EFGH-JKLM-NPQR": () => labCode,
    },
  },
  "docs/STORE.md": {
    before: {
      "npx parley-gateway store restore": async (ground) => {
        await ground.stop();
        await ground.run("mv ~/.parley/state ~/.parley/state-before");
      },
    },
    words: { "postgres://parley:secret@127.0.0.1:5432/parley": freshUrl },
  },
  "docs/USAGE.md": { config: (page) => ({ ...ownConfig(page) }) },
  "docs/internals/SIMULATION.md": { gateway: "none" },
  "docs/OPERATIONS.md": { before: { "parley service install": services } },
  "docs/OUTGOING.md": {
    config: async (page) => {
      const { url } = await startReceiver((_, response) => void response.writeHead(400).end());
      const config = ownConfig(page) as { hooks: { outgoing: Json[] } };
      return {
        ...config,
        hooks: { outgoing: config.hooks.outgoing.map((one) => ({ ...one, url, secret: SECRET })) },
      };
    },
    before: {
      "npx parley-gateway deliveries list": async (ground) =>
        void (await ground.run('parley send --session main "hi"')),
    },
    words: { ID: (ground) => first(ground, "deliveries", "deliveries", "list", "--state", "failed") },
  },
};

export const sceneOf = (path: string): Scene => ({ config: () => THREE_AGENTS, ...SCENES[path] });
