// The client of the gateway protocol for Node. The command line, tests and other programs use it, as
// `parley-gateway/client` (docs/CLIENT.md). Browsers get client/web.ts.

import { wsDialer } from "./dial/ws.ts";
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
  return withEvents(await openClient(options, wsDialer));
}
