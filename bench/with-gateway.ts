// Runs a function against a gateway of this checkout, with a connected client.

import { connect, type GatewayClient } from "../src/contract/client/node.ts";
import { addressOf, launch, TOKEN, writeHome } from "../tests/kit/process/fleet.ts";

export interface RunningGateway {
  readonly client: GatewayClient;
  readonly httpUrl: string;
  readonly wsUrl: string;
}

/**
 * Starts a gateway with these settings in a home folder, runs `work`, and stops it. `flags`: those of Node.
 */
export async function withGateway<T>(
  home: string,
  settings: Readonly<Record<string, unknown>>,
  work: (gateway: RunningGateway) => Promise<T>,
  flags: readonly string[] = [],
): Promise<T> {
  writeHome(home, { gateway: { port: 0, auth: { token: TOKEN } }, ...settings });
  const child = launch(home, ["gateway"], flags);
  child.stderr?.pipe(process.stderr);
  const ended = new Promise((done) => child.once("exit", done));
  try {
    const httpUrl = await addressOf(child);
    const wsUrl = httpUrl.replace("http", "ws");
    const client = await connect({ url: wsUrl, token: TOKEN });
    try {
      return await work({ client, httpUrl, wsUrl });
    } finally {
      client.close();
    }
  } finally {
    child.kill("SIGTERM");
    await ended;
  }
}
