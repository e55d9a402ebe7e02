// Owns the call of a program outside: one signed POST for each event.
// WK1: what is sent again has the same id (`webhook-id`) and the same body: a receiver can tell.
// WK2: a receiver costs bounded time and memory, whatever it answers: one deadline for all of it, no
//      redirect, and of a body no more than is thrown away.
// WK3: neither the secret nor the address is in a log, an error or a row.

import { createHmac } from "node:crypto";
import type { IncomingMessage, RequestOptions } from "node:http";
import type { OutgoingHook } from "../core/settings.ts";
import type { Commit } from "../engine/unit.ts";
import { WEBHOOK } from "../flows/outgoing-hooks.ts";
import { forgetSentHooks } from "../store/hook-backlog.ts";
import { plainHttp, secureHttp } from "../world/http.ts";
import type { World } from "../world.ts";
import type { Channel, DeliveryOutcome, OutgoingMessage } from "./channel.ts";
import { sweep } from "./sweep.ts";

/** From the first attempt to connect to the last byte that is read. */
const TIMEOUT_MS = 10_000;
/** Of an answer's body, which is thrown away; a connection with more left is closed. */
const BODY_BYTES_MAX = 64 * 1024;
/** The longest pause that a receiver can ask for. */
const RETRY_AFTER_MAX_MS = 3_600_000;
/** Refusals that may pass. */
const RETRIED = new Set([408, 409, 423, 425, 429]);

/** News that arrived is kept so long, to be seen. */
const KEPT_MS = 7 * 24 * 3_600_000;
const FORGET_EVERY_MS = 3_600_000;

/** The bytes of a secret: those behind `whsec_`, else the text itself. */
function keyOf(secret: string): Buffer {
  const encoded = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(secret)?.[1];
  return encoded === undefined ? Buffer.from(secret, "utf8") : Buffer.from(encoded, "base64");
}

/** What stands behind `v1,` in `webhook-signature`. */
function sign(secret: string, id: string, seconds: number, body: string): string {
  return createHmac("sha256", keyOf(secret)).update(`${id}.${seconds}.${body}`).digest("base64");
}

/** How long a receiver asks to be left alone: seconds, or a date. */
function retryAfter(answer: IncomingMessage, nowMs: number): { afterMs?: number } {
  const text = answer.headers["retry-after"]?.trim() ?? "";
  const ms = /^\d{1,9}$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - nowMs;
  return ms > 0 ? { afterMs: Math.min(ms, RETRY_AFTER_MAX_MS) } : {};
}

function outcomeOf(answer: IncomingMessage, nowMs: number): DeliveryOutcome {
  const status = answer.statusCode ?? 0;
  const error = `the receiver answered ${status}`;
  if (status >= 200 && status < 300) return { kind: "sent" };
  if (RETRIED.has(status) || status >= 500) return { kind: "retry", error, ...retryAfter(answer, nowMs) };
  if (status >= 300 && status < 400)
    return { kind: "refused", error: `${error}; redirects are not followed` };
  return { kind: "refused", error };
}

/** Reads what little is read of an answer; it is over when it ends, breaks off or is too much. */
function drain(answer: IncomingMessage, done: () => void): void {
  let bytes = 0;
  answer.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > BODY_BYTES_MAX) answer.destroy();
  });
  answer.once("close", done);
  answer.on("error", done);
}

async function post(hook: OutgoingHook, message: OutgoingMessage, world: World): Promise<DeliveryOutcome> {
  const url = new URL(hook.url);
  const { request } = url.protocol === "https:" ? secureHttp() : plainHttp();
  const { clock } = world;
  const { deliveryId: id, text: body } = message;
  const seconds = Math.floor(clock.now() / 1_000);
  const options: RequestOptions = {
    method: "POST",
    // A connection of its own: none is kept that a receiver could hold on to.
    agent: false,
    headers: {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body),
      "user-agent": "parley",
      "webhook-id": id,
      "webhook-timestamp": String(seconds),
      "webhook-signature": `v1,${sign(hook.secret, id, seconds, body)}`,
    },
  };
  return new Promise((resolve) => {
    let isAnswered = false;
    let outcome: DeliveryOutcome = { kind: "retry", error: `no answer within ${TIMEOUT_MS / 1_000} s` };
    const end = (): void => {
      deadline.cancel();
      outgoing.destroy();
      resolve(outcome);
    };
    const deadline = clock.at(clock.now() + TIMEOUT_MS, end);
    const outgoing = request(url, options, (answer) => {
      isAnswered = true;
      outcome = outcomeOf(answer, clock.now());
      drain(answer, end);
    });
    outgoing.on("error", (error: NodeJS.ErrnoException) => {
      // An answer that was there counts, whatever broke off behind it.
      if (!isAnswered)
        outcome = { kind: "retry", error: `the receiver could not be reached (${error.code ?? "error"})` };
      end();
    });
    outgoing.end(body);
  });
}

/** The channel of the outbox that calls programs outside. An attempt may be repeated: its id tells. */
export function createWebhooks(hooks: readonly OutgoingHook[], world: World): Channel {
  const byName = new Map(hooks.map((hook) => [hook.name, hook]));
  return {
    id: WEBHOOK,
    deduplicates: true,
    async deliver(message) {
      const hook = byName.get(message.route.to);
      if (hook !== undefined) return post(hook, message, world);
      return { kind: "refused", error: `no outgoing hook ${JSON.stringify(message.route.to)} is configured` };
    },
  };
}

/** Removes news that arrived long ago, now and then, until the returned function is called. */
export function forgetSent(commit: Commit, world: World): () => Promise<void> {
  const failed = "old deliveries to web hooks were not removed";
  return sweep({ commit, world, everyMs: FORGET_EVERY_MS, failed }, (unit) =>
    forgetSentHooks(unit.tx, unit.now - KEPT_MS),
  );
}
