// Owns the client of the gateway's protocol in Node: for the command line, for tests, and, as
// `parley-gateway/client`, for programs (docs/CLIENT.md). Browsers get client/web.ts.

import { wsDialer } from "./client/dial-ws.ts";
import { openClient } from "./client/open.ts";
import type { ConnectOptions, GatewayClient } from "./client/types.ts";
import { withEvents } from "./client/with-events.ts";

export { GatewayError } from "./client/error.ts";
export type * from "./client/types.ts";

/**
 * Connects to a gateway. Rejects with a `GatewayError`: nobody there, a wrong token, no common protocol
 * version.
 */
export async function connect(options: ConnectOptions): Promise<GatewayClient> {
  return withEvents(await openClient(options, wsDialer));
}
