// Owns one connection to Discord's gateway, from its first byte to its close.
// A connection is never reopened: listen.ts decides what follows its end.
// DC1: no frame can throw an exception or end the process. An invalid frame is skipped.
// DC2: an event is acknowledged to Discord only after it is settled (processed and stored), so Discord sends
//      all unsettled events again after a resume (I2).
// DC3: after the close, no socket, timer or heartbeat of the library is left.

import type { SessionInfo, WebSocketShard } from "@discordjs/ws";
import { type Fields, jsonOf, numberOf, objectOf, textOf } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { proxyLibrarySockets } from "../../world/outgoing.ts";
import type { Timer, World } from "../../world.ts";

/** Time limit for Discord to accept the session. */
const READY_MS = 30_000;
/** Time limit for Discord to answer a close. */
const CLOSE_MS = 2_000;
/** Close code after which Discord keeps the session for some time, so that it can be resumed. */
const CLOSE_CODE = 4_200;
/** Range of valid heartbeat intervals. */
const BEAT_MIN_MS = 50;
const BEAT_MAX_MS = 10 * 60_000;

/** The values that are needed to resume a session of Discord's gateway. */
export interface GatewaySession {
  readonly id: string;
  /** URL of the gateway that can resume the session. */
  readonly url: string;
}

/** Reason why a connection ended. */
export type Ending =
  | { readonly kind: "closed"; readonly code: number; readonly words?: string }
  /** Discord did not accept the session before the time limit. */
  | { readonly kind: "silent" }
  /** The caller stopped the connection. */
  | { readonly kind: "stopped" };

export interface ConnectionParts {
  readonly world: World;
  readonly token: string;
  readonly intents: number;
  /**
   * URL for a new session. The caller has checked that the token may be sent to this URL, and to that of the
   * session to resume.
   */
  readonly url: string;
  /** The session to resume. Undefined: begin a new one. */
  readonly session: GatewaySession | undefined;
  /** Returns the sequence number of the last event that was settled. */
  settled(): number;
  /** Called when a session begins. Called with undefined when the session can no longer be resumed. */
  begun(session: GatewaySession | undefined): void;
  /** Called when messages start to arrive. `anew`: in a new session. `resumed`: in the resumed one. */
  ready(how: "anew" | "resumed"): void;
  event(type: string, data: Fields, sequence: number): void;
}

/** Private members of the library's connection that this file uses. */
interface Innards {
  readonly connection: Socket | null;
  unpackMessage(data: unknown, isBinary: boolean): Promise<Fields | null>;
  onMessage(data: unknown, isBinary: boolean): Promise<void>;
}
interface Socket {
  readonly readyState: number;
  on(event: "error" | "close", heard: () => void): void;
  terminate(): void;
}
const OPENING = 0;
const CLOSED = 3;

/** Returns whether the library can process this frame without throwing. */
function isSound(frame: Fields): boolean {
  const data = objectOf(frame.d);
  switch (frame.op) {
    case 0: {
      if (numberOf(frame.s) === undefined || textOf(frame.t) === undefined) return false;
      if (frame.t !== "READY") return true;
      return textOf(data?.session_id) !== undefined && textOf(data?.resume_gateway_url) !== undefined;
    }
    case 9:
      return typeof frame.d === "boolean";
    case 10: {
      const beatMs = numberOf(data?.heartbeat_interval);
      return beatMs !== undefined && beatMs >= BEAT_MIN_MS && beatMs <= BEAT_MAX_MS;
    }
    default:
      return numberOf(frame.op) !== undefined;
  }
}

function readFrame(data: unknown, isBinary: boolean): Fields | undefined {
  if (isBinary || typeof data !== "string") return undefined;
  const frame = objectOf(jsonOf(data));
  return frame !== undefined && isSound(frame) ? frame : undefined;
}

/** Creates the library's connection. When `isOver` returns true, the connection must not reconnect. */
async function makeShard(parts: ConnectionParts, isOver: () => boolean): Promise<WebSocketShard> {
  proxyLibrarySockets();
  const { DefaultWebSocketManagerOptions: defaults, WebSocketShard } = await import("@discordjs/ws");
  const { encoding, identifyProperties, version } = defaults;
  let known = parts.session;
  const info = (session: GatewaySession): SessionInfo => ({
    sessionId: session.id,
    resumeURL: session.url,
    sequence: parts.settled(),
    shardId: 0,
    shardCount: 1,
  });
  return new WebSocketShard(
    {
      options: {
        compression: null,
        encoding,
        identifyProperties,
        version,
        useIdentifyCompression: false,
        handshakeTimeout: READY_MS,
        helloTimeout: null,
        readyTimeout: null,
        initialPresence: null,
        largeThreshold: null,
        intents: parts.intents,
        token: parts.token,
        shardCount: 1,
        gatewayInformation: {
          url: parts.url,
          shards: 1,
          session_start_limit: { total: 1, remaining: 1, reset_after: 0, max_concurrency: 1 },
        },
      },
      // The library calls this function again before it reconnects by itself. The promise of that call must
      // never settle, so that it does not reconnect.
      retrieveSessionInfo: () => {
        if (isOver()) return new Promise<null>(() => {});
        return known === undefined ? null : info(known);
      },
      // Do not store the library's sequence number: it counts received events, but only settled events may be
      // acknowledged.
      updateSessionInfo: (_, session) => {
        if (isOver()) return;
        const before = known;
        known = session === null ? undefined : { id: session.sessionId, url: session.resumeURL };
        if (known?.id !== before?.id) parts.begun(known);
      },
      waitForIdentify: () => Promise.resolve(),
    },
    0,
  );
}

/** Closes the socket and waits for the close, up to a time limit. */
async function leave(shard: WebSocketShard, { clock }: World): Promise<void> {
  const { connection } = shard as unknown as Innards;
  const isOpen = connection !== null && connection.readyState !== CLOSED;
  let deadline: Timer | undefined;
  const closed = new Promise<void>((resolve) => {
    if (!isOpen) return resolve();
    // Ignore an error that comes after the library has removed its own error listener.
    connection.on("error", () => {});
    connection.on("close", resolve);
    deadline = clock.after(CLOSE_MS, () => connection.terminate());
    if (connection.readyState === OPENING) connection.terminate();
  });
  // Do not wait for this promise, because it may never settle if both sides close. Wait for the socket's
  // close instead.
  shard.destroy({ code: CLOSE_CODE }).catch(() => {});
  await closed;
  deadline?.cancel();
}

/** Holds one connection until it ends, or the signal is aborted. */
export async function holdConnection(parts: ConnectionParts, signal: AbortSignal): Promise<Ending> {
  const { world } = parts;
  let ending: Ending | undefined;
  const over = Promise.withResolvers<void>();
  const end = (how: Ending): void => {
    ending ??= how;
    over.resolve();
  };
  const stop = (): void => end({ kind: "stopped" });
  const shard = await makeShard(parts, () => ending !== undefined);
  if (signal.aborted) return { kind: "stopped" };
  const innards = shard as unknown as Innards;
  let skipped = 0;
  innards.unpackMessage = async (data, isBinary) => {
    const frame = readFrame(data, isBinary);
    skipped += frame === undefined ? 1 : 0;
    if (skipped === 1 && frame === undefined)
      world.log.warn({}, "Discord sent an invalid frame, which was skipped");
    return frame ?? null;
  };
  const onMessage = innards.onMessage.bind(shard);
  innards.onMessage = (data, isBinary) =>
    onMessage(data, isBinary).catch((error: unknown) => {
      world.log.warn({ err: error }, "a frame from Discord could not be read");
    });
  const deadline = world.clock.after(READY_MS, () => end({ kind: "silent" }));
  const isReady = (how: "anew" | "resumed"): void => {
    deadline.cancel();
    if (ending === undefined) parts.ready(how);
  };
  let words: string | undefined;
  shard.on("hello", () => innards.connection?.on("error", () => {}));
  shard.on("ready", () => isReady("anew"));
  shard.on("resumed", () => isReady("resumed"));
  shard.on("socketError", (error) => {
    words = error?.message;
  });
  // Ignore this event, because the event `closed` reports the reason as a code.
  shard.on("error", () => {});
  shard.on("closed", (code) => end({ kind: "closed", code, ...optional({ words }) }));
  shard.on("dispatch", ({ t, d, s }) => {
    if (ending === undefined) parts.event(t, objectOf(d) ?? {}, s);
  });
  signal.addEventListener("abort", stop, { once: true });
  shard.connect().catch(() => {});
  await over.promise;
  signal.removeEventListener("abort", stop);
  deadline.cancel();
  await leave(shard, world);
  return ending ?? { kind: "stopped" };
}
