// Handles a request to become a WebSocket, until the upgrade.
// A refusal is plain HTTP, and closes the socket.

import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { WebSocketServer } from "ws";
import { MAX_PAYLOAD_BYTES } from "../../contract/protocol.ts";
import { CODES, type Failure } from "../../core/shapes/errors.ts";
import type { Redactor } from "../../core/text/redact/redact.ts";
import { wireError } from "../answer.ts";

/** Creates the server that upgrades requests. Loaded by the first client. */
export async function openSockets(): Promise<WebSocketServer> {
  const { WebSocketServer } = await import("ws");
  return new WebSocketServer({
    noServer: true,
    maxPayload: MAX_PAYLOAD_BYTES,
    perMessageDeflate: false,
    clientTracking: false,
  });
}

/** Returns the path of a request, without its query. */
export function pathOf({ url = "/" }: IncomingMessage): string {
  return url.split("?", 1)[0] ?? url;
}

/** Refuses before the upgrade, over plain HTTP: no frame has been sent yet. */
export function refuseUpgrade(socket: Duplex, failure: Failure, redactor: Redactor): void {
  const body = JSON.stringify({ ok: false, error: wireError(failure, redactor) });
  const { http } = CODES[failure.code];
  const head = [
    `HTTP/1.1 ${http} Refused`,
    "content-type: application/json",
    `content-length: ${Buffer.byteLength(body)}`,
    "connection: close",
  ];
  // No other code closes a socket during the upgrade, so a peer that never closes would keep it open forever.
  socket.once("finish", () => socket.destroy());
  socket.end(`${head.join("\r\n")}\r\n\r\n${body}`);
}
