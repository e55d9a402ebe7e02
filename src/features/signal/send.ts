// Sends text to Signal: formats styles and recipients, and interprets the daemon's answer (I5). Signal does
// not deduplicate, so a text is retried only if it was certainly not sent.
// SS2: links are written out as URLs. If a text would be too long with them, the original Markdown is sent.

import type { DeliveryOutcome, OutgoingFile } from "../../channels/channel.ts";
import { type Mark, readMarkdown, spelledOut } from "../../channels/markdown.ts";
import { type Fields, fieldsOf, listOf } from "../../core/json.ts";
import { head } from "../../core/text/cut.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import type { Answer } from "./daemon.ts";
import { TEXT_MAX_CHARS } from "./signal.ts";

/** Maximum pause before a retry. Signal requests a day if it wants somebody to solve a captcha. */
const PAUSE_MAX_MS = 24 * 3_600_000;
const WORDS_MAX_CHARS = 200;
const RESULTS_MAX = 2_000;

const STYLES: Readonly<Partial<Record<Mark["kind"], string>>> = {
  bold: "BOLD",
  italic: "ITALIC",
  strike: "STRIKETHROUGH",
  code: "MONOSPACE",
  pre: "MONOSPACE",
};

/**
 * Converts Markdown to a text and its styles, in the format of `send`: `start:length:STYLE`, in UTF-16 units.
 */
export function styled(markdown: string): {
  readonly message: string;
  readonly textStyle: readonly string[];
} {
  const { text, marks } = spelledOut(readMarkdown(markdown));
  if (text.length > TEXT_MAX_CHARS && markdown.length <= TEXT_MAX_CHARS)
    return { message: markdown.toWellFormed(), textStyle: [] };
  const textStyle = marks.flatMap(({ kind, from, to }) => {
    const style = STYLES[kind];
    return style === undefined ? [] : [`${from}:${to - from}:${style}`];
  });
  return { message: text, textStyle };
}

const NUMBER = /^\+[1-9]\d{4,16}$/;
const ACCOUNT = /^(?:PNI:)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** Matches a group id: 16 or 32 bytes in base64. */
const GROUP = /^[A-Za-z0-9+/_-]{22,43}={0,2}$/;

/** Returns the recipient in the format of `send`: a person's number or account id, or the id of a group. */
export function recipientOf(to: string): Fields | undefined {
  if (NUMBER.test(to) || ACCOUNT.test(to)) return { recipient: [to] };
  return GROUP.test(to) ? { groupId: to } : undefined;
}

/** Returns a file in the format of `send`, so that the daemon needs no access to the disk of the gateway. */
export function dataUriOf({ name, mimeType, data }: OutgoingFile): string {
  return `data:${mimeType};filename=${encodeURIComponent(name)};base64,${data.toString("base64")}`;
}

const refuseText = (error: string): DeliveryOutcome => ({ kind: "refused", error });
const unknown = (error: string): DeliveryOutcome => ({ kind: "unknown", error });

function makeRetry(seconds: number, wantsCaptcha: boolean): DeliveryOutcome {
  const error = wantsCaptcha
    ? "Signal wants a captcha before more is sent: see docs/SIGNAL.md, or wait"
    : "Signal rejects further messages for now";
  return {
    kind: "retry",
    error,
    ...(seconds > 0 ? { afterMs: Math.min(seconds * 1_000, PAUSE_MAX_MS) } : {}),
  };
}

/**
 * Returns the outcome that follows from the results for the recipients. Returns undefined if there are no
 * results.
 */
function ofResults(value: unknown): DeliveryOutcome | undefined {
  // A result that cannot be read makes the outcome unknown, because the text may have been sent.
  const results = listOf(fieldsOf(value).results).slice(0, RESULTS_MAX).map(fieldsOf);
  if (results.length === 0) return undefined;
  const types = results.map(({ type }) => String(type));
  // A message to a group counts as sent if one member got it, as in Signal itself: other members may be
  // unreachable.
  if (types.includes("SUCCESS")) return { kind: "sent" };
  const wantsCaptcha = results.some(({ token }) => typeof token === "string" && token !== "");
  if (wantsCaptcha || types.includes("RATE_LIMIT_FAILURE")) {
    const pauses = results.map(({ retryAfterSeconds: asked }) => (typeof asked === "number" ? asked : 0));
    return makeRetry(Math.max(...pauses), wantsCaptcha);
  }
  if (types.includes("NETWORK_FAILURE"))
    return unknown("signal-cli lost its connection to Signal while sending");
  if (types.includes("IDENTITY_FAILURE"))
    return refuseText("the recipient's safety number has changed: trust it with signal-cli first");
  if (types.includes("UNREGISTERED_FAILURE"))
    return refuseText("the recipient is not registered with Signal");
  return unknown(`signal-cli could not send it (${head(safeLine(types[0] ?? ""), 40)})`);
}

/** Matches the Java exceptions with which the daemon reports that it had no network, so nothing was sent. */
const NOTHING_LEFT = /\((?:UnknownHost|Connect|NoRouteToHost|HttpConnectTimeout)Exception\)/;

const CODES = { user: -1, network: -3, identity: -4, limit: -5, noMethod: -32601, noAccount: -32602 };

function ofError({ code, message, data }: Extract<Answer, { kind: "error" }>): DeliveryOutcome {
  const results = ofResults(data.response);
  if (results !== undefined) return results;
  const words = head(safeLine(message), WORDS_MAX_CHARS) || `error ${code}`;
  switch (code) {
    case CODES.user:
      return refuseText(`signal-cli: ${words}`);
    case CODES.identity:
      return refuseText(`the recipient's safety number has changed: ${words}`);
    case CODES.limit:
      return makeRetry(0, /captcha|challenge/i.test(message));
    case CODES.network:
      if (NOTHING_LEFT.test(message)) return { kind: "retry", error: "signal-cli has no network" };
      return unknown(`signal-cli: ${words}`);
    case CODES.noMethod:
    case CODES.noAccount:
      return { kind: "retry", error: `signal-cli can't send for this account: ${words}` };
    default:
      return unknown(`signal-cli: ${words}`);
  }
}

/** Returns the outcome for an answer of `send`. */
export function outcomeOf(answer: Answer): DeliveryOutcome {
  if (answer.kind === "result") return ofResults(answer.value) ?? { kind: "sent" };
  if (answer.kind === "error") return ofError(answer);
  return { kind: answer.reached ? "unknown" : "retry", error: answer.why };
}
