// Owns what a request to become a WebSocket is answered before there is one.
// UG1: a refusal is plain HTTP, and the socket of a refused one is closed.

import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { WebSocketServer } from "ws";
import { CODES, type Failure } from "../core/errors.ts";
import type { Redactor } from "../core/redact.ts";
import { wireError } from "./answer.ts";
import { MAX_PAYLOAD_BYTES } from "./protocol.ts";

/** What turns requests into WebSockets. Loaded by the first client. */
export async function openSockets(): Promise<WebSocketServer> {
  const { WebSocketServer } = await import("ws");
  return new WebSocketServer({
    noServer: true,
    maxPayload: MAX_PAYLOAD_BYTES,
    perMessageDeflate: false,
    clientTracking: false,
  });
}

/** The path that a request asks for, without its query. */
export function pathOf({ url = "/" }: IncomingMessage): string {
  return url.split("?", 1)[0] ?? url;
}

/** Refuses before the upgrade, over plain HTTP: no frame has been spoken yet. */
export function refuseUpgrade(socket: Duplex, failure: Failure, redactor: Redactor): void {
  const body = JSON.stringify({ ok: false, error: wireError(failure, redactor) });
  const { http } = CODES[failure.code];
  const head = [
    `HTTP/1.1 ${http} Refused`,
    "content-type: application/json",
    `content-length: ${Buffer.byteLength(body)}`,
    "connection: close",
  ];
  // Nothing closes an upgrading socket but this: a peer that stays half open would hold it for ever.
  socket.once("finish", () => socket.destroy());
  socket.end(`${head.join("\r\n")}\r\n\r\n${body}`);
}
