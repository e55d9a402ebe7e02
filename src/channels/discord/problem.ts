// Owns what it means when Discord does not do what it was asked for, and the words for it.
// DP1: a problem says whether the thing may have been done all the same (I5).
// DP2: no word of it holds the token, an address with a token in it, or a stack.

import { safeLine } from "../../core/safe-text.ts";

/** What went wrong with one request. */
export type ProblemKind =
  /** Too much was asked for; nothing was done. */
  | "limit"
  /** The token is wrong; nothing was done. */
  | "token"
  /** It will never be done. */
  | "refused"
  /** Discord could not be asked, or could not take it; nothing was done. */
  | "away"
  /** It may have been done. */
  | "unknown";

export class DiscordProblem extends Error {
  readonly kind: ProblemKind;
  /** When it may be tried again. */
  readonly afterMs: number | undefined;
  /** Discord's own number for it. */
  readonly code: number | undefined;

  constructor(kind: ProblemKind, message: string, more: { afterMs?: number; code?: number } = {}) {
    super(message);
    this.kind = kind;
    this.afterMs = more.afterMs;
    this.code = more.code;
  }
}

/** No such channel: it was deleted, or the id is a person's. */
export const UNKNOWN_CHANNEL = 10003;

/** How many characters of Discord's own words are passed on. */
const WORDS_MAX = 200;
const PAUSE_MAX_MS = 3_600_000;

const NO_DIRECT =
  "this person takes no direct messages from the bot: they share no server with it, have closed them, or " +
  "have blocked it";

/** The refusals that people meet. */
const WORDS: Readonly<Record<number, string>> = {
  [UNKNOWN_CHANNEL]: "there is no such channel or person, or the bot was removed from the server",
  10004: "there is no such server, or the bot was removed from it",
  10013: "there is no such person",
  50001: "the bot can't see this channel: give its role the permission View Channel there",
  50007: NO_DIRECT,
  50008: "in this kind of channel no text can be sent",
  50013:
    "the bot lacks a permission there: Send Messages, in a thread Send Messages in Threads, for a new thread " +
    "Create Public Threads",
  50083: "this thread is archived, and the bot may not open it again",
  50278: NO_DIRECT,
  160005: "this thread is locked",
  160006: "this server has as many active threads as it may have",
};

export const TOKEN_WORDS =
  "Discord refuses the bot's token: copy it anew from the developer portal, under Bot, and set " +
  "channels.discord.token";

/** The outcome of an answer that is no success. `code`, `message`: of its body. */
export function refusal(status: number, code: number | undefined, message: string): DiscordProblem {
  const said = safeLine(message.slice(0, WORDS_MAX)).slice(0, WORDS_MAX);
  const numbers = code === undefined || code === 0 ? `${status}` : `${status}, code ${code}`;
  const more = code === undefined ? {} : { code };
  if (status === 401) return new DiscordProblem("token", TOKEN_WORDS, more);
  // Direct messages to many strangers in a row are held up with this code; it passes.
  if (code === 40003) return limited(60_000);
  // The first two mean that nobody was there to take the request; the rest may have been done in part.
  if (status === 502 || status === 503) {
    return new DiscordProblem("away", `Discord can't take it at the moment (${status})`, more);
  }
  if (status >= 500) return new DiscordProblem("unknown", `Discord failed with ${status}`, more);
  // A path that Discord does not know: whoever answers is not Discord, or not its interface.
  if (status === 404 && (code ?? 0) === 0) {
    return new DiscordProblem("refused", "what answers at restUrl is not Discord's interface (404)", more);
  }
  const known = code === undefined ? undefined : WORDS[code];
  return new DiscordProblem("refused", `${known ?? `Discord refused it: ${said}`} (${numbers})`, more);
}

/** Too much was asked for. */
export function limited(afterMs: number): DiscordProblem {
  const pauseMs = Math.min(PAUSE_MAX_MS, Math.max(1_000, Math.ceil(afterMs)));
  const text = `Discord asks to wait for ${Math.ceil(pauseMs / 1_000)} s`;
  return new DiscordProblem("limit", text, { afterMs: pauseMs });
}

/** Before anything was sent: the name has no address, nobody listens, the certificate is wrong. */
const NOT_SENT =
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|UND_ERR_CONNECT_TIMEOUT|CERT_.*|ERR_TLS_.*|ERR_SSL_.*|DEPTH_.*|SELF_SIGNED_.*|UNABLE_TO_.*)$/;

/** A request that got no answer. */
export function unanswered(error: unknown): DiscordProblem {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
  const code = String((cause as NodeJS.ErrnoException | undefined)?.code ?? "no answer");
  const words = safeLine(code.slice(0, 60));
  if (NOT_SENT.test(code)) return new DiscordProblem("away", `Discord can't be reached (${words})`);
  return new DiscordProblem("unknown", `the connection to Discord broke off (${words})`);
}
