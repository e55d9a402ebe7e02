// Sends every HTTP request of this process, to the addresses that core/rules/outgoing.ts allows.
// OC1: the IP address of the connection is checked, not only the name, because a name may resolve differently
// the next time.
// A proxy resolves the name itself, so then only names that resolve to private addresses here are refused.
// OC2: every request uses the proxy that proxy.ts chooses, or none.
// Nothing here loads Node's HTTP, TLS or fetch before the first request.

import type { LookupAddress, LookupOptions } from "node:dns";
import type { AgentOptions, ClientRequest, Agent as PlainAgent, RequestOptions } from "node:http";
import type { Agent as SecureAgent } from "node:https";
import { BlockList, isIP } from "node:net";
import { follow, type Purpose, reachOf } from "../core/rules/outgoing.ts";
import { plainHttp, secureHttp, trustSystem } from "./http.ts";
import { proxyFor } from "./proxy.ts";

/** The target and purpose of a request. */
export interface Destination {
  readonly purpose: Purpose;
  readonly url: string;
  /** The configured address that permits this request. Undefined: any public address is permitted. */
  readonly configured: string | undefined;
}

/** Thrown for an address that is not allowed. The message is for people and contains no address. */
export class AddressRefused extends Error {}

const PRIVATE = "the address leads to this machine or a private network. Nothing was sent.";

/** IPv4 ranges that are not public: private, shared, local, documentation, multicast, reserved. */
const NOT_PUBLIC_4 = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4",
];
/**
 * Networks that are not public, besides everything outside 2000::/3. 2001::/23 and 2002::/16 contain tunnels
 * to IPv4.
 */
const NOT_PUBLIC_6 = ["2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"];
const PUBLIC_6 = ["2000::/3"];

function listOf(nets: readonly string[], family: "ipv4" | "ipv6"): BlockList {
  const list = new BlockList();
  for (const net of nets) {
    const [address = "", bits] = net.split("/");
    list.addSubnet(address, Number(bits), family);
  }
  return list;
}

const not4 = listOf(NOT_PUBLIC_4, "ipv4");
const not6 = listOf(NOT_PUBLIC_6, "ipv6");
const is6 = listOf(PUBLIC_6, "ipv6");

/** Returns whether this IP address is reachable from the whole internet. */
export function isPublic(address: string): boolean {
  const family = isIP(address);
  if (family === 4) return !not4.check(address, "ipv4");
  return family === 6 && is6.check(address, "ipv6") && !not6.check(address, "ipv6");
}

type Looked = (error: Error | null, found: string | LookupAddress[], family?: number) => void;
type Lookup = (name: string, options: LookupOptions, looked: Looked) => void;

/** Wraps a lookup so that it returns only public addresses. */
export function publicLookup(inner: Lookup): Lookup {
  return (name, options, looked) => {
    inner(name, { ...options, all: true }, (error, found) => {
      if (error !== null) return looked(error, []);
      const all = typeof found === "string" ? [] : found.filter(({ address }) => isPublic(address));
      const [first] = all;
      if (first === undefined) return looked(new AddressRefused(PRIVATE), []);
      if (options.all === true) return looked(null, all);
      looked(null, first.address, first.family);
    });
  };
}

const systemLookup: Lookup = (name, options, looked) =>
  process.getBuiltinModule("node:dns").lookup(name, options as { all: true }, looked);

const httpFor = (url: string) => (url.startsWith("https:") ? secureHttp() : plainHttp());

/**
 * Returns the HTTP agent for requests to a URL, which uses its proxy. Depending on `options`, it reuses
 * connections or opens one for each request.
 */
export function agentFor(url: string, options: AgentOptions): PlainAgent | SecureAgent {
  const proxy = proxyFor(url);
  const proxied = proxy === undefined ? {} : { proxyEnv: { HTTP_PROXY: proxy, HTTPS_PROXY: proxy } };
  return new (httpFor(url).Agent)({ ...options, ...proxied });
}

/** Maximum number of agents that reuse connections through a proxy. There is one for each proxy. */
const SHARED_AGENTS_MAX = 8;
const sharedAgents = new Map<string, PlainAgent | SecureAgent>();

/** Returns the agent of a request without an own one. Without a proxy it is Node's. */
function chosenAgent(url: string, agent: RequestOptions["agent"]): RequestOptions["agent"] {
  const proxy = proxyFor(url);
  if (proxy === undefined || typeof agent === "object") return agent;
  if (agent === false) return agentFor(url, {});
  const key = `${new URL(url).protocol} ${proxy}`;
  const known = sharedAgents.get(key);
  if (known !== undefined) return known;
  // The options of Node's shared agent.
  const made = agentFor(url, { keepAlive: true, scheduling: "lifo", timeout: 5_000 });
  if (sharedAgents.size >= SHARED_AGENTS_MAX) sharedAgents.clear();
  sharedAgents.set(key, made);
  return made;
}

type Connected = (error: Error | null, socket?: unknown) => void;

/** Returns an agent that asks a proxy only for names that are not known as private here. */
function publicAgent(url: string): PlainAgent | SecureAgent {
  const agent = agentFor(url, {});
  const connect = agent.createConnection.bind(agent);
  agent.createConnection = (options: Parameters<typeof connect>[0], done: Connected) => {
    publicLookup(systemLookup)(new URL(url).hostname, {}, (error) => {
      if (error instanceof AddressRefused) return done(error);
      const socket = connect(options, done);
      // A tunnel calls `done` itself.
      if (url.startsWith("http:")) done(null, socket);
    });
    return undefined;
  };
  return agent;
}

/** Returns the agent of a WebSocket of the package `ws`: undefined without a proxy. */
export function webSocketAgent(url: string): PlainAgent | SecureAgent | undefined {
  const target = url.replace(/^ws/, "http");
  if (target.startsWith("https:")) trustSystem();
  return proxyFor(target) === undefined ? undefined : agentFor(target, {});
}

/**
 * Makes WebSockets use the proxy that a library opens with `ws`, without a way to choose their agent.
 * Such a request has its own function to connect, and no agent.
 */
export function proxyLibrarySockets(): void {
  if (areSocketsProxied) return;
  areSocketsProxied = true;
  const https = secureHttp();
  const inner = https.request as (options: RequestOptions, ...rest: unknown[]) => ClientRequest;
  const request = (options: RequestOptions, ...rest: unknown[]): ClientRequest => {
    if (options.createConnection === undefined || options.agent !== undefined) return inner(options, ...rest);
    const agent = webSocketAgent(`wss://${options.host}:${options.port}`);
    return inner(agent === undefined ? options : { ...options, agent }, ...rest);
  };
  https.request = request as typeof https.request;
}
let areSocketsProxied = false;

/**
 * Creates a request that is not sent yet and follows no redirect. Throws `AddressRefused` if it must not be
 * sent.
 */
export function outgoingRequest(
  { purpose, url, configured }: Destination,
  options: RequestOptions,
): ClientRequest {
  const reach = reachOf(purpose, url, configured);
  if (reach.kind === "refused") throw new AddressRefused(reach.why);
  if (reach.kind === "any address")
    return httpFor(url).request(url, { ...options, agent: chosenAgent(url, options.agent) });
  // For a numeric address there is no lookup, so it is checked here.
  const host = new URL(url).hostname.replace(/^\[|\]$/g, "");
  if (isIP(host) !== 0 && !isPublic(host)) throw new AddressRefused(PRIVATE);
  const way =
    proxyFor(url) === undefined
      ? { agent: false, lookup: publicLookup(systemLookup) }
      : { agent: publicAgent(url) };
  return httpFor(url).request(url, { ...options, ...way });
}

/** Calls `then` when the connection of a request is established, including TLS. */
export function whenConnected(request: ClientRequest, then: () => void): void {
  request.once("socket", (socket) => {
    // A reused connection, or one through a proxy, is established before the request gets it.
    if (!socket.connecting) then();
    else socket.once(request.protocol === "https:" ? "secureConnect" : "connect", then);
  });
}

export type Fetch = typeof fetch;
type Dispatcher = NonNullable<RequestInit["dispatcher"]>;
type DispatcherKind = new (options: object) => Dispatcher;

/** Limits of a request to a server that may answer slowly. */
export interface FetchLimits {
  /** Time limit until the connection is established, including TLS. */
  readonly connectTimeoutSeconds: number;
}

/** Maximum number of dispatchers. There is one for each value of `connectTimeoutSeconds` and each proxy. */
const DISPATCHERS_MAX = 32;
const dispatchers = new Map<string, Dispatcher>();
const LIMITS: FetchLimits = { connectTimeoutSeconds: 10 };

/**
 * Node's fetch has no option for the connect timeout and the proxy, but accepts a dispatcher. Uses the class
 * of Node's own dispatcher (behind a global symbol), because another version of undici may not work with this
 * fetch. For the class that uses a proxy, Node's function for a global proxy is called for a moment.
 */
function dispatcherFor({ connectTimeoutSeconds }: FetchLimits, proxy: string | undefined): Dispatcher {
  const key = `${connectTimeoutSeconds} ${proxy}`;
  const known = dispatchers.get(key);
  if (known !== undefined) return known;
  // The first access to Headers makes Node load its fetch.
  void globalThis.Headers;
  const restore = proxy === undefined ? () => {} : plainHttp().setGlobalProxyFromEnv({ HTTP_PROXY: proxy });
  const shared = globalThis as unknown as Record<symbol, { constructor: DispatcherKind } | undefined>;
  const own =
    shared[Symbol.for("undici.globalDispatcher.2")] ?? shared[Symbol.for("undici.globalDispatcher.1")];
  restore();
  if (own === undefined) throw new Error("this Node has no fetch with a dispatcher");
  // The caller limits silence itself. Node's own limits of 300 s would end longer silences too early.
  const made = new own.constructor({
    connect: { timeout: connectTimeoutSeconds * 1_000 },
    headersTimeout: 0,
    bodyTimeout: 0,
    // Many proxies open a tunnel only to the port of HTTPS.
    ...(proxy === undefined ? {} : { httpProxy: proxy, httpsProxy: proxy, noProxy: "", proxyTunnel: false }),
  });
  if (dispatchers.size >= DISPATCHERS_MAX) dispatchers.clear();
  dispatchers.set(key, made);
  return made;
}

/** Returns whether a request failed because the connection was not established in time. */
export function isConnectTimeout(error: unknown): boolean {
  const { code, cause } = (error ?? {}) as { code?: unknown; cause?: { code?: unknown } };
  return (code ?? cause?.code) === "UND_ERR_CONNECT_TIMEOUT";
}

/** Maximum number of causes that are followed. */
const CAUSES_MAX = 5;
/** Codes of the system, of fetch, and of certificates. */
const CAUSE = /^(?:E(?!RA_)[A-Z0-9_]+|(?:UND_ERR|CERT|DEPTH|SELF|UNABLE|HOSTNAME)_\w+)$/;

interface Thrown {
  readonly [field: string]: unknown;
  readonly cause?: unknown;
  readonly errors?: readonly unknown[];
}

/**
 * Returns the innermost cause of a failed connection, such as `ENOTFOUND api.example.com`, or undefined if
 * the error is of another kind. Fetch and libraries hide it behind errors such as "fetch failed".
 */
export function connectionCause(error: unknown): string | undefined {
  let words: string | undefined;
  let at = error as Thrown | undefined;
  for (let depth = 0; depth < CAUSES_MAX && typeof at === "object" && at !== null; depth += 1) {
    const { code, hostname, address, port, cause, errors } = at;
    if (typeof code === "string" && CAUSE.test(code)) {
      const place = hostname ?? (address === undefined ? undefined : `${address}:${port}`);
      words = place === undefined ? code : `${code} ${place}`;
    }
    at = (cause ?? errors?.[0]) as Thrown | undefined;
  }
  return words;
}

/** Maximum number of redirects: more than a server needs on its own origin. */
const REDIRECTS_MAX = 5;

/**
 * Returns a fetch for requests to one configured address. A redirect that is not followed is returned as the
 * answer.
 */
export function outgoingFetch(
  purpose: Exclude<Purpose, "media" | "page">,
  configured: string,
  limits?: FetchLimits,
): Fetch {
  return async (input, init) => {
    let url = typeof input === "string" || input instanceof URL ? String(input) : input.url;
    for (let follows = 0; ; follows += 1) {
      const reach = reachOf(purpose, url, configured);
      if (reach.kind !== "any address")
        throw new AddressRefused(reach.kind === "refused" ? reach.why : PRIVATE);
      if (url.startsWith("https:")) trustSystem();
      const proxy = proxyFor(url);
      const isPlain = limits === undefined && proxy === undefined;
      const dispatcher = isPlain ? {} : { dispatcher: dispatcherFor(limits ?? LIMITS, proxy) };
      const to = follows === 0 ? input : url;
      const answer = await fetch(to, { ...init, ...dispatcher, redirect: "manual" });
      const method = (init?.method ?? "GET").toUpperCase();
      const { status, headers } = answer;
      const next = follow(purpose, { method, url, status, location: headers.get("location") });
      if (next === undefined || follows === REDIRECTS_MAX) return answer;
      await answer.body?.cancel();
      url = next;
    }
  };
}
