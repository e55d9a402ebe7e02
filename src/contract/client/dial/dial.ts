// The WebSocket interface that the client needs. `dial/ws.ts` implements it for Node, `dial/web.ts` for other
// platforms.

import type { GatewayError } from "../error.ts";

interface DialEvents {
  message(text: string): void;
  /** Called once when the socket has ended, even if it was never open. No event follows. */
  end(error: GatewayError): void;
}

export interface DialedSocket {
  /** Sends a text. Does nothing if the socket has ended. */
  send(text: string): void;
  /** Closes the socket without waiting for the peer's close frame. */
  close(): void;
  /** Ends the socket immediately, without a close frame. */
  cut(): void;
}

export interface Dialer {
  /** Name of the platform, sent in `connect`. */
  readonly platform: string;
  /** Throws a `GatewayError` for an invalid address. */
  dial(url: string, events: DialEvents): DialedSocket;
}
