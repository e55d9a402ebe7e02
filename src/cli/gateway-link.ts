// A command's connection to the gateway: finds the address, opens the connection and closes it. An
// unreachable gateway or a lost connection is returned as a failure, with a hint on how to start a gateway.

import { type ConnectOptions, connect, type GatewayClient, GatewayError } from "../contract/client/node.ts";
import type { RequestParams } from "../contract/client/types.ts";
import type { MethodName, PayloadOf } from "../contract/methods.ts";
import { optional } from "../core/optional.ts";
import { type Address, findAddress } from "./address.ts";
import type { Cli, Trouble } from "./cli.ts";

/** An answer or a failure. */
export type Reply<T> = { readonly ok: true; readonly value: T } | ({ readonly ok: false } & Trouble);

/** Params of which some may be undefined. */
export type Loose<P> = { readonly [K in keyof P]: P[K] | undefined };

export interface Link extends Disposable {
  readonly client: GatewayClient;
  /** `ws://host:port` */
  readonly url: string;
  /** Calls a method, without the params that are undefined. Returns a failure as a value. */
  request<M extends MethodName>(method: M, params: Loose<RequestParams<M>>): Promise<Reply<PayloadOf<M>>>;
  /** Calls a method whose name the user typed. Returns the answer, or a failure as a value. */
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

/** Opens a connection to the gateway. The caller must close it. */
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
    const readReply = async <T>(answer: Promise<T>): Promise<Reply<T>> => {
      try {
        return { ok: true, value: await answer };
      } catch (error) {
        return troubleOf(error);
      }
    };
    const link: Link = {
      client,
      url: address.url,
      [Symbol.dispose]: () => client.close(),
      request: (method, params) => readReply(client.request(method, ...([optional(params)] as never))),
      call: (method, params) => readReply(client.call(method, params)),
    };
    return { ok: true, value: link };
  } catch (error) {
    return troubleOf(error);
  }
}

/**
 * Connects to the gateway, runs `work` and closes the connection. If it cannot connect, prints the failure
 * and returns the exit code.
 */
export async function withLink(
  cli: Cli,
  work: (link: Link) => Promise<number>,
  reconnect = false,
): Promise<number> {
  const address = await findAddress(cli);
  if (!address.ok) return cli.fail(address);
  const opened = await openLink(address.value, { reconnect, world: cli.parts.world });
  if (!opened.ok) return cli.fail(opened);
  using link = opened.value;
  return await work(link);
}
