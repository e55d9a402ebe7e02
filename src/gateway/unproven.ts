// Owns the memory for bodies of which it is not known yet who sent them: web hooks and calls of platforms,
// all together.
// UP1: they are bounded in sum, and counted as they come: who sends slowly takes nobody's place.
// UP2: a body is counted until whoever proves it is done with it, however that ends.

import type { Context } from "hono";
import { fail, ok, type Result } from "../core/errors.ts";
import { readBytes } from "./http-request.ts";

const UNPROVEN_MAX_BYTES = 64 * 1024 * 1024;
const RETRY_MS = 1_000;

export interface UnprovenRoom {
  /** Reads a body, at most so many bytes, for `use`. A failure: it is too large, or there is no room. */
  read<T>(c: Context, maxBytes: number, use: (body: Uint8Array) => Promise<Result<T>>): Promise<Result<T>>;
}

export function createUnprovenRoom(): UnprovenRoom {
  let bytesHeld = 0;
  return {
    async read(c, maxBytes, use) {
      let held = 0;
      const take = (bytes: number): Result<void> => {
        if (bytesHeld + bytes > UNPROVEN_MAX_BYTES) {
          return fail("rate_limited", "too much comes in at once; send it again", {
            details: { retryAfterMs: RETRY_MS },
          });
        }
        bytesHeld += bytes;
        held += bytes;
        return ok(undefined);
      };
      try {
        const body = await readBytes(c, maxBytes, take);
        return body.ok ? await use(body.value) : body;
      } finally {
        bytesHeld -= held;
      }
    },
  };
}
