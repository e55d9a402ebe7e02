// Owns the port: an HTTP server, its WebSockets, the connections, the tick, and the planned stop.
// The port opens after everything behind it is ready; `close` notifies every client first.
// Headers are checked before a socket is upgraded; the number of sockets without a `connect` request is
// limited.
// Work for all connections (ticks, presence) is done at intervals, whatever their number.

import type { IncomingMessage, Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { WebSocket, WebSocketServer } from "ws";
import { keyRulesOf } from "../access/access.ts";
import { seesEverything } from "../access/token.ts";
import { EVENTS, type EventPayloads } from "../contract/events.ts";
import type { HelloOk } from "../contract/frames.ts";
import { type MethodSpec, NODE } from "../contract/methods/parts.ts";
import { METHODS } from "../contract/methods.ts";
import { CLOSE, MAX_PAYLOAD_BYTES, MAX_PAYLOAD_OF_NODE_BYTES, NODE_EVENTS } from "../contract/protocol.ts";
import { once } from "../core/once.ts";
import { type Failure, fail } from "../core/shapes/errors.ts";
import { mainKeyOf } from "../core/shapes/session-key.ts";
import { defaultAgent } from "../core/shapes/settings/settings.ts";
import { pruneAnswers } from "../store/queries/idempotency.ts";
import type { Passes } from "../tools/passes.ts";
import { plainHttp } from "../world/http.ts";
import type { Timer } from "../world.ts";
import { AccessTokenUsers, accessTokenRows } from "./access-tokens.ts";
import { type Caller, createAuthority, tokensOf } from "./auth.ts";
import { DEMO_PATH, Demo, type OpenDemo } from "./demo.ts";
import { renewDeviceToken } from "./device-tokens.ts";
import { createDispatcher, type Dispatcher, type MethodDeps } from "./dispatch.ts";
import { checkHeaders } from "./http/host.ts";
import type { HttpDeps } from "./http/http.ts";
import { createListener } from "./http/listener.ts";
import { health } from "./methods/system.ts";
import { CONNECTIONS_MAX, createShares, SOCKETS_MAX } from "./shares.ts";
import { Connection, type ConnectionParts, type Member, type NodeDoor } from "./socket/connection.ts";
import { createFanout, type Fanout } from "./socket/fanout.ts";
import { encodeEvent } from "./socket/outlet.ts";
import { createPresence, type Presence } from "./socket/presence.ts";
import { openSockets, pathOf, refuseUpgrade } from "./socket/upgrade.ts";
import { createIgnoredParams } from "./version-4/params.ts";

/**
 * Maximum number of open sockets without a `connect` request: in total, and of those that are older than
 * `SILENT_AFTER_MS`.
 */
const STRANGERS_MAX = 1_024;
const SILENT_MAX = 128;
const SILENT_AFTER_MS = 3_000;
/** Maximum number of connections that the system queues until they are accepted. */
const BACKLOG = 1_024;
/** Time limits that close sockets of slow requests. */
const HTTP_OPTIONS = {
  headersTimeout: 10_000,
  requestTimeout: 60_000,
  connectionsCheckingInterval: 5_000,
  // `host.ts` refuses a request without a Host header, with a clearer error than Node's.
  requireHostHeader: false,
};
/** Ticks between two `health` events. */
const HEALTH_EVERY_TICKS = 4;
const FORGET_EVERY_TICKS = 240;
/** How long answers are kept under an idempotency key. */
const ANSWERS_KEPT_MS = 7 * 86_400_000;
/** How long a planned stop waits for clients to close. */
const CLOSE_WAIT_MS = 500;

/** Dependencies of the port itself. */
interface ServerDeps {
  readonly configPath?: string;
  /** Name of this machine, as clients see it. Default: the address on which the gateway listens. */
  readonly hostName?: string;
  /** Passes: temporary tokens of the programs of ACP agents. Absent if there are no ACP agents. */
  readonly passes?: Pick<Passes, "sessionOf">;
  /** Opens a demo. Absent if demos are unavailable. */
  readonly openDemo?: OpenDemo;
  /**
   * Resolves to true if a connection comes from inside a sandbox and must be closed. Returns false at once if
   * no sandbox could reach the port.
   */
  refusesPeer?(connection: Socket): Promise<boolean> | false;
}

/** Dependencies of methods that the server itself provides. */
type OwnParts =
  | "startedAt"
  | "connected"
  | "presence"
  | "ignoredParams"
  | "demo"
  | "endDevice"
  | "tell"
  | "accessTokens";

/** Everything that the composition root gives the gateway. */
export type GatewayDeps = Omit<MethodDeps, OwnParts> & HttpDeps & ServerDeps;

export interface Gateway {
  readonly port: number;
  /** Returns the number of connected clients. */
  connections(): number;
  /** Announces a stop and refuses new clients; connected ones are still answered. */
  announce(shutdown: EventPayloads["shutdown"]): void;
  /** Tells clients about a change of the configuration file. */
  configChanged(change: EventPayloads["config"]): void;
  /** Announces the stop, unless it was announced before, and closes every connection. */
  close(shutdown?: EventPayloads["shutdown"]): Promise<void>;
}

class GatewayServer implements Gateway {
  readonly #deps: GatewayDeps;
  readonly #http: Server;
  /** Loaded by the first client. */
  readonly #sockets = once(openSockets);
  readonly #fanout: Fanout;
  readonly #dispatcher: Dispatcher;
  readonly #demo: Demo | undefined;
  readonly #presence: Presence;
  readonly #methodDeps: MethodDeps;
  readonly #nodes: Partial<NodeDoor>;
  readonly #parts: ConnectionParts;
  readonly #shares = createShares();
  readonly #open = new Set<Connection>();
  /** The result of the check whether a connection comes from inside a sandbox. */
  readonly #judged = new WeakMap<Duplex, Promise<boolean>>();
  readonly #byDeviceToken = new Set<Member>();
  readonly #accessUsers: AccessTokenUsers;
  /** Sockets without a `connect` request, and when they opened. Oldest first. */
  readonly #strangers = new Map<Connection, number>();
  #trimTimer: Timer | undefined;
  #ticks = 0;
  #tickTimer: Timer | undefined;
  #closing = false;
  /** Aborts pending HTTP requests. */
  readonly #stop = new AbortController();

  constructor(deps: GatewayDeps) {
    const { settings, world, engine } = deps;
    const { clock } = world;
    this.#deps = deps;
    this.#nodes = [...(deps.services?.values() ?? [])].find(({ admit }) => admit !== undefined) ?? {};
    this.#fanout = createFanout({
      ...world,
      bus: engine.bus,
      settings,
      shared: engine.store.shared !== undefined,
    });
    this.#presence = createPresence(world, () => {
      const stateVersion = this.#stateVersion();
      const event = encodeEvent(
        "presence",
        { presence: this.#presence.all() },
        { stateVersion, replaces: "presence" },
      );
      this.#fanout.broadcast(event, seesEverything);
    });
    const configured = tokensOf(settings, deps.token);
    const authority = createAuthority(
      clock,
      configured,
      (token) => this.#deps.passes?.sessionOf(token),
      accessTokenRows(engine),
    );
    this.#accessUsers = new AccessTokenUsers(engine, authority);
    const { openDemo } = deps;
    this.#demo = openDemo === undefined ? undefined : new Demo(openDemo, world);
    this.#methodDeps = {
      ...deps,
      startedAt: clock.now(),
      connected: () => this.connections(),
      presence: (caller) => this.#presence.ofCaller(caller, seesEverything(caller)),
      ignoredParams: createIgnoredParams(world),
      endDevice: (deviceId, role) => {
        for (const { caller, close } of this.#byDeviceToken) {
          if (caller.device?.deviceId !== deviceId || caller.device.role !== (role ?? caller.device.role))
            continue;
          close(CLOSE.policy, "the device token was revoked");
        }
      },
      tell: (caller, event, payload) =>
        this.#fanout.broadcast(encodeEvent(event, payload), (one) => one === caller),
      accessTokens: { configured, authority, end: (id) => this.#accessUsers.end(id) },
      ...(this.#demo === undefined ? {} : { demo: this.#demo }),
    };
    this.#dispatcher = createDispatcher(this.#methodDeps);
    const listener = createListener({
      deps,
      authority,
      dispatcher: this.#dispatcher,
      accessUsers: this.#accessUsers,
      shares: this.#shares,
      stop: this.#stop.signal,
    });
    this.#http = plainHttp().createServer(HTTP_OPTIONS, (request, response) =>
      this.#admit(request.socket, () => listener(request, response)),
    );
    this.#http.on("connection", (socket) => this.#take(socket) && this.#judge(socket));
    this.#http.maxConnections = SOCKETS_MAX;
    this.#http.on("upgrade", (request, socket, head) =>
      this.#admit(socket, () => void this.#upgrade(request, socket, head)),
    );
    this.#parts = {
      world,
      authority,
      shares: this.#shares,
      maxBufferedBytes: settings.gateway.maxBufferedBytes,
      call: this.#dispatcher.call,
      admitNode: async (caller, params, at) =>
        this.#nodes.admit?.(caller, params, at) ??
        fail("missing_scope", "nodes are disabled: set nodes.enabled to true"),
      renewDeviceToken: (caller, at) => renewDeviceToken({ engine, authority }, caller, at),
      hello: (member) => this.#hello(member),
      join: (member) => this.#join(member),
    };
  }

  get port(): number {
    return (this.#http.address() as AddressInfo).port;
  }

  connections(): number {
    return this.#presence.count();
  }

  async listen(): Promise<void> {
    const { host, port } = this.#deps.settings.gateway;
    await new Promise<void>((resolve, reject) => {
      this.#http.once("error", reject);
      this.#http.listen({ port, host, backlog: BACKLOG }, () => {
        this.#http.off("error", reject);
        resolve();
      });
    });
    this.#http.on("error", (error) => this.#deps.world.log.error({ err: error }, "the HTTP server failed"));
    this.#scheduleTick();
  }

  announce(shutdown: EventPayloads["shutdown"]): void {
    if (this.#closing) return;
    this.#closing = true;
    this.#fanout.broadcast(encodeEvent("shutdown", shutdown));
    void this.#demo?.close();
  }

  configChanged(change: EventPayloads["config"]): void {
    this.#fanout.broadcast(encodeEvent("config", change), seesEverything);
  }

  async close(shutdown: EventPayloads["shutdown"] = { reason: "stopping" }): Promise<void> {
    this.announce(shutdown);
    this.#tickTimer?.cancel();
    this.#trimTimer?.cancel();
    const closed = new Promise<void>((resolve) => this.#http.close(() => resolve()));
    for (const connection of this.#open) connection.close(CLOSE.goingAway, shutdown.reason);
    // Closed after the members, because each closing member changes presence.
    this.#presence.close();
    this.#fanout.close();
    // Closing the dispatcher also answers pending HTTP requests, before their sockets close.
    this.#dispatcher.close();
    this.#stop.abort();
    this.#http.closeIdleConnections();
    const { clock } = this.#deps.world;
    const cutOff = clock.after(CLOSE_WAIT_MS, () => {
      this.#http.closeAllConnections();
      for (const connection of this.#open) connection.cut();
    });
    await this.#demo?.close();
    await closed;
    cutOff.cancel();
  }

  /**
   * Counts a socket of the address. Returns false if the address has too many; then the connection is closed.
   */
  #take(socket: Socket): boolean {
    const { sockets } = this.#shares;
    const { remoteAddress = "" } = socket;
    if (!sockets.take(remoteAddress)) {
      socket.destroy();
      return false;
    }
    socket.once("close", () => sockets.give(remoteAddress));
    return true;
  }

  /** Checks a new connection, before it is served. */
  #judge(socket: Socket): void {
    const refused = this.#deps.refusesPeer?.(socket) ?? false;
    if (refused !== false) this.#judged.set(socket, refused);
  }

  /** Serves a connection once its check has passed. */
  #admit(socket: Duplex, serve: () => void): void {
    const judged = this.#judged.get(socket);
    if (judged === undefined) {
      serve();
      return;
    }
    socket.on("error", () => socket.destroy());
    judged.then(
      (refused) => (refused ? socket.destroy() : serve()),
      (error: unknown) => {
        this.#deps.world.log.error({ err: error }, "could not check a connection");
        socket.destroy();
      },
    );
  }

  async #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const { world } = this.#deps;
    // Without a listener a reset from the peer would end the process.
    socket.on("error", () => socket.destroy());
    const sockets = await this.#socketsFor(socket);
    if (sockets === undefined) return;
    const refused = this.#refusal(request);
    if (refused !== undefined) {
      refuseUpgrade(socket, refused, world.redactor);
      return;
    }
    if (pathOf(request) === DEMO_PATH) {
      const passed = this.#demo?.pass(request, socket, head) ?? false;
      if (!passed)
        refuseUpgrade(
          socket,
          fail("unknown_method", "no demo is running; demo.start starts one"),
          world.redactor,
        );
      return;
    }
    sockets.handleUpgrade(request, socket, head, (ws) => this.#accept(ws, request, socket));
  }

  /**
   * Loads the WebSocket server. If that fails, closes the socket and returns undefined; the next connection
   * tries again.
   */
  async #socketsFor(socket: Duplex): Promise<WebSocketServer | undefined> {
    try {
      return await this.#sockets();
    } catch (error) {
      // Loading fails only if the installation is broken or is being replaced. The process continues, for its
      // runs.
      this.#deps.world.log.error({ err: error }, "could not load the WebSocket server");
      socket.destroy();
      return undefined;
    }
  }

  #refusal(request: IncomingMessage): Failure | undefined {
    if (this.#closing) return fail("shutting_down", "the gateway is stopping; try again in a moment");
    const { host, origin } = request.headers;
    const allowed = checkHeaders(this.#deps.settings.gateway, { host, origin });
    if (!allowed.ok) return allowed;
    if (!["/", DEMO_PATH].includes(pathOf(request)))
      return fail("unknown_method", "there is no WebSocket at this path; connect to /");
    // Closes old silent sockets even if this one is refused, so that there is room for the next one.
    this.#trimSoon();
    const isFull = this.#open.size + (this.#demo?.connections ?? 0) >= CONNECTIONS_MAX;
    return isFull || !this.#shares.links.hasRoom(request.socket.remoteAddress ?? "")
      ? fail("rate_limited", "too many connections; try again in a moment")
      : undefined;
  }

  #accept(ws: WebSocket, request: IncomingMessage, stream: Duplex): void {
    const parts: ConnectionParts = {
      ...this.#parts,
      asked: () => void this.#strangers.delete(connection),
    };
    const connection: Connection = new Connection(parts, {
      socket: ws,
      remote: request.socket.remoteAddress ?? "unknown",
      countBytes(count) {
        const onData = (piece: Buffer): void => count(piece.length);
        stream.on("data", onData);
        return () => stream.off("data", onData);
      },
      hold() {
        stream.cork();
        return () => stream.uncork();
      },
    });
    const { links } = this.#shares;
    const { remoteAddress = "" } = request.socket;
    links.take(remoteAddress);
    this.#open.add(connection);
    this.#strangers.set(connection, this.#deps.world.clock.monotonic());
    ws.once("close", () => {
      links.give(remoteAddress);
      this.#strangers.delete(connection);
      this.#open.delete(connection);
    });
    this.#trimSoon();
  }

  /** Runs later, so that requests that have already arrived are read first. */
  #trimSoon(): void {
    const { clock } = this.#deps.world;
    // Clients send `connect` immediately, so silent sockets must not keep other clients out.
    if (this.#strangers.size > SILENT_MAX)
      this.#trimTimer ??= clock.after(0, () => {
        this.#trimTimer = undefined;
        const now = this.#deps.world.clock.monotonic();
        for (const [stranger, since] of this.#strangers) {
          const { size } = this.#strangers;
          if (size <= SILENT_MAX || (size <= STRANGERS_MAX && now - since < SILENT_AFTER_MS)) return;
          this.#strangers.delete(stranger);
          stranger.cut();
        }
      });
  }

  #join(member: Member): () => void {
    this.#presence.add(member);
    if (member.caller.device !== undefined) this.#byDeviceToken.add(member);
    const forget = this.#accessUsers.join(member);
    const stop = this.#fanout.add(member);
    const { node } = member;
    const leave = node === undefined ? undefined : this.#nodes.join?.(member, node);
    return () => {
      leave?.();
      stop();
      this.#presence.remove(member);
      this.#byDeviceToken.delete(member);
      forget();
    };
  }

  async #hello(member: Member): Promise<Omit<HelloOk, "type" | "protocol" | "auth">> {
    const { settings, version, configPath, hostName } = this.#deps;
    const { gateway, session } = settings;
    const agentId = defaultAgent(settings).id;
    const all = seesEverything(member.caller);
    return {
      server: { version, host: hostName ?? gateway.host, connId: member.connId },
      features: featuresFor(member.caller),
      snapshot: {
        presence: this.#presence.seenBy(member, all),
        health: await health(this.#methodDeps, member.caller),
        stateVersion: this.#stateVersion(),
        uptimeMs: this.#deps.world.clock.now() - this.#methodDeps.startedAt,
        ...(all && configPath !== undefined ? { configPath } : {}),
        ...(all ? { stateDir: settings.store.dir } : {}),
        sessionDefaults: {
          defaultAgentId: agentId,
          mainKey: session.mainKey,
          mainSessionKey: mainKeyOf(agentId, keyRulesOf(settings)),
          scope: session.scope,
        },
      },
      policy: {
        maxPayload: member.caller.role === "node" ? MAX_PAYLOAD_OF_NODE_BYTES : MAX_PAYLOAD_BYTES,
        maxBufferedBytes: gateway.maxBufferedBytes,
        tickIntervalMs: gateway.tickIntervalMs,
      },
    };
  }

  #stateVersion() {
    return { presence: this.#presence.version(), health: Math.floor(this.#ticks / HEALTH_EVERY_TICKS) };
  }

  #scheduleTick(): void {
    const { clock } = this.#deps.world;
    const { tickIntervalMs } = this.#deps.settings.gateway;
    this.#tickTimer = clock.after(tickIntervalMs, () => {
      this.#ticks++;
      this.#fanout.broadcast(encodeEvent("tick", { ts: this.#deps.world.clock.now() }, { replaces: "tick" }));
      if (this.#ticks % HEALTH_EVERY_TICKS === 0) void this.#tellHealth();
      void this.#checkAccessTokens();
      if (this.#ticks % FORGET_EVERY_TICKS === 1) void this.#forget();
      this.#scheduleTick();
    });
  }

  async #forget(): Promise<void> {
    const { engine, world } = this.#deps;
    try {
      await engine.commit((unit) => pruneAnswers(unit.tx, unit.now - ANSWERS_KEPT_MS));
    } catch (error) {
      world.log.warn({ err: error }, "could not delete old answers");
    }
  }

  async #checkAccessTokens(): Promise<void> {
    try {
      await this.#accessUsers.check();
    } catch (error) {
      this.#deps.world.log.warn({ err: error }, "could not check the access tokens of connections");
    }
  }

  async #tellHealth(): Promise<void> {
    const anybody: Caller = { id: "", role: "operator", scopes: ["operator.read"] };
    try {
      const payload = await health(this.#methodDeps, anybody);
      const stateVersion = this.#stateVersion();
      this.#fanout.broadcast(
        encodeEvent("health", payload, { stateVersion, replaces: "health" }),
        seesEverything,
      );
    } catch (error) {
      this.#deps.world.log.error({ err: error }, "could not send the health event");
    }
  }
}

/** Starts to listen. Rejects when the port is unavailable. */
export async function startGateway(deps: GatewayDeps): Promise<Gateway> {
  const server = new GatewayServer(deps);
  await server.listen();
  return server;
}

/** `published-model-catalog`: `models.list` returns the models of the gateway, not those of a provider. */
const CAPABILITIES = ["published-model-catalog"];

/**
 * Returns the methods that a connection may call, and the events that it may get. Scopes do not matter: a
 * method that refuses a call names the missing scope.
 */
function featuresFor({ role }: Caller): HelloOk["features"] {
  const methods = Object.entries<MethodSpec>(METHODS)
    .filter(([, { scope }]) => (scope === NODE) === (role === "node"))
    .map(([name]) => name);
  if (role === "node") return { methods, events: NODE_EVENTS };
  const events = Object.keys(EVENTS).filter((event) => !event.startsWith("node.invoke."));
  return { methods, events, capabilities: CAPABILITIES };
}
