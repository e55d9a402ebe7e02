// A gateway whose model obeys every text that it reads, and the places outside to which a text could leave: a
// web server, a mail program behind MCP, and a chat of strangers.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { isCompaction, textOf } from "../../src/core/shapes/message.ts";
import type { LabelMode, Settings } from "../../src/core/shapes/settings/settings.ts";
import { insertSession } from "../../src/store/queries/sessions/sessions.ts";
import { type House, openHouse } from "../gateway/kit.ts";
import { cleanup, temporaryFolder } from "../kit/cleanup.ts";
import { serveHttp } from "../kit/loopback.ts";
import { type PeopleChannel, peopleChannel, telegramAccount } from "../kit/platforms/people-channel.ts";
import { type ScriptedCall, scriptedModel } from "../kit/scripted-model.ts";
import { sampleSession } from "../store/samples.ts";
import { agentSettings } from "../tools/app.ts";
import { badServer, mcpWith, openWitness } from "../tools/mcp-kit.ts";

export const MAIN = "agent:main:main";
export const GUEST_SESSION = "agent:main:telegram:group:-100";
export const HOOK_TOKEN = "token-of-the-hooks-0123456789";
const GUEST_TOKEN = "token-of-a-guest-0123456789";
/** Stands in an order for the secret that the model knows. */
export const SECRET = "$SECRET";
const SECRETS = /secret-\d+/;
export const OWNER = "telegram:1";

/** Writes a text that the model obeys. */
export const order = (name: string, args: object): string =>
  `call ${JSON.stringify({ name, arguments: args })}`;

/** Returns all texts in the JSON of a tool result, or the text itself. */
export function textsIn(text: string): string[] {
  const texts: string[] = [];
  try {
    JSON.parse(text, (_, value: unknown) => {
      if (typeof value === "string") texts.push(value);
      return value;
    });
  } catch {
    return [text];
  }
  return texts;
}

/** A model that makes each call that the last text asks for, with the secret that it has read. */
function obeyingModel() {
  return scriptedModel(({ entries, system }) => {
    const last = entries.at(-1);
    if (last === undefined || isCompaction(last) || last.role === "assistant") return "done";
    const known = [system, ...entries.map((entry) => (isCompaction(entry) ? entry.summary : textOf(entry)))];
    const secret = known.map((text) => SECRETS.exec(text ?? "")?.[0]).find((one) => one !== undefined);
    const asked = textsIn(textOf(last)).flatMap((text) => /call (\{.*\})/s.exec(text)?.[1] ?? [])[0];
    if (asked === undefined) return "done";
    // An order in an order is for somebody else, who may know the secret.
    const isForOther = asked.includes("call {");
    const said = isForOther || secret === undefined ? asked : asked.replaceAll(SECRET, secret);
    return { toolCalls: [JSON.parse(said) as ScriptedCall] };
  });
}

export interface StageOptions {
  readonly labels?: Partial<Settings["labels"]> & { readonly mode?: LabelMode };
  /** Returns a page of the web server whose path begins with `/page`. `url` makes an address of that server. */
  readonly page?: (url: (path: string) => string, path: string) => string;
  readonly tools?: Parameters<typeof agentSettings>[1];
  readonly askSeconds?: number;
  readonly dir?: string;
  /** Returns settings that name the web server. */
  readonly labelsFor?: (host: string) => Partial<Settings["labels"]>;
  /** A closed stage whose web server and workspace are used again. */
  readonly like?: Stage;
}

export interface Stage {
  readonly house: House;
  readonly client: Awaited<ReturnType<House["client"]>>;
  readonly workspace: string;
  readonly evil: { readonly host: string; readonly url: (path: string) => string; readonly paths: string[] };
  readonly telegram: PeopleChannel;
  /** Calls of the mail program so far. */
  mails(): number;
  /** Sends as the owner and returns the run. */
  tell(message: string, sessionKey?: string): Promise<string>;
  /** Sends as a guest in a group and returns the run. */
  guest(message: string): Promise<string>;
  /** Sends by a token that covers only some sessions. */
  token(message: string): Promise<string>;
  /** Opens a client whose token covers only some sessions, and may answer requests. */
  limited(): Promise<Stage["client"]>;
  hook(message: string): Promise<string>;
  ended(runId: string): Promise<string>;
  /** Waits for the only open question about labels. */
  question(): Promise<{ id: string; title: string; detail: string }>;
  answer(decision: "allow" | "deny", scope?: "once" | "chain" | "always"): Promise<void>;
}

const GROUP = { enabled: true, requireMention: false };

/** The settings of agents that may do everything: the labels alone protect. */
function agentsFor(workspace: string, more: StageOptions["tools"]) {
  const free = { allow: [], deny: [], exec: { approval: "never" as const } };
  const own = { workspace, tools: free, ...more };
  return [agentSettings("main", { ...own, subagents: { allowAgents: ["*"] } }), agentSettings("b", own)];
}

export async function openStage(options: StageOptions = {}): Promise<Stage> {
  const { labels = {}, page = () => "", tools, askSeconds = 300 } = options;
  const workspace = options.like?.workspace ?? join(temporaryFolder(), "workspace");
  mkdirSync(workspace, { recursive: true });
  const paths: string[] = [];
  const url = (path: string): string => `http://127.0.0.1:${server.port}${path}`;
  const server = await serveHttp((request, response) => {
    paths.push(request.url ?? "");
    const path = request.url ?? "";
    response.writeHead(200, { "content-type": "text/plain" });
    response.end(path.startsWith("/page") ? page(url, path) : "ok");
  });
  cleanup(() => server.close());
  const host = `127.0.0.1:${server.port}`;
  const witness = await openWitness();
  const tool = (name: string) => ({ name, inputSchema: { type: "object" } });
  const servers = [
    badServer("mail", { witness: witness.port, tools: [tool("send")] }),
    badServer("news", { witness: witness.port, tools: [tool("content")] }),
  ];
  const telegram = peopleChannel();
  const house = await openHouse({
    ...(options.dir === undefined ? {} : { dir: options.dir }),
    model: obeyingModel(),
    channels: [telegram],
    choices: {
      agents: agentsFor(workspace, tools),
      channels: [telegramAccount("default", { groups: { "-100": GROUP, "-200": GROUP } })],
      owners: [OWNER],
      labels: { ...labels, ...options.labelsFor?.(host) },
      features: { hooks: { enabled: true, token: HOOK_TOKEN } },
      tools: {
        visibility: "all",
        agentToAgent: { enabled: true, allow: [] },
        fetch: { allowHosts: [options.like?.evil.host ?? host] },
        mcp: mcpWith(servers),
        exec: { timeoutSeconds: 60, maxOutputBytes: 64_000, askSeconds },
      },
    },
    gateway: {
      tokens: [
        {
          token: GUEST_TOKEN,
          role: "operator",
          scopes: ["operator.admin"],
          sessions: ["agent:main:visitor*"],
        },
      ],
    },
  });
  const client = await house.client();
  if (options.like === undefined)
    await house.store.transaction((tx) =>
      insertSession(tx, {
        ...sampleSession(),
        ...{ key: GUEST_SESSION, sessionId: "session-of-the-group", kind: "group" },
        lastRoute: { channel: "telegram", to: "-100", accountId: "default" },
      }),
    );
  const accept = async (sessionKey: string, input: object): Promise<string> => {
    const accepted = await house.engine.accept({ sessionKey, input: { text: "", ...input } });
    if (!accepted.ok) throw new Error(accepted.error);
    return accepted.value.run.runId;
  };
  const questions = async () => (await client.request("permissions.list", {})).permissions;
  return {
    ...{ house, client, workspace, telegram },
    evil: { host, url, paths },
    mails: () => witness.lives.flatMap(({ events }) => events).filter((one) => one === "call send").length,
    tell: async (message, sessionKey = MAIN) =>
      (await client.request("chat.send", { sessionKey, message })).runId,
    guest: (message) => accept(GUEST_SESSION, { text: message, guest: true, sender: "telegram:222" }),
    async token(message) {
      const guest = await house.client({ token: GUEST_TOKEN });
      return (await guest.request("chat.send", { sessionKey: "agent:main:visitor", message })).runId;
    },
    limited: () => house.client({ token: GUEST_TOKEN }),
    async hook(message) {
      const sent = await fetch(`${house.http}/hooks/agent`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${HOOK_TOKEN}` },
        body: JSON.stringify({ message, agentId: "main" }),
      });
      return ((await sent.json()) as { runId: string }).runId;
    },
    ended: async (runId) => (await client.request("agent.wait", { runId, timeoutMs: 60_000 })).status,
    async question() {
      await expect.poll(async () => (await questions()).length).toBe(1);
      const [{ id, title, detail = "" }] = (await questions()) as unknown as [
        { id: string; title: string; detail?: string },
      ];
      return { id, title, detail };
    },
    async answer(decision, scope = "once") {
      const [open] = await questions();
      await client.request("permissions.answer", { id: open?.id ?? "", decision, scope });
    },
  };
}
