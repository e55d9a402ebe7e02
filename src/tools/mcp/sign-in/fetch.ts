// Sends the requests of a sign-in: to the MCP server, and to the authorization server that it names. That one
// must use TLS and be public, unless it is on the host of the MCP server or the configuration names its host.

import type { IncomingMessage } from "node:http";
import type { FetchLike } from "@modelcontextprotocol/client";
import { boundedBody } from "../../../world/bounded-body.ts";
import { outgoingFetch, outgoingRequest } from "../../../world/outgoing.ts";
import { timeLimit } from "../../../world/pause.ts";
import type { OutsideWorld } from "../transport.ts";

const BODY_MAX_BYTES = 1024 * 1024;
const REQUEST_MAX_MS = 30_000;

/** Reads the body, so that its size and time are limited. */
async function readWhole(
  body: AsyncIterable<Uint8Array> | null,
  status: number,
  headers: Headers,
): Promise<Response> {
  const bytes = await boundedBody(body, BODY_MAX_BYTES);
  if (bytes === undefined) throw new Error(`an answer has more than ${BODY_MAX_BYTES} bytes`);
  return new Response(bytes.length === 0 ? null : new Uint8Array(bytes), { status, headers });
}

/** Returns a fetch for the hosts of these addresses, and for public ones. */
export function signInFetch(
  configured: readonly string[],
  { clock }: Pick<OutsideWorld, "clock">,
): FetchLike {
  const send = async (url: URL, init: RequestInit, signal: AbortSignal): Promise<Response> => {
    const { href, hostname, origin } = url;
    if (configured.some((one) => new URL(one).hostname === hostname)) {
      const { body, status, headers } = await outgoingFetch("mcp", origin)(href, { ...init, signal });
      // Only an MCP server that wants no sign-in answers with a stream, which need not end.
      if (!headers.get("content-type")?.startsWith("text/event-stream"))
        return readWhole(body, status, headers);
      await body?.cancel();
      return new Response(null, { status, headers });
    }
    const { method = "GET", body } = init;
    const headers = Object.fromEntries(new Headers(init.headers));
    const destination = { purpose: "client", url: href, configured: undefined } as const;
    const request = outgoingRequest(destination, { method, headers, signal });
    const answered = new Promise<IncomingMessage>((resolve, reject) => {
      request.on("response", resolve);
      request.on("error", reject);
    });
    // The library sends forms and texts.
    request.end(body === undefined || body === null ? undefined : String(body));
    const answer = await answered;
    const { "content-type": type = "", "dpop-nonce": nonce } = answer.headers;
    const kept = new Headers({
      "content-type": type,
      ...(nonce === undefined ? {} : { "dpop-nonce": String(nonce) }),
    });
    return readWhole(answer, answer.statusCode ?? 502, kept);
  };
  return async (url, init = {}) => {
    using limit = timeLimit(clock, REQUEST_MAX_MS, { reason: "no answer in time" });
    return await send(new URL(url), init, limit.signal);
  };
}
