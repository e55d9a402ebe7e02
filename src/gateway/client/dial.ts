// Owns what the client needs of a WebSocket, whoever makes it: `dial-ws.ts` in Node, `dial-web.ts` elsewhere.

import type { GatewayError } from "./error.ts";

interface DialEvents {
  message(text: string): void;
  /** Once, whether it was ever open or not. Nothing comes after it. */
  end(error: GatewayError): void;
}

export interface Line {
  /** Text for a line that has ended goes nowhere. */
  send(text: string): void;
  /** Says goodbye; the other side's is not waited for. */
  close(): void;
  /** Ends it at once, whether the other side is still there or not. */
  cut(): void;
}

export interface Dialer {
  /** What `connect` tells the gateway. */
  readonly platform: string;
  /** Throws a `GatewayError` for what is no address. */
  dial(url: string, events: DialEvents): Line;
}
