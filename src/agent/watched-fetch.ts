// Owns the HTTP of model requests: redirects are refused, and each byte of an answer is told.
// WF1: no redirect is followed: it would carry the key and the conversation to another place.
// WF2: Google's client takes no fetch of ours and calls the global one, which is guarded for its requests.

import { AsyncLocalStorage } from "node:async_hooks";

/** What came back over HTTP, seen beside the provider's client, which keeps it to itself. */
export interface Seen {
  status?: number;
  headers?: Headers;
  /** The origin that a refused redirect names. */
  redirectedTo?: string;
}

export interface Watched {
  readonly seen: Seen;
  /** Called at each part of the answer. */
  heard(): void;
}

function originIn(response: Response): string {
  const location = response.headers.get("location") ?? "";
  return URL.canParse(location, response.url) ? new URL(location, response.url).origin : "nowhere";
}

/** A fetch that follows no redirect and tells of what comes. */
export function watchedFetch(inner: typeof fetch, { seen, heard }: Watched): typeof fetch {
  return async (input, init) => {
    const response = await inner(input, { ...init, redirect: "manual" });
    heard();
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
        heard();
        controller.enqueue(chunk);
      },
    });
    return new Response(body.pipeThrough(told), { status, statusText, headers });
  };
}

/** The request of Google's client that the present work belongs to. */
export const GOOGLE_REQUEST = new AsyncLocalStorage<Watched>();
let guarded = false;

/** Puts a guard before the global fetch, once. It changes requests of Google's client only. */
export function guardGlobalFetch(): void {
  if (guarded) return;
  guarded = true;
  const inner = globalThis.fetch;
  globalThis.fetch = (input, init) => {
    const watched = GOOGLE_REQUEST.getStore();
    return watched === undefined ? inner(input, init) : watchedFetch(inner, watched)(input, init);
  };
}
