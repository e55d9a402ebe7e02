// Observes the HTTP of a model request: status, refused redirect, received bytes. A redirect is an error:
// world/outgoing.ts follows none for models. An answer is split into small pieces, with a pause for other
// work after some milliseconds, because the providers' clients never pause, and copy the rest of a piece for
// each event in it.

import { ReadableStream as NodeStream } from "node:stream/web";
import { JsonMeter, meteredBody } from "../../core/meter.ts";
import { createPaces } from "../../core/pace.ts";
import { type Fetch, isConnectTimeout } from "../../world/outgoing.ts";
import { type Call, originIn } from "./wire.ts";

const PIECE_BYTES = 1_024;

type Watched = Pick<Call, "seen" | "world" | "heard">;

/** Splits bytes into small pieces, on demand. */
async function* piecesOf(
  body: ReadableStream<Uint8Array>,
  heard: Watched["heard"],
  world: Watched["world"],
): AsyncGenerator<Uint8Array> {
  const pace = createPaces(world)("with this step");
  for await (const chunk of body) {
    for (let at = 0; at < chunk.byteLength; at += PIECE_BYTES) {
      const piece = chunk.subarray(at, at + PIECE_BYTES);
      heard(piece.byteLength);
      yield piece;
      await pace();
    }
  }
}

/** Wraps a fetch to report what it receives. */
export function watchedFetch(inner: Fetch, { seen, heard, world }: Watched): Fetch {
  return async (input, init) => {
    const response = await inner(input, init).catch((error: unknown) => {
      seen.notConnected = isConnectTimeout(error);
      throw error;
    });
    heard(0);
    seen.status = response.status;
    seen.headers = response.headers;
    const { status, statusText, headers, body } = response;
    if (status >= 300 && status < 400) {
      seen.redirectedTo = originIn(response.headers, response.url);
      await body?.cancel();
      return new Response(null, { status, statusText });
    }
    if (body === null) return response;
    const meter = new JsonMeter(response.ok ? "event" : "body");
    const pieces = piecesOf(meteredBody(body, meter), heard, world);
    return new Response(NodeStream.from(pieces) as typeof body, { status, statusText, headers });
  };
}
