// Opens the client's WebSocket with the platform's own implementation: browsers, workers, Deno, Bun.
// Imports nothing from Node (PW1 of plain.ts).

import { GatewayError } from "../error.ts";
import type { Dialer } from "./dial.ts";

function open(url: string): WebSocket {
  try {
    return new WebSocket(url);
  } catch (error) {
    throw new GatewayError("INVALID_REQUEST", `invalid address: ${(error as Error).message}`);
  }
}

/** Returns the failure of a socket that did not open. Browsers do not tell a page the reason. */
function silent(url: string): GatewayError {
  const hint = "Check that it runs, and that gateway.allowedOrigins has this page's origin.";
  return new GatewayError("UNREACHABLE", `cannot connect to a gateway at ${url}. ${hint}`, { hint });
}

export const webDialer: Dialer = {
  platform: "web",
  dial(url, events) {
    const socket = open(url);
    let isOpen = false;
    let hasEnded = false;
    const end = (error: GatewayError): void => {
      if (hasEnded) return;
      hasEnded = true;
      events.end(error);
    };
    socket.addEventListener("open", () => {
      isOpen = true;
    });
    socket.addEventListener("message", ({ data }) => {
      if (!hasEnded && typeof data === "string") events.message(data);
    });
    socket.addEventListener("close", ({ code, reason }) => {
      const why = `the gateway closed the connection: ${reason || code}`;
      end(isOpen ? new GatewayError("CLOSED", why) : silent(url));
    });
    return {
      send(text) {
        if (socket.readyState === socket.OPEN) socket.send(text);
      },
      close: () => socket.close(1000),
      cut() {
        end(new GatewayError("CLOSED", "the client ended the connection"));
        socket.close();
      },
    };
  },
};
