// Sends one request to the platform's Graph API or to its media hosts (HX1 to HX4 of exchange.ts).

import type { World } from "../../world.ts";
import { type Exchange, type Exchanged, exchange } from "../exchange.ts";

type GraphRequest = Pick<Exchange, "purpose" | "configured" | "timeoutMs" | "bytesMax" | "stop"> & {
  readonly url: URL;
  readonly token: string;
  /** Body for a POST request. If absent, the request is a GET. */
  readonly body?: object;
};

/** Makes one request. Never throws. */
export function askGraph({ token, body, ...asked }: GraphRequest, { clock }: World): Promise<Exchanged> {
  const headers = { authorization: `Bearer ${token}` };
  const text = body === undefined ? {} : { body: JSON.stringify(body) };
  return exchange({ ...asked, ...text, headers, server: asked.url.host }, clock);
}
