// The client of the gateway's protocol on platforms with a built-in WebSocket: `parley-gateway/client` in a
// browser. Only its socket differs from node.ts. It imports nothing from Node; tests/e2e/package.deep.test.ts
// checks the built file.

import { webDialer } from "./dial/web.ts";
import { openClient } from "./open.ts";
import type { ConnectOptions, GatewayClient } from "./types.ts";
import { withEvents } from "./with-events.ts";

export { GatewayError } from "./error.ts";
export type * from "./types.ts";

/**
 * Connects to a gateway. Rejects with a `GatewayError` if the gateway is unreachable, the token is wrong, or
 * the gateway supports no protocol version of this client.
 */
export async function connect(options: ConnectOptions): Promise<GatewayClient> {
  return withEvents(await openClient(options, webDialer));
}
