// Limits the memory for bodies of all unauthenticated senders together: web hooks, including those of chat
// platforms.
// UP1: their bytes are limited in total and per address, and counted as they arrive, so a slow sender
//      reserves nothing. A body is counted until its check has succeeded or failed.

import type { Context } from "hono";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import { type Env, readBytes, remoteOf } from "../http/request.ts";
import { Shares } from "../shares.ts";

const MIB = 1024 * 1024;
const BYTES = { ofOne: 48 * MIB, all: 64 * MIB };
const RETRY_MS = 1_000;

export type UnprovenRoom = ReturnType<typeof createUnprovenRoom>;

export function createUnprovenRoom() {
  const shares = new Shares(BYTES);
  return {
    /** Reads a body up to a limit, for `use`. Fails if the body is too large or there is no room. */
    async read<T>(
      c: Context<Env>,
      maxBytes: number,
      use: (body: Uint8Array) => Promise<Result<T>>,
    ): Promise<Result<T>> {
      const from = remoteOf(c);
      let held = 0;
      const take = (bytes: number): Result<void> => {
        if (!shares.take(from, bytes)) {
          return fail("rate_limited", "too many unauthenticated requests at once; send it again", {
            details: { retryAfterMs: RETRY_MS },
          });
        }
        held += bytes;
        return ok(undefined);
      };
      try {
        const body = await readBytes(c, maxBytes, take);
        return body.ok ? await use(body.value) : body;
      } finally {
        shares.give(from, held);
      }
    },
  };
}
