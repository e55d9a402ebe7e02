// Checks the running gateway. If none is running, checks whether its port is free.

import { createServer } from "node:net";
import type { Cli } from "../../../cli/cli.ts";
import { type Link, openLink } from "../../../cli/gateway-link.ts";
import { count } from "../../../cli/layout.ts";
import type { PayloadOf } from "../../../contract/methods.ts";
import { mainKeyOf } from "../../../core/shapes/session-key.ts";
import { defaultAgent, type Settings } from "../../../core/shapes/settings/settings.ts";
import type { Finding } from "../../../feature.ts";
import { bad, good, risk } from "./finding.ts";

const CONNECT_TIMEOUT_MS = 5_000;
/** Number of recent messages of a main session that are read to find its different senders. */
const SEARCHED_MESSAGES = 200;
const IGNORED_SHOWN_MAX = 10;

export interface Target {
  /** Absent if no gateway runs with the store. */
  readonly url: string | undefined;
  readonly token: string;
  readonly settings: Settings;
  readonly storeHeld: boolean;
}

/** Tries to listen on the port. Resolves with the error code, or with undefined if the port is free. */
function listenError(host: string, port: number): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  const server = createServer();
  server.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
  server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)));
  return promise;
}

async function checkPort({ settings, storeHeld }: Target): Promise<Finding> {
  const { host, port } = settings.gateway;
  const why = port === 0 ? undefined : await listenError(host, port);
  if (why === "EADDRINUSE") {
    const mend = "Stop that program, or choose another port with --port or gateway.port.";
    return bad("gateway", `not running, and another program uses ${host}:${port}`, mend);
  }
  if (why !== undefined) {
    const mend = "Choose another gateway.host or gateway.port.";
    return bad("gateway", `cannot listen on ${host}:${port} (${why})`, mend);
  }
  if (storeHeld) {
    const text = "a gateway uses the store, but it does not listen: it is starting or stopping";
    return risk("gateway", text, "Run this command again.");
  }
  return risk("gateway", `not running; ${host}:${port} is free`, "Start it: npx parley-gateway gateway");
}

async function checkHealth(link: Link, url: string): Promise<Finding[]> {
  const health = await link.request("health", {});
  if (!health.ok) return [bad("gateway", health.error)];
  const { ok, version, store, lanes, deliveries } = health.value;
  const busy =
    lanes === undefined
      ? ""
      : `; runs: ${lanes.running} running, ${lanes.waiting} waiting, ${lanes.queued} queued`;
  const text = `Parley ${version} at ${url}${busy}`;
  const first = ok ? good("gateway", text) : bad("gateway", `${text}; ${store.reason ?? "it is stopping"}`);
  if (deliveries === undefined || deliveries.failed === 0) return [first];
  const failed = `${count(deliveries.failed, "delivery", "deliveries")} in the outbox failed`;
  const mend = "List them: npx parley-gateway deliveries list --state failed. Then retry or dismiss each.";
  return [first, risk("deliveries", failed, mend)];
}

type Status = PayloadOf<"status">;

/** Lists the ignored params of clients, which may explain why a client works differently here. */
function checkIgnoredParams({ ignoredParams = [] }: Status): Finding[] {
  if (ignoredParams.length === 0) return [];
  const shown = ignoredParams.slice(0, IGNORED_SHOWN_MAX).map(({ method, param }) => `${method} ${param}`);
  const more = ignoredParams.length > shown.length ? ` and ${ignoredParams.length - shown.length} more` : "";
  const text = `params of clients that have no effect here: ${shown.join(", ")}${more}`;
  return [good("clients", text)];
}

/** Warns if the gateway does not use all settings of the configuration file. */
function checkConfigAge({ config }: Status): Finding[] {
  if (config === undefined || (config.ok && !config.differs)) return [];
  const text = config.ok
    ? `some settings of the file apply only after a restart: ${config.restart.join(", ")}`
    : "the gateway runs on an older configuration, because the file is now invalid";
  const mend = config.ok ? "Restart the gateway." : "Find the error: npx parley-gateway config check";
  return [risk("configuration", text, mend)];
}

/** Returns the names of the people who wrote to a main session in direct chats. */
async function writersOf(link: Link, sessionKey: string): Promise<Set<string>> {
  const page = await link.request("chat.history", {
    sessionKey,
    limit: SEARCHED_MESSAGES,
  });
  if (!page.ok) return new Set();
  const names = page.value.messages.flatMap((message) =>
    message.role === "user" && message.provenance === undefined ? [message.senderName ?? "you"] : [],
  );
  return new Set(names);
}

async function checkSharing(link: Link, settings: Settings): Promise<Finding[]> {
  if (settings.session.dmScope !== "main") return [];
  const { mainKey, scope } = settings.session;
  const rules = { mainKey, scope, defaultAgentId: defaultAgent(settings).id };
  const keys = new Set(settings.agents.map(({ id }) => mainKeyOf(id, rules)));
  const findings: Finding[] = [];
  for (const key of keys) {
    const writers = await writersOf(link, key);
    if (writers.size < 2) continue;
    const text = `${[...writers].join(", ")} share the session ${key}: each may learn what the others wrote`;
    const mend =
      'Give each person a separate session with session.dmScope: "per-peer", ' +
      "and name your own accounts in commands.owners.";
    findings.push(risk("privacy", text, mend));
  }
  return findings;
}

export async function checkGateway(cli: Cli, target: Target): Promise<Finding[]> {
  const { url, token, settings } = target;
  if (url === undefined) return [await checkPort(target)];
  const options = { reconnect: false, world: cli.parts.world, connectTimeoutMs: CONNECT_TIMEOUT_MS };
  const opened = await openLink({ url, token }, options);
  if (!opened.ok) {
    const mend = "Correct --url and --token, or name the gateway's configuration with --config.";
    return [bad("gateway", opened.error, mend)];
  }
  using link = opened.value;
  const status = await link.request("status", {});
  return [
    ...(await checkHealth(link, url)),
    ...(status.ok ? [...checkConfigAge(status.value), ...checkIgnoredParams(status.value)] : []),
    ...(await checkSharing(link, settings)),
  ];
}
