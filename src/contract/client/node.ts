// Node's client of the gateway protocol: for the command line, for tests and, as `parley-gateway/client`, for
// programs (docs/CLIENT.md). Browsers get client/web.ts.

import { wsDialer } from "./dial/ws.ts";
import { openClient } from "./open.ts";
import type { ConnectOptions, GatewayClient } from "./types.ts";
import { withEvents } from "./with-events.ts";

export { GatewayError } from "./error.ts";
export type * from "./types.ts";

/**
 * Connects to a gateway. Rejects with a `GatewayError`: unreachable, a wrong token, or no common protocol
 * version.
 */
export async function connect(options: ConnectOptions): Promise<GatewayClient> {
  return withEvents(await openClient(options, wsDialer));
}
