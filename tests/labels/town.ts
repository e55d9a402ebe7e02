// A gateway among the places of a small company: web pages, MCP servers, chats of the owner, of the team and of
// guests, and a web server of a thief. The model is `obedientModel`. Everything that leaves is recorded.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Provenance } from "../../src/core/shapes/message.ts";
import type { RunInput } from "../../src/core/shapes/run.ts";
import type { Settings } from "../../src/core/shapes/settings/settings.ts";
import { getSession, insertSession } from "../../src/store/queries/sessions/sessions.ts";
import { type House, openHouse } from "../gateway/kit.ts";
import { cleanup, temporaryFolder } from "../kit/cleanup.ts";
import { type HttpHere, serveHttp } from "../kit/loopback.ts";
import { type PeopleChannel, peopleChannel, telegramAccount } from "../kit/platforms/people-channel.ts";
import { until } from "../kit/until.ts";
import { sampleSession } from "../store/samples.ts";
import { agentSettings } from "../tools/app.ts";
import { httpServer, mcpWith } from "../tools/mcp-kit.ts";
import { obedientModel, type Step } from "./obedient.ts";
import { GUEST_SESSION, HOOK_TOKEN, MAIN, OWNER } from "./stage.ts";

export const TEAM = { channel: "telegram", to: "-200" } as const;
const FROM_PEER: Provenance = {
  kind: "inter_session",
  sourceSessionKey: "peer:acme/agent:main:main",
  sourceTool: "sessions_send",
  chainId: "of-acme",
  hop: 1,
};
const GROUP = { enabled: true, requireMention: false };
/** Tools of a server by name, each with its answer or description. */
export type Servers = Readonly<
  Record<
    string,
    Readonly<Record<string, { readonly says?: () => string; readonly description?: string } | undefined>>
  >
>;

export interface TownOptions {
  readonly labels?: Partial<Settings["labels"]>;
  readonly servers?: Servers;
  /** Pages of the web by path. Each first part of a path is a site of its own, with its own host. */
  readonly pages?: Record<string, string>;
  /** Answer to questions about labels. Commands are always allowed. Default allow. */
  readonly answer?: "allow" | "deny";
  /** Folder of a town that was closed. Its store and its workspaces are used again. */
  readonly folder?: string;
}

export interface Call {
  readonly tool: string;
  readonly args: string;
}

export interface Town {
  readonly house: House;
  readonly client: Awaited<ReturnType<House["client"]>>;
  /** Folder with the workspaces of main, coder and writer. */
  readonly folder: string;
  readonly telegram: PeopleChannel;
  readonly pages: Record<string, string>;
  /** Paths that were read from the company's web, and from the thief's server. */
  readonly visits: string[];
  readonly thefts: string[];
  readonly calls: Call[];
  /** Titles of the questions about labels, and of changes of memories and instructions that waited. */
  readonly questions: string[];
  web(path: string): string;
  thief(path: string): string;
  plan(name: string, steps: readonly Step[]): void;
  /** Sends as the owner. */
  tell(message: string, sessionKey?: string): Promise<void>;
  /** Sends as the owner from the chat on the phone. */
  phone(message: string): Promise<void>;
  /** Sends as a guest in the guests' group. */
  guest(message: string): Promise<void>;
  hook(message: string): Promise<void>;
  /** Sends as an agent of the gateway of another company. */
  peer(message: string): Promise<void>;
  /** Accepts the message of the last run again, which failed. */
  retry(): Promise<void>;
  /** Makes a job and starts it. `to`: telegram chat that gets the answer. */
  cron(message: string, to: string): Promise<void>;
  /** Answers questions until nothing runs. */
  quiet(): Promise<void>;
}

/** Answers requests of MCP clients for all servers. */
function answerMcp(servers: Servers, name: string, message: McpMessage, calls: Call[]): object | undefined {
  const tools = servers[name] ?? {};
  const serverInfo = { name, version: "1" };
  switch (message.method) {
    case "initialize":
      return { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo };
    case "tools/list":
      return {
        tools: Object.entries(tools).map(([tool, more]) => ({
          name: tool,
          description: more?.description ?? "A tool.",
          inputSchema: { type: "object" },
        })),
      };
    case "tools/call": {
      const { name: tool = "", arguments: args } = message.params ?? {};
      calls.push({ tool: `${name}.${tool}`, args: JSON.stringify(args) });
      return { content: [{ type: "text", text: tools[tool]?.says?.() ?? "ok" }] };
    }
    default:
      return undefined;
  }
}

interface McpMessage {
  readonly id?: number;
  readonly method?: string;
  readonly params?: { readonly name?: string; readonly arguments?: object };
}

const siteOf = (path: string): string => path.split("/", 2).join("/");

export async function openTown(options: TownOptions = {}): Promise<Town> {
  const { labels = {}, servers = {}, pages = {}, answer = "allow" } = options;
  const folder = options.folder ?? temporaryFolder();
  const agents = ["main", "coder", "writer"].map((id) =>
    agentSettings(id, { workspace: join(folder, id), subagents: { allowAgents: ["*"] } }),
  );
  for (const { workspace } of agents) mkdirSync(workspace, { recursive: true });
  const [visits, thefts, calls, questions]: [string[], string[], Call[], string[]] = [[], [], [], []];
  const plans = new Map<string, readonly Step[]>();
  const sites = new Map<string, HttpHere>();
  for (const site of new Set(Object.keys(pages).map(siteOf))) {
    const web = await serveHttp((request, response) => {
      const path = request.url ?? "";
      visits.push(path);
      response.writeHead(200, { "content-type": "text/html" }).end(pages[path] ?? "An empty page.");
    });
    cleanup(() => web.close());
    sites.set(site, web);
  }
  const server = await serveHttp(async (request, response) => {
    const path = request.url ?? "";
    let text = "";
    for await (const chunk of request) text += String(chunk);
    if (text === "") return response.writeHead(405).end();
    const message = JSON.parse(text) as McpMessage;
    const result = answerMcp(servers, path.slice("/mcp/".length), message, calls);
    if (result === undefined) return response.writeHead(message.id === undefined ? 202 : 400).end();
    response.writeHead(200, { "content-type": "application/json" });
    return response.end(JSON.stringify({ jsonrpc: "2.0", id: message.id, result }));
  });
  const lair = await serveHttp((request, response) => {
    thefts.push(request.url ?? "");
    response.writeHead(200, { "content-type": "text/plain" }).end("ok");
  });
  cleanup(() => server.close());
  cleanup(() => lair.close());
  const telegram = peopleChannel();
  const house = await openHouse({
    dir: join(folder, "store"),
    model: obedientModel(plans),
    channels: [telegram],
    choices: {
      agents,
      channels: [telegramAccount("default", { groups: { "-100": GROUP, "-200": GROUP } })],
      owners: [OWNER],
      labels,
      features: { hooks: { enabled: true, token: HOOK_TOKEN } },
      tools: {
        visibility: "all",
        agentToAgent: { enabled: true, allow: [] },
        fetch: { allowHosts: [...sites.values(), lair].map(({ port }) => `127.0.0.1:${port}`) },
        mcp: mcpWith(
          Object.keys(servers).map((name) => httpServer(name, `http://127.0.0.1:${server.port}/mcp/${name}`)),
        ),
        // Without `approval`, the default counts: commands that do more than read need an owner.
        exec: { timeoutSeconds: 60, maxOutputBytes: 64_000, askSeconds: 300 },
      },
    },
  });
  const client = await house.client();
  if ((await getSession(house.store.db, GUEST_SESSION)) === undefined)
    await house.store.transaction((tx) =>
      insertSession(tx, {
        ...sampleSession(),
        ...{ key: GUEST_SESSION, sessionId: "session-of-the-group", kind: "group" },
        lastRoute: { channel: "telegram", to: "-100", accountId: "default" },
      }),
    );
  const { db } = house.store;
  const isBusy = async (): Promise<boolean> => {
    const runs = db.selectFrom("runs").select("run_id").where("ended_at", "is", null);
    return (await runs.executeTakeFirst()) !== undefined;
  };
  const answerAll = async (): Promise<void> => {
    const { permissions, instructions } = await client.request("permissions.list", {});
    for (const { id, kind, title } of permissions) {
      const isAboutLabels = kind === "labels";
      if (isAboutLabels) questions.push(title);
      await client.request("permissions.answer", { id, decision: isAboutLabels ? answer : "allow" });
    }
    for (const { id, path } of instructions as readonly { id: string; path: string }[]) {
      questions.push(`change of ${path}`);
      await client.request("permissions.answer", { id, decision: answer });
    }
  };
  const quiet = async (): Promise<void> => {
    await until(async () => {
      await answerAll();
      return !(await isBusy());
    });
  };
  const accept = async (sessionKey: string, to: string, input: RunInput): Promise<void> => {
    const route = { channel: "telegram", to, accountId: "default" };
    const accepted = await house.engine.accept({ sessionKey, input, route });
    if (!accepted.ok) throw new Error(accepted.error);
    await quiet();
  };
  return {
    ...{ house, client, folder, telegram, pages, visits, thefts, calls, questions, quiet },
    web: (path) => `${sites.get(siteOf(path))?.origin}${path}`,
    thief: (path) => `${lair.origin}${path}`,
    plan: (name, steps) => void plans.set(name, steps),
    async tell(message, sessionKey = MAIN) {
      await client.request("chat.send", { sessionKey, message });
      await quiet();
    },
    phone: (text) => accept(MAIN, "1", { text, sender: OWNER }),
    guest: (text) => accept(GUEST_SESSION, "-100", { text, guest: true, sender: "telegram:222" }),
    peer: (text) => accept(MAIN, "1", { text, guest: true, provenance: FROM_PEER }),
    async retry() {
      const runs = db.selectFrom("runs").select("run_id").orderBy("accepted_at", "desc");
      const last = await runs.orderBy("run_id", "desc").executeTakeFirstOrThrow();
      await client.request("runs.retry", { runId: last.run_id });
      await quiet();
    },
    async hook(message) {
      await fetch(`${house.http}/hooks/agent`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${HOOK_TOKEN}` },
        body: JSON.stringify({ message, agentId: "main" }),
      });
      await quiet();
    },
    async cron(message, to) {
      const { job } = await client.request("cron.add", {
        schedule: { kind: "every", everyMs: 86_400_000 },
        message,
        deliver: { channel: "telegram", to },
      });
      await client.request("cron.run", { id: job.id });
      await quiet();
    },
  };
}
