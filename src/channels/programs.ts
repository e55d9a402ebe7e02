// Sends requests to programs, such as the notifications of A2A clients: one for each ended task and address.
// Each request needs limited time and memory: it has one time limit, redirects are not followed, and only the
// beginning of a response body is read. No log, error or row contains the address.

import type { IncomingMessage } from "node:http";
import { optional } from "../core/optional.ts";
import type { World } from "../world.ts";
import type { DeliveryOutcome } from "./channel.ts";
import { brokenWords, lateWords, outgoingOf, retryAfterIn } from "./exchange.ts";

const RECEIVER = "the receiver";
/** Time limit from the first attempt to connect to the last byte that is read. */
const TIMEOUT_MS = 10_000;
/**
 * Maximum number of bytes of a response body that are read and discarded. If the body is longer, the
 * connection is closed.
 */
const BODY_BYTES_MAX = 64 * 1024;
/** Status codes that mean a temporary refusal. */
const RETRIED = new Set([408, 409, 423, 425, 429]);
/** Status codes that mean that the receiver exists no more. */
const GONE = new Set([404, 410]);

function outcomeOf(answer: IncomingMessage, nowMs: number): DeliveryOutcome {
  const status = answer.statusCode ?? 0;
  const error = `${RECEIVER} answered ${status}`;
  if (status >= 200 && status < 300) return { kind: "sent" };
  if (GONE.has(status)) return { kind: "refused", error, isGone: true };
  if (RETRIED.has(status) || status >= 500) {
    return { kind: "retry", error, ...optional({ afterMs: retryAfterIn(answer.headers, nowMs) }) };
  }
  if (status >= 300 && status < 400)
    return { kind: "refused", error: `${error}; redirects are not followed` };
  return { kind: "refused", error };
}

interface News {
  /** An address that the settings allow. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Buffer;
  /** Set if a browser has chosen the address. `configured`: the origin of the settings that allows it. */
  readonly push?: { readonly configured: string | undefined };
}

/** Sends one request to a program, and interprets the status of its answer. */
export async function postNews(
  { url, headers, body, push }: News,
  { clock }: Pick<World, "clock">,
): Promise<DeliveryOutcome> {
  const allowed = push === undefined ? { configured: url } : push;
  const purpose = push === undefined ? "webhook" : "push";
  const outgoing = outgoingOf({ purpose, ...allowed, url, headers, body });
  if (outgoing.kind === "failed") return { kind: "refused", error: outgoing.why };
  const { request, reached } = outgoing;
  return new Promise((resolve) => {
    let isAnswered = false;
    let outcome: DeliveryOutcome = { kind: "retry", error: lateWords(RECEIVER, TIMEOUT_MS) };
    const end = (): void => {
      deadline.cancel();
      request.destroy();
      resolve(outcome);
    };
    const deadline = clock.after(TIMEOUT_MS, end);
    request.on("response", (answer) => {
      isAnswered = true;
      outcome = outcomeOf(answer, clock.now());
      let bytes = 0;
      answer.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > BODY_BYTES_MAX) answer.destroy();
      });
      answer.once("close", end);
      answer.on("error", end);
    });
    request.on("error", (error) => {
      // If a status has arrived, it decides the outcome, even if the rest of the response was lost.
      if (!isAnswered) outcome = { kind: "retry", error: brokenWords(RECEIVER, reached(), error) };
      end();
    });
    request.end(body);
  });
}
