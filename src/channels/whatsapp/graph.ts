// Owns one request to the Graph API of the platform, or to where it keeps media (HX1 to HX4 of
// exchange.ts).

import type { World } from "../../world.ts";
import { type Exchange, type Exchanged, exchange } from "../exchange.ts";

type GraphRequest = Pick<Exchange, "purpose" | "configured" | "timeoutMs" | "bytesMax" | "stop"> & {
  readonly url: URL;
  readonly token: string;
  /** Sent by POST. Absent: GET. */
  readonly body?: object;
};

/** Asks once. What comes of it is a value; nothing is thrown. */
export function askGraph({ token, body, ...asked }: GraphRequest, { clock }: World): Promise<Exchanged> {
  const headers = { authorization: `Bearer ${token}` };
  const text = body === undefined ? {} : { body: JSON.stringify(body) };
  return exchange({ ...asked, ...text, headers, server: asked.url.host }, clock);
}
