// Defines the schema of outgoing and incoming web hooks in the configuration file.

import { z } from "zod";
import { HOOK_EVENTS, THINKING_LEVELS } from "../../core/shapes/settings/settings.ts";
import { DAY_SECONDS, httpAddress, limit, modelName, optionalText, text, texts } from "./fields.ts";

/** Maximum number of outgoing hooks. */
const HOOKS_MAX = 32;

const outgoing = z.strictObject({
  name: z
    .string()
    .regex(/^[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}$/, "must be 1 to 64 letters, digits, ., _ and -")
    .optional()
    .describe("Name in the outbox. Default: the host and a hash of the address."),
  url: httpAddress().describe("Address that gets a POST for each event. Redirects are not followed."),
  events: z.array(z.enum(HOOK_EVENTS)).min(1, "must name at least one event").describe("Events to send."),
  secret: z
    .string()
    .min(16, "must have at least 16 characters")
    .describe(
      "Key of the request signature (HMAC-SHA256). whsec_<base64> is decoded; other text is used as is.",
    ),
  sessions: texts.optional().describe("Session key patterns with `*`. Unset: every session."),
  enabled: z.boolean().default(true).describe("False: disabled."),
});

export type OutgoingInFile = z.output<typeof outgoing>;

/** Maximum number of mappings. */
const MAPPINGS_MAX = 64;
const TEMPLATE_MAX_CHARS = 16_000;
const HEADER = /^[a-z0-9][a-z0-9_-]{0,63}$/i;
const NAME = /^(?!agent$|wake$)[a-z0-9][a-z0-9_-]{0,63}$/;
const nameWords = "must be 1 to 64 of a-z, 0-9, _ and -, and not agent or wake";

const header = z.string().regex(HEADER, "must be the name of a header");

const mapping = z.strictObject({
  id: z.string().regex(NAME, nameWords).describe("Unique name, also shown to the agent."),
  match: z
    .strictObject({
      path: z
        .string()
        .regex(NAME, nameWords)
        .optional()
        .describe("Requests go to POST /hooks/<path>. Default: the id."),
      events: texts
        .default([])
        .describe("With preset github: events that start a run, like push or issues.opened. Default: all."),
    })
    .prefault({}),
  preset: z
    .enum(["token", "github", "hmac"])
    .default("token")
    .describe("Authentication of requests: hooks.token, GitHub's signature, or an HMAC in a header."),
  secret: z
    .string()
    .min(16, "must have at least 16 characters")
    .optional()
    .describe("For github and hmac: the key of the signature."),
  signatureHeader: header
    .optional()
    .describe("For hmac: header with the HMAC-SHA256 of the body in hex or base64. Default x-signature-256."),
  deliveryHeader: header
    .optional()
    .describe("For hmac: header with the id of a delivery. Default x-delivery-id."),
  message: text
    .max(TEMPLATE_MAX_CHARS)
    .optional()
    .describe(
      "Message for the agent; {{body.a.b}} inserts a field of the body. Preset github has a default.",
    ),
  name: text.max(200).optional().describe("Display name. Default: the id."),
  agentId: text.optional().describe("Agent that gets the message. Default: the default agent."),
  sessionKey: text
    .optional()
    .describe("One session for all requests. Default: a new one for each, hook:<uuid>."),
  deliver: z.boolean().default(false).describe("Whether replies are also delivered to a chat."),
  channel: text
    .optional()
    .describe(
      "Delivery channel: webchat, a channel, or last (the last chat of a session's people). Default webchat.",
    ),
  to: text
    .optional()
    .describe("Delivery target: a chat; with webchat or last a session. Default: the main session."),
  accountId: text.optional().describe("Account of the channel. Default: the first."),
  threadId: text.optional().describe("Thread or topic of the channel."),
  model: modelName.optional().describe("Default: the agent's."),
  thinking: z.enum(THINKING_LEVELS).optional().describe("Default: the agent's."),
  timeoutSeconds: limit(0, 7 * DAY_SECONDS)
    .optional()
    .describe("Time limit of a run; 0: none. Default 0."),
});

/** Default patterns for the session keys that a caller may name. */
export const HOOK_KEYS_DEFAULT = ["hook:*"];

export const hooks = z.strictObject({
  enabled: z.boolean().default(false).describe("Whether incoming web hooks are accepted."),
  token: optionalText.describe("Grants access to /hooks/agent and /hooks/wake only; at least 16 characters."),
  allowedSessionKeys: texts
    .default(HOOK_KEYS_DEFAULT)
    .describe("Keys that a caller of /hooks/agent may name, `*` as a wildcard."),
  mappings: z.array(mapping).max(MAPPINGS_MAX).default([]).describe("Senders with their own path."),
  outgoing: z.array(outgoing).max(HOOKS_MAX).default([]).describe("Programs that receive events."),
});

export type HooksInFile = z.output<typeof hooks>;
export type MappingInFile = z.output<typeof mapping>;
