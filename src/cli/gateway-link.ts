// A command's connection to the gateway: finds, opens and closes it.
// An unreachable gateway or a lost connection is a failure as a value, with a hint how to start a gateway.

import { type ConnectOptions, connect, type GatewayClient, GatewayError } from "../contract/client/node.ts";
import { type Address, findAddress } from "./address.ts";
import type { Cli, Trouble } from "./cli.ts";

/** An answer or a failure. */
export type Reply<T> = { readonly ok: true; readonly value: T } | ({ readonly ok: false } & Trouble);

export interface Link {
  readonly client: GatewayClient;
  /** Sends a request and returns its first answer; failures are values. */
  call<T = unknown>(method: string, params: object): Promise<Reply<T>>;
}

function troubleOf(error: unknown): { ok: false } & Trouble {
  if (!(error instanceof GatewayError)) throw error;
  const { code: finer, hint, ...details } = error.details;
  const more = Object.keys(details).length === 0 ? {} : { details };
  return {
    ok: false,
    code: typeof finer === "string" ? finer : error.code,
    error: error.message,
    ...(typeof hint === "string" ? { hint } : {}),
    ...more,
  };
}

/** Opens a connection. The caller closes it. */
export async function openLink(
  address: Address,
  options: Pick<ConnectOptions, "reconnect" | "world" | "connectTimeoutMs">,
): Promise<Reply<Link>> {
  try {
    const client = await connect({
      url: address.url,
      ...(address.token === "" ? {} : { token: address.token }),
      ...options,
      client: { id: "parley-cli", mode: "cli" },
    });
    const call = async <T>(method: string, params: object): Promise<Reply<T>> => {
      try {
        return { ok: true, value: await client.call<T>(method, params) };
      } catch (error) {
        return troubleOf(error);
      }
    };
    return { ok: true, value: { client, call } };
  } catch (error) {
    return troubleOf(error);
  }
}

/** Connects to the gateway, runs `work` and closes the connection. Prints the failure if that fails. */
export async function withLink(
  cli: Cli,
  work: (link: Link) => Promise<number>,
  reconnect = false,
): Promise<number> {
  const address = await findAddress(cli);
  if (!address.ok) return cli.fail(address);
  const opened = await openLink(address.value, { reconnect, world: cli.parts.world });
  if (!opened.ok) return cli.fail(opened);
  try {
    return await work(opened.value);
  } finally {
    opened.value.client.close();
  }
}
