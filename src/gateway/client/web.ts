// Owns the client of the gateway's protocol where WebSocket is part of the platform: what
// `parley-gateway/client` is in a browser. The same as ../client.ts but for the socket.
// WB1: nothing of Node is reached from here; tests/e2e/package.test.ts looks at the built file.

import { webDialer } from "./dial-web.ts";
import { openClient } from "./open.ts";
import type { ConnectOptions, GatewayClient } from "./types.ts";
import { withEvents } from "./with-events.ts";

export { GatewayError } from "./error.ts";
export type * from "./types.ts";

/**
 * Connects to a gateway. Rejects with a `GatewayError`: nobody there, a wrong token, no common protocol
 * version.
 */
export async function connect(options: ConnectOptions): Promise<GatewayClient> {
  return withEvents(await openClient(options, webDialer));
}
