// Owns what is seen of the HTTP of a model request: its status, a refused redirect, each byte of an answer.
// WF1: a redirect is an error here: world/outgoing.ts follows none for models.

import { type Fetch, isConnectTimeout } from "../world/outgoing.ts";

/** The HTTP response, read beside the provider's client, which does not pass it on. */
export interface Seen {
  status?: number;
  headers?: Headers;
  /** The origin that a refused redirect names. */
  redirectedTo?: string;
  /** No connection stood in time. */
  notConnected?: boolean;
}

export interface Watched {
  readonly seen: Seen;
  /** Called at each part of the answer, with its size. */
  heard(bytes: number): void;
}

function originIn(response: Response): string {
  const location = response.headers.get("location") ?? "";
  return URL.canParse(location, response.url) ? new URL(location, response.url).origin : "nowhere";
}

/** A fetch that tells what comes. */
export function watchedFetch(inner: Fetch, { seen, heard }: Watched): Fetch {
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
      seen.redirectedTo = originIn(response);
      await body?.cancel();
      return new Response(null, { status, statusText });
    }
    if (body === null) return response;
    const told = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        heard(chunk.byteLength);
        controller.enqueue(chunk);
      },
    });
    return new Response(body.pipeThrough(told), { status, statusText, headers });
  };
}
