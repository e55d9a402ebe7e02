// The WebSocket interface that the client needs: `dial/ws.ts` implements it in Node, `dial/web.ts` elsewhere.

import type { GatewayError } from "../error.ts";

interface DialEvents {
  message(text: string): void;
  /** Called once, whether the socket was ever open or not. No event follows. */
  end(error: GatewayError): void;
}

export interface DialedSocket {
  /** Text for a socket that has ended is dropped. */
  send(text: string): void;
  /** Closes the socket without waiting for the peer's close frame. */
  close(): void;
  /** Ends the socket at once, without a close frame. */
  cut(): void;
}

export interface Dialer {
  /** The platform's name in `connect`. */
  readonly platform: string;
  /** Throws a `GatewayError` for an invalid address. */
  dial(url: string, events: DialEvents): DialedSocket;
}
