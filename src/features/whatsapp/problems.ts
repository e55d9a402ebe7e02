// Classifies errors of the Graph API: their effect on the text and on the account. The error code decides, as
// the platform recommends. The platform's own text is only shown to people, with tokens redacted.

import type { DeliveryOutcome } from "../../channels/channel.ts";
import type { Exchanged } from "../../channels/exchange.ts";
import { type Fields, fieldsOf, jsonOf } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { head } from "../../core/text/cut.ts";
import { Redactor } from "../../core/text/redact/redact.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import { textOf } from "./fields.ts";

const DETAILS_CHARS_MAX = 200;

export interface GraphProblem {
  /**
   * `text`: this text will never be accepted. `limit`, `passing`: the text was not accepted, but a retry may
   * succeed. `account`: no text is accepted until somebody fixes the account. `unclear`: the text may have
   * been accepted.
   */
  readonly kind: "text" | "limit" | "passing" | "account" | "unclear";
  readonly words: string;
  readonly afterMs?: number;
}

type Meaning = readonly [GraphProblem["kind"], string];

const MEANINGS: ReadonlyMap<number, Meaning> = new Map<number, Meaning>([
  [
    131047,
    [
      "text",
      "the person has to write first: WhatsApp accepts texts for 24 hours after the person's last message",
    ],
  ],
  [
    131026,
    [
      "text",
      "WhatsApp can't deliver to this number: it has no WhatsApp app, or the app can't receive the message",
    ],
  ],
  [131030, ["text", "this number is not in the list of allowed recipients of an app in development"]],
  [131021, ["text", "sender and recipient are the same number"]],
  [131049, ["text", "WhatsApp decided not to deliver this text to this person now"]],
  [131050, ["text", "this person has stopped messages of this kind"]],
  [130472, ["text", "this number takes part in a WhatsApp experiment and gets no messages of this kind"]],
  [130497, ["text", "this business is not allowed to write to people in that country"]],
  [4, ["limit", "the app has made too many calls"]],
  [80007, ["limit", "the business account has reached its rate limit"]],
  [130429, ["limit", "the number exceeds WhatsApp's throughput limit"]],
  [131048, ["limit", "the number is restricted because people have blocked or reported it"]],
  [131056, ["limit", "too many messages to this person within a short time"]],
  [2, ["passing", "WhatsApp is not available at the moment"]],
  [131000, ["passing", "WhatsApp failed without a reason"]],
  [131016, ["passing", "WhatsApp is not available at the moment"]],
  [131057, ["passing", "the business account is under maintenance"]],
  [133004, ["passing", "WhatsApp is not available at the moment"]],
  [0, ["account", "the access token is not accepted: make a new one"]],
  [3, ["account", "the app lacks a permission: whatsapp_business_messaging"]],
  [10, ["account", "the access token lacks a permission: whatsapp_business_messaging"]],
  [33, ["account", "phoneNumberId is not the id of a number, or the number was deleted"]],
  [190, ["account", "the access token is not accepted, or has expired: make a new one"]],
  [368, ["account", "the business account is blocked for a time because of a violated policy"]],
  [131005, ["account", "the access token lacks a permission for this number"]],
  [131031, ["account", "the business account is locked"]],
  [131037, ["account", "the number's display name has to be approved first"]],
  [131042, ["account", "the business account has a payment problem"]],
  [131045, ["account", "the number has to be registered first"]],
  [133010, ["account", "the number has to be registered first"]],
]);

/** Returns the platform's own text, redacted. */
function details(error: Fields, token: string): string {
  const said = textOf(fieldsOf(error.error_data).details) || textOf(error.message) || textOf(error.title);
  // Redact more than the known token, because the platform quotes a malformed token in its error.
  const masked = new Redactor([token]).mask(said).replace(/\bEAA[\w-]{8,}/g, "[redacted]");
  return head(safeLine(masked), DETAILS_CHARS_MAX);
}

function meaningOf(code: number, subcode: unknown): Meaning | undefined {
  if (code >= 200 && code < 300) return ["account", "the access token lacks a permission for this number"];
  // Graph error: "Object with ID … does not exist, or cannot be loaded due to missing permissions."
  if (code === 100 && subcode === 33) {
    return ["account", "phoneNumberId is not the id of a number that this access token may use"];
  }
  return MEANINGS.get(code);
}

/**
 * Returns the problem for an error of the Graph API or of a webhook. Returns undefined if the value is not an
 * error.
 */
export function saidProblem(error: unknown, token: string): GraphProblem | undefined {
  const fields = fieldsOf(error);
  const { code, error_subcode } = fields;
  if (typeof code !== "number" || !Number.isSafeInteger(code)) return undefined;
  const said = details(fields, token);
  const more = said === "" ? "" : `: ${said}`;
  const meaning = meaningOf(code, error_subcode);
  if (meaning !== undefined) return { kind: meaning[0], words: `${meaning[1]} (${code}${more})` };
  const kind = fields.is_transient === true ? "passing" : "text";
  return { kind, words: `WhatsApp refused the request (${code}${more})` };
}

/** Returns the problem for a status whose body has no error, for example an answer from a proxy. */
function problemOfStatus(status: number): GraphProblem {
  const words = `the platform answered ${status}`;
  if (status === 429) return { kind: "limit", words };
  if (status === 401) return { kind: "account", words: `${words}: the access token is not accepted` };
  if (status === 408 || status === 425 || status === 503) return { kind: "passing", words };
  if (status >= 500) return { kind: "unclear", words };
  if (status >= 300 && status < 400) {
    return { kind: "text", words: `${words}; redirects are not followed, see graphUrl` };
  }
  return { kind: "text", words };
}

/** Returns the problem of an answer, or undefined if the request succeeded. */
export function problemOf(answer: Exchanged, token: string): GraphProblem | undefined {
  if (answer.kind === "failed") return { kind: answer.reached ? "unclear" : "passing", words: answer.why };
  const { status } = answer;
  if (status >= 200 && status < 300) {
    return answer.kind === "answered" ? undefined : { kind: "unclear", words: answer.why };
  }
  if (answer.kind === "too_long") return problemOfStatus(status);
  const error = fieldsOf(jsonOf(answer.body)).error;
  const said = saidProblem(error, token);
  const after = optional({ afterMs: answer.retryAfterMs });
  if (said === undefined) return { ...problemOfStatus(status), ...after };
  // If the error code is unknown, the status says more than the error.
  const isKnown = meaningOf(Number(fieldsOf(error).code), fieldsOf(error).error_subcode) !== undefined;
  if (isKnown || said.kind !== "text" || status === 400 || status === 404) return { ...said, ...after };
  return { kind: problemOfStatus(status).kind, words: said.words, ...after };
}

/** Converts a problem to the outcome of a delivery (I5). */
export function outcomeOf({ kind, words: error, afterMs }: GraphProblem): DeliveryOutcome {
  if (kind === "text") return { kind: "refused", error };
  if (kind === "unclear") return { kind: "unknown", error };
  return { kind: "retry", error, ...optional({ afterMs }) };
}
