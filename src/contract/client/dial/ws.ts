// Opens the client's WebSocket in Node, with the package `ws`.
// Unlike Node's own WebSocket, `ws` reports why an upgrade was refused.

import { type ClientOptions, type RawData, WebSocket } from "ws";
import { webSocketAgent } from "../../../world/outgoing.ts";
import type { WireError } from "../../frames.ts";
import { MAX_FRAME_BYTES } from "../../protocol.ts";
import { errorOf, GatewayError, unreachable } from "../error.ts";
import type { Dialer } from "./dial.ts";

const OPTIONS: ClientOptions = { maxPayload: MAX_FRAME_BYTES, perMessageDeflate: false };
/** Maximum number of characters to read from the answer to a refused upgrade. */
const REFUSAL_MAX_CHARS = 10_000;

/**
 * Reads the gateway's error from the body of a refused upgrade. Returns undefined for a body of another
 * program.
 */
function refusalIn(body: string): WireError | undefined {
  try {
    const { error } = JSON.parse(body) as { error?: WireError };
    return typeof error?.code === "string" ? error : undefined;
  } catch {
    return undefined;
  }
}

function open(url: string): WebSocket {
  try {
    return new WebSocket(url, { ...OPTIONS, agent: webSocketAgent(url) });
  } catch (error) {
    throw new GatewayError("INVALID_REQUEST", `invalid address: ${(error as Error).message}`);
  }
}

export const wsDialer: Dialer = {
  platform: process.platform,
  dial(url, events) {
    const socket = open(url);
    let isOpen = false;
    let hasEnded = false;
    const end = (error: GatewayError): void => {
      if (hasEnded) return;
      hasEnded = true;
      events.end(error);
    };
    socket.on("open", () => {
      isOpen = true;
    });
    socket.on("message", (data: RawData) => {
      if (!hasEnded) events.message(data.toString());
    });
    socket.on("error", (error: NodeJS.ErrnoException) => {
      const what = error.message || (error.code ?? "no answer");
      end(isOpen ? new GatewayError("CLOSED", `the connection was lost: ${what}`) : unreachable(url, what));
    });
    socket.on("unexpected-response", (_request, response) => {
      let body = "";
      response.setEncoding("utf8");
      response.on("data", (piece: string) => {
        body = `${body}${piece}`.slice(0, REFUSAL_MAX_CHARS);
      });
      response.on("end", () => {
        const refusal = refusalIn(body);
        end(refusal === undefined ? unreachable(url, `HTTP ${response.statusCode}`) : errorOf(refusal));
        socket.terminate();
      });
    });
    socket.on("close", (code, reason) => {
      end(new GatewayError("CLOSED", `the gateway closed the connection: ${reason.toString() || code}`));
    });
    return {
      send: (text) => socket.send(text, () => {}),
      close: () => socket.close(1000),
      cut: () => socket.terminate(),
    };
  },
};
