// Classifies failed requests to Discord, and formats their messages.
// A problem says whether the request may have taken effect (I5). No message contains the token, a URL with a
// token, or a stack.

import { Patience } from "../../channels/pump.ts";
import { optional } from "../../core/optional.ts";
import { head } from "../../core/text/cut.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import type { World } from "../../world.ts";

/** Kind of failure of one request. */
export type ProblemKind =
  /** A rate limit was exceeded. The request was not executed. */
  | "limit"
  /** The token is wrong. The request was not executed. */
  | "token"
  /** Discord refused the request. A retry cannot help. */
  | "refused"
  /** Discord was unreachable or unavailable. The request was not executed. */
  | "away"
  /** The request may have been executed. */
  | "unknown";

export class DiscordProblem extends Error {
  readonly kind: ProblemKind;
  /** The pause that Discord requests before a retry. */
  readonly afterMs: number | undefined;
  /** Discord's error code. */
  readonly code: number | undefined;

  constructor(kind: ProblemKind, message: string, more: { afterMs?: number; code?: number } = {}) {
    super(message);
    this.kind = kind;
    this.afterMs = more.afterMs;
    this.code = more.code;
  }
}

/** Discord's error code for an unknown channel: the channel was deleted, or the id is that of a person. */
export const UNKNOWN_CHANNEL = 10003;

/** Maximum number of characters of Discord's error text that are shown. */
const WORDS_MAX = 200;
const PAUSE_MAX_MS = 3_600_000;

const NO_DIRECT =
  "the bot can't send direct messages to this person: they share no server with it, accept no direct " +
  "messages, or have blocked it";

/** Messages for common refusals. */
const WORDS: Readonly<Record<number, string>> = {
  [UNKNOWN_CHANNEL]: "there is no such channel or person, or the bot was removed from the server",
  10004: "there is no such server, or the bot was removed from it",
  10013: "there is no such person",
  50001: "the bot can't see this channel: give its role the permission View Channel there",
  50007: NO_DIRECT,
  50008: "text can't be sent to this kind of channel",
  50013:
    "the bot lacks a permission there: Send Messages, in a thread Send Messages in Threads, for a new " +
    "thread Create Public Threads",
  50083: "this thread is archived, and the bot is not allowed to reopen it",
  50278: NO_DIRECT,
  160005: "this thread is locked",
  160006: "this server has reached its limit of active threads",
};

export const TOKEN_WORDS =
  "Discord refuses the bot's token: copy it again from the developer portal, under Bot, and set " +
  "channels.discord.token";

/** Returns the problem for an error response. `code` and `message` come from its body. */
export function refusal(status: number, code: number | undefined, message: string): DiscordProblem {
  const said = head(safeLine(head(message, WORDS_MAX)), WORDS_MAX);
  const numbers = code === undefined || code === 0 ? `${status}` : `${status}, code ${code}`;
  const more = optional({ code });
  if (status === 401) return new DiscordProblem("token", TOKEN_WORDS, more);
  // Discord returns this code if a bot writes direct messages to many strangers. The refusal is temporary.
  if (code === 40003) return limited(60_000);
  // With one of these two statuses, Discord did not execute the request. With other errors of the server, it
  // may have executed it.
  if (status === 502 || status === 503) {
    return new DiscordProblem("away", `Discord is not available at the moment (${status})`, more);
  }
  if (status >= 500)
    return new DiscordProblem("unknown", `Discord answered with the error status ${status}`, more);
  // This path exists in Discord's API, so the answer came from another server.
  if (status === 404 && (code ?? 0) === 0) {
    return new DiscordProblem("refused", "the server at restUrl is not Discord's API (404)", more);
  }
  const known = code === undefined ? undefined : WORDS[code];
  return new DiscordProblem("refused", `${known ?? `Discord refused it: ${said}`} (${numbers})`, more);
}

/** Returns the problem for a rate limit. */
export function limited(afterMs: number): DiscordProblem {
  const pauseMs = Math.min(PAUSE_MAX_MS, Math.max(1_000, Math.ceil(afterMs)));
  const text = `Discord asks to wait for ${Math.ceil(pauseMs / 1_000)} s`;
  return new DiscordProblem("limit", text, { afterMs: pauseMs });
}

/** Error codes of requests that were never sent: unknown host, connection refused, invalid certificate. */
const NOT_SENT = new RegExp(
  "^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|UND_ERR_CONNECT_TIMEOUT" +
    "|CERT_.*|ERR_TLS_.*|ERR_SSL_.*|DEPTH_.*|SELF_SIGNED_.*|UNABLE_TO_.*)$",
);

/** Returns the problem for a request that got no response. */
export function unanswered(error: unknown): DiscordProblem {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
  const code = String((cause as NodeJS.ErrnoException | undefined)?.code ?? "no answer");
  const words = safeLine(head(code, 60));
  if (NOT_SENT.test(code)) return new DiscordProblem("away", `Discord can't be reached (${words})`);
  return new DiscordProblem("unknown", `the connection to Discord broke off (${words})`);
}

/** If Discord requests a longer pause, no further attempt is made. */
const PATIENCE_PAUSE_MAX_MS = 60_000;

/** Repeats a read-only request until Discord answers or refuses it, or the attempts are used up. */
export async function patiently<T>({ clock }: World, signal: AbortSignal, ask: () => Promise<T>): Promise<T> {
  const patience = new Patience(clock, signal);
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      const isPassing = error instanceof DiscordProblem && !["token", "refused"].includes(error.kind);
      if (!isPassing || (error.afterMs ?? 0) > PATIENCE_PAUSE_MAX_MS) throw error;
      await patience.pauseAfter(error, error.afterMs);
    }
  }
}
