// Owns which gateway this tab is connected to: the reader's own, or through it the demo that it holds.
// DC1: the reader's token opens the way to the demo, each time anew: after a restart of the gateway there is
//      another demo, which has another token.

import { webDialer } from "../../../src/gateway/client/dial-web.ts";
import { openClient } from "../../../src/gateway/client/open.ts";
import { type GatewayClient, GatewayError } from "../../../src/gateway/client/web.ts";
import { inDemo, leaveDemo } from "./scene.ts";

/** The client library's, without its streams of events: they would be a twentieth of the page. */
export type Connection = Omit<GatewayClient, "events">;

const CLIENT = { id: "parley-page", mode: "webchat", displayName: "Web page" };

/** Says no, and would again. */
export function isRefusal(error: unknown): error is GatewayError {
  return error instanceof GatewayError && ["UNAUTHORIZED", "FORBIDDEN", "NOT_PAIRED"].includes(error.code);
}

async function openDemo(own: Connection): Promise<Connection> {
  const { path, token } = await own.request("demo.start").catch((error: unknown) => {
    const none = error instanceof GatewayError && error.code === "INVALID_REQUEST";
    if (none || isRefusal(error)) leaveDemo();
    throw new GatewayError("UNREACHABLE", `the demo could not be begun: ${String(error)}`);
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
