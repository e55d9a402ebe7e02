// Sends requests to Discord. Each request is sent once, with limits on time and memory, and gets a clear
// message if it fails. The library never waits or retries: the caller (the outbox or the listener) decides.
// DR2: one time limit covers the whole request. An answer that exceeds the size limit is discarded.
// DR3: redirects are not followed, so the token is sent only to the configured address.

import type { API } from "@discordjs/core";
import type { RESTOptions } from "@discordjs/rest";
import { jsonOf, numberOf, objectOf } from "../../core/json.ts";
import { boundedBody } from "../../world/bounded-body.ts";
import { type Fetch, outgoingFetch } from "../../world/outgoing.ts";
import { timeLimit } from "../../world/pause.ts";
import type { World } from "../../world.ts";
import type { DiscordAccount } from "./discord.ts";
import { DiscordProblem, limited, refusal, unanswered } from "./problem.ts";

/** Time limit from the request to the last byte of the response. */
const TIMEOUT_MS = 15_000;
/** Time limit of a request that sends a file. */
export const UPLOAD_MS = 60_000;
/** Size limit of an answer. It is large enough for a hundred messages of maximum length. */
const ANSWER_BYTES_MAX = 8 * 1024 * 1024;

export interface Rest {
  /** Makes one API call. Rejects with a `DiscordProblem`. `timeoutMs`: default 15 s. */
  ask<T>(
    call: (api: API, signal: AbortSignal) => Promise<T>,
    outside?: AbortSignal,
    timeoutMs?: number,
  ): Promise<T>;
  close(): void;
}

async function request(ask: Fetch, url: string, init: RequestInit): Promise<Response> {
  let answer: Response;
  try {
    answer = await ask(url, init);
  } catch (error) {
    throw unanswered(error);
  }
  const { status, headers } = answer;
  const isRead = init.method === "GET";
  const bytes = await boundedBody(answer.body, ANSWER_BYTES_MAX).catch((error: unknown) => {
    // If the status is a success, a write has taken effect, even if the body of the answer is lost.
    if (isRead || !answer.ok) throw unanswered(error);
    return new Uint8Array();
  });
  if (bytes === undefined && isRead) throw new DiscordProblem("unknown", "Discord's answer was too large");
  if (status >= 300 && status < 400) {
    throw new DiscordProblem(
      "refused",
      `the address answered with a redirect (${status}); redirects are not followed`,
    );
  }
  // The library does not check that a body is an object or a list.
  const tidy = new Headers([...headers].filter(([name]) => /^(x-ratelimit-|retry-after$)/.test(name)));
  tidy.set("content-type", "application/json");
  const body = jsonOf(Buffer.from(bytes ?? []).toString("utf8"));
  const fits = typeof body === "object" && body !== null;
  return new Response(fits ? JSON.stringify(body) : "{}", {
    status: status === 204 ? 200 : status,
    headers: tidy,
  });
}

/** Converts an error of the library to a problem. `kinds`: the module with the library's error classes. */
function problemOf(error: unknown, kinds: typeof import("@discordjs/rest")): DiscordProblem {
  if (error instanceof DiscordProblem) return error;
  if (error instanceof kinds.RateLimitError) {
    return limited(Math.max(error.retryAfter, error.timeToReset, error.sublimitTimeout));
  }
  if (error instanceof kinds.HTTPError) return refusal(error.status, undefined, error.message);
  if (error instanceof kinds.DiscordAPIError) {
    const body = objectOf(error.rawError);
    return refusal(error.status, numberOf(body?.code), error.message);
  }
  return unanswered(error);
}

export async function openRest(account: DiscordAccount, world: World): Promise<Rest> {
  const [kinds, { API }] = await Promise.all([import("@discordjs/rest"), import("@discordjs/core")]);
  const ask = outgoingFetch("channel", account.restUrl);
  const makeRequest = (url: string, init: RequestInit) => request(ask, url, init);
  const rest = new kinds.REST({
    api: account.restUrl,
    // The library's time limit does not include the body. It is longer than our own limit, so that ours
    // decides.
    timeout: UPLOAD_MS * 2,
    retries: 0,
    rejectOnRateLimit: () => true,
    makeRequest: makeRequest as unknown as RESTOptions["makeRequest"],
  });
  const api = new API(rest);
  return {
    async ask(call, outside, timeoutMs = TIMEOUT_MS) {
      // The library forgets the token after a 401 response, so set it before each call.
      rest.setToken(account.token);
      const late = new DiscordProblem("unknown", `Discord did not answer within ${timeoutMs / 1_000} s`);
      using limit = timeLimit(world.clock, timeoutMs, { signal: outside, reason: late });
      try {
        return await call(api, limit.signal);
      } catch (error) {
        throw limit.late.aborted ? late : problemOf(error, kinds);
      }
    },
    close() {
      rest.clearHashSweeper();
      rest.clearHandlerSweeper();
    },
  };
}
