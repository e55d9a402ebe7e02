// Owns one connection to Discord's gateway, from its first byte to its end. It never begins a second one:
// what follows is decided by listen.ts.
// DC1: no frame, however it is made, throws out of here or ends the process; what is no frame is left out.
// DC2: what was received is confirmed to Discord once it is settled, not before: a connection that is taken
//      up again gets all the rest (I2).
// DC3: nothing is left behind: no socket, no timer, no beat of the library.

import type { SessionInfo, WebSocketShard } from "@discordjs/ws";
import type { Timer, World } from "../../world.ts";
import { type Fields, objectOf, textOf } from "../fields.ts";
import { numberOf } from "./fields.ts";

/** From the first byte until Discord has taken us in. */
const READY_MS = 30_000;
/** How long Discord has to answer our goodbye. */
const CLOSE_MS = 2_000;
/** Ends a connection so that Discord keeps its session for a while. */
const CLOSE_CODE = 4_200;
/** Beats that Discord may ask for; others are nonsense. */
const BEAT_MIN_MS = 50;
const BEAT_MAX_MS = 10 * 60_000;

/** What is needed to take up a session of the gateway again. */
export interface GatewaySession {
  readonly id: string;
  /** Where it is taken up. */
  readonly url: string;
}

/** How a connection ended. */
export type Ending =
  | { readonly kind: "closed"; readonly code: number; readonly words?: string }
  /** Discord did not take us in, in time. */
  | { readonly kind: "silent" }
  /** It was told to. */
  | { readonly kind: "stopped" };

export interface ConnectionParts {
  readonly world: World;
  readonly token: string;
  readonly intents: number;
  /** Where a new session begins; checked by the caller, as is a session's own. */
  readonly url: string;
  /** To be taken up, if there is one. */
  readonly session: GatewaySession | undefined;
  /** The number of the last event that is settled. */
  settled(): number;
  /** A session has begun, or (undefined) the old one is no more. */
  begun(session: GatewaySession | undefined): void;
  /** Messages come in from now on: anew, or from where the last connection ended. */
  ready(how: "anew" | "resumed"): void;
  event(type: string, data: Fields, sequence: number): void;
}

/** What of the library's connection is reached into. */
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

/** Whether the library can read this frame without failing at it. */
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
  try {
    const frame = objectOf(JSON.parse(data));
    return frame !== undefined && isSound(frame) ? frame : undefined;
  } catch {
    return undefined;
  }
}

/** The library's connection, which it is kept from replacing by another once `isOver`. */
async function makeShard(parts: ConnectionParts, isOver: () => boolean): Promise<WebSocketShard> {
  const { DefaultWebSocketManagerOptions: defaults, WebSocketShard } = await import("@discordjs/ws");
  const { encoding, identifyProperties, version } = defaults;
  let known = parts.session;
  const info = (session: GatewaySession): SessionInfo => ({
    sessionId: session.id,
    resumeURL: session.url,
    sequence: parts.settled(),
    ...{ shardId: 0, shardCount: 1 },
  });
  return new WebSocketShard(
    {
      options: {
        ...{ compression: null, encoding, identifyProperties, version, useIdentifyCompression: false },
        ...{ handshakeTimeout: READY_MS, helloTimeout: null, readyTimeout: null },
        ...{ initialPresence: null, largeThreshold: null, intents: parts.intents, token: parts.token },
        shardCount: 1,
        gatewayInformation: {
          url: parts.url,
          shards: 1,
          session_start_limit: { total: 1, remaining: 1, reset_after: 0, max_concurrency: 1 },
        },
      },
      // Asked by the library before it begins another connection, too: there it waits for ever.
      retrieveSessionInfo: () => {
        if (isOver()) return new Promise<null>(() => {});
        return known === undefined ? null : info(known);
      },
      // The number of the last event that it brings along is of one that is received, not settled.
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

/** Closes the socket, and waits until it is closed: not longer than Discord has to answer. */
async function leave(shard: WebSocketShard, { clock }: World): Promise<void> {
  const { connection } = shard as unknown as Innards;
  const isOpen = connection !== null && connection.readyState !== CLOSED;
  let deadline: Timer | undefined;
  const closed = new Promise<void>((resolve) => {
    if (!isOpen) return resolve();
    // The library stops listening for errors before the last one may come.
    connection.on("error", () => {});
    connection.on("close", resolve);
    deadline = clock.at(clock.now() + CLOSE_MS, () => connection.terminate());
    if (connection.readyState === OPENING) connection.terminate();
  });
  // Its promise may stay open when two ends meet; the socket's end is what counts.
  shard.destroy({ code: CLOSE_CODE }).catch(() => {});
  await closed;
  deadline?.cancel();
}

/** Holds one connection until it ends, or until the signal fires. */
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
    if (skipped === 1 && frame === undefined) world.log.warn({}, "Discord sent what is no frame; left out");
    return frame ?? null;
  };
  const onMessage = innards.onMessage.bind(shard);
  innards.onMessage = (data, isBinary) =>
    onMessage(data, isBinary).catch((error: unknown) => {
      world.log.warn({ err: error }, "a frame of Discord could not be read");
    });
  const deadline = world.clock.at(world.clock.now() + READY_MS, () => end({ kind: "silent" }));
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
  // Why is told by the number with which the socket is closed.
  shard.on("error", () => {});
  shard.on("closed", (code) => end({ kind: "closed", code, ...(words === undefined ? {} : { words }) }));
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
