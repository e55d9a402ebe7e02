// Connects this tab to the reader's own gateway, or through it to its demo. Each connection requests the
// demo's token with the reader's token: a restart of the gateway makes a new demo with a new token.

import { webDialer } from "../../src/contract/client/dial/web.ts";
import { openClient } from "../../src/contract/client/open.ts";
import { type GatewayClient, GatewayError } from "../../src/contract/client/web.ts";
import { inDemo, leaveDemo } from "./demo/scene.ts";

/** The client library's interface without event streams, which would be a twentieth of the page's size. */
export type Connection = Omit<GatewayClient, "events">;

const CLIENT = { id: "parley-page", mode: "webchat", displayName: "Web page" };

/** Returns true if the gateway refused and a retry would be refused, too. */
export function isRefusal(error: unknown): error is GatewayError {
  return error instanceof GatewayError && ["UNAUTHORIZED", "FORBIDDEN", "NOT_PAIRED"].includes(error.code);
}

async function openDemo(own: Connection): Promise<Connection> {
  const { path, token } = await own.request("demo.start").catch((error: unknown) => {
    const none = error instanceof GatewayError && error.code === "INVALID_REQUEST";
    if (none || isRefusal(error)) leaveDemo();
    throw new GatewayError("UNREACHABLE", `the demo did not start: ${String(error)}`);
  });
  const url = window.location.origin + path;
  return openClient({ url, token, client: CLIENT, reconnect: false }, webDialer);
}

export async function openShown(token: string): Promise<Connection> {
  const own = await openClient({ url: window.location.origin, token, client: CLIENT }, webDialer);
  if (!inDemo) return own;
  try {
    return await openDemo(own);
  } finally {
    own.close();
  }
}
