// Owns one socket of a client: open, challenge, connect, frames in and out. It lives once and is not opened
// again.
// CS1: whatever goes wrong is a `GatewayError` that says what to do; nothing is thrown at nobody.

import { type ClientOptions as SocketOptions, WebSocket } from "ws";
import type { World } from "../world.ts";
import {
  type ClientInfo,
  type EventFrame,
  type HelloOk,
  MAX_PAYLOAD_BYTES,
  PROTOCOL_VERSIONS,
  type ResponseFrame,
  type WireError,
} from "./protocol.ts";
import { isObject } from "./validate.ts";

/** The gateway's error codes, and what a client itself can meet: nobody there, a broken connection. */
export type ClientCode = WireError["code"] | "UNREACHABLE" | "CLOSED";

export class GatewayError extends Error {
  readonly code: ClientCode;
  /** `details.code` is the finer code of the failure. */
  readonly details: Readonly<Record<string, unknown>>;
  readonly retryable: boolean;
  readonly retryAfterMs: number | undefined;

  constructor(code: ClientCode, message: string, more: Partial<WireError> = {}) {
    super(message);
    this.name = "GatewayError";
    this.code = code;
    this.details = more.details ?? {};
    this.retryable = more.retryable ?? (code === "UNREACHABLE" || code === "CLOSED");
    this.retryAfterMs = more.retryAfterMs;
  }
}

export function errorOf(error: WireError | undefined): GatewayError {
  if (error === undefined)
    return new GatewayError("UNAVAILABLE", "the gateway gave an error without a reason");
  return new GatewayError(error.code, error.message, error);
}

export interface SocketParts {
  readonly url: string;
  readonly token?: string | undefined;
  readonly role?: "operator" | "node" | undefined;
  readonly scopes?: readonly string[] | undefined;
  readonly client?: Partial<ClientInfo> | undefined;
  /** How long opening and `connect` may take together. */
  readonly connectTimeoutMs: number;
  readonly world: World;
}

export interface ClientSocket {
  readonly hello: HelloOk;
  send(frame: object): void;
  /** Called with every frame after the greeting, then once with why it ended. */
  listen(onFrame: (frame: ResponseFrame | EventFrame) => void, onEnd: (error: GatewayError) => void): void;
  close(): void;
}

const CONNECT_ID = "connect";
/** No frame for so many tick intervals: the connection is dead, whatever the system thinks. */
const SILENT_TICKS_MAX = 3;
/** A gateway that doesn't answer the closing is not waited for. */
const CLOSE_GRACE_MS = 1_000;

function readJson(data: string): Record<string, unknown> | undefined {
  try {
    const frame: unknown = JSON.parse(data);
    return isObject(frame) ? frame : undefined;
  } catch {
    return undefined;
  }
}

function connectParams(parts: SocketParts): object {
  const { token, role, scopes, client } = parts;
  return {
    minProtocol: PROTOCOL_VERSIONS[0],
    maxProtocol: PROTOCOL_VERSIONS.at(-1),
    client: { id: "parley-client", version: "1", platform: process.platform, mode: "cli", ...client },
    ...(role === undefined ? {} : { role }),
    ...(scopes === undefined ? {} : { scopes }),
    ...(token === undefined ? {} : { auth: { token } }),
  };
}

function unreachable(url: string, error: Error): GatewayError {
  const reason =
    error.message === "" ? ((error as NodeJS.ErrnoException).code ?? "no answer") : error.message;
  return new GatewayError(
    "UNREACHABLE",
    `no gateway at ${url} (${reason}). Is it running? "parley gateway" starts it.`,
  );
}

/** Opens a socket and says hello. Rejects with a `GatewayError`. */
export function openSocket(parts: SocketParts): Promise<ClientSocket> {
  const { url, world } = parts;
  const options: SocketOptions = { maxPayload: 4 * MAX_PAYLOAD_BYTES, perMessageDeflate: false };
  const { promise, resolve, reject } = Promise.withResolvers<ClientSocket>();
  let socket: WebSocket;
  try {
    socket = new WebSocket(url, options);
  } catch (error) {
    return Promise.reject(new GatewayError("INVALID_REQUEST", `not an address: ${(error as Error).message}`));
  }
  const give = (error: GatewayError): void => {
    timer.cancel();
    reject(error);
    socket.terminate();
  };
  const timer = world.clock.at(world.clock.now() + parts.connectTimeoutMs, () => {
    give(new GatewayError("UNREACHABLE", `${url} did not answer in time`));
  });
  socket.on("error", (error) => give(unreachable(url, error)));
  socket.on("unexpected-response", (_request, response) => {
    let body = "";
    response.setEncoding("utf8");
    response.on("data", (piece: string) => {
      body = `${body}${piece}`.slice(0, 10_000);
    });
    response.on("end", () => {
      const error = readJson(body)?.error;
      const known = isObject(error) && typeof error.code === "string";
      give(
        known
          ? errorOf(error as unknown as WireError)
          : unreachable(url, new Error(`HTTP ${response.statusCode}`)),
      );
    });
  });
  socket.on("close", (code, reason) => {
    give(new GatewayError("CLOSED", `the gateway closed the connection: ${reason.toString() || code}`));
  });
  socket.on("message", (data) => {
    const frame = readJson(data.toString());
    if (frame?.event === "connect.challenge") {
      socket.send(
        JSON.stringify({ type: "req", id: CONNECT_ID, method: "connect", params: connectParams(parts) }),
      );
      return;
    }
    if (frame?.type !== "res" || frame.id !== CONNECT_ID) return;
    const answer = frame as unknown as ResponseFrame;
    if (!answer.ok) return give(errorOf(answer.error));
    timer.cancel();
    socket.removeAllListeners();
    resolve(connected(socket, answer.payload as HelloOk, world));
  });
  return promise;
}

function connected(socket: WebSocket, hello: HelloOk, world: World): ClientSocket {
  const silentMaxMs = hello.policy.tickIntervalMs * SILENT_TICKS_MAX;
  let onFrame: (frame: ResponseFrame | EventFrame) => void = () => {};
  let onEnd: (error: GatewayError) => void = () => {};
  let heardAt = world.clock.now();
  let ended: GatewayError | undefined;
  const watch = () => world.clock.at(heardAt + silentMaxMs, check);
  const check = (): void => {
    if (world.clock.now() - heardAt < silentMaxMs) {
      timer = watch();
      return;
    }
    end(new GatewayError("CLOSED", "the gateway has gone silent"));
    socket.terminate();
  };
  let timer = watch();
  const end = (error: GatewayError): void => {
    if (ended !== undefined) return;
    ended = error;
    timer.cancel();
    onEnd(error);
  };
  // Frames that came before somebody listens are kept for them.
  let early: (ResponseFrame | EventFrame)[] | undefined = [];
  socket.on("message", (data) => {
    heardAt = world.clock.now();
    const frame = readJson(data.toString()) as unknown as ResponseFrame | EventFrame | undefined;
    if (frame === undefined) return;
    if (early === undefined) onFrame(frame);
    else early.push(frame);
  });
  socket.on("error", (error) => end(new GatewayError("CLOSED", `the connection broke: ${error.message}`)));
  socket.on("close", (code, reason) => {
    end(new GatewayError("CLOSED", `the gateway closed the connection: ${reason.toString() || code}`));
  });
  return {
    hello,
    send: (frame) => socket.send(JSON.stringify(frame), () => {}),
    listen(frames, gone) {
      onFrame = frames;
      onEnd = gone;
      const waiting = early ?? [];
      early = undefined;
      for (const frame of waiting) onFrame(frame);
      if (ended !== undefined) onEnd(ended);
    },
    close() {
      socket.close(1000);
      const cutOff = world.clock.at(world.clock.now() + CLOSE_GRACE_MS, () => socket.terminate());
      socket.once("close", () => cutOff.cancel());
    },
  };
}
