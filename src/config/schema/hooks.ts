// Defines the schema of outgoing and incoming web hooks in the configuration file.

import { HOOK_EVENTS, THINKING_LEVELS } from "../../core/shapes/settings/settings.ts";
import {
  address,
  choice,
  DAY_SECONDS,
  flag,
  integer,
  list,
  modelName,
  object,
  optionalText,
  secret,
  section,
  text,
  texts,
} from "./setting.ts";

/** Default patterns for the session keys that a caller may name. */
export const HOOK_KEYS_DEFAULT = ["hook:*"];

const outgoing = object({
  name: text("Name in the outbox. Default: the host and a hash of the address.", {
    pattern: [/^[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}$/, "must be 1 to 64 letters, digits, ., _ and -"],
  }),
  url: address("Address that gets a POST for each event. Redirects are not followed.", {
    shown: "origin",
    required: true,
  }),
  events: list(choice(HOOK_EVENTS), "Events to send.", {
    minItems: 1,
    few: "must name at least one event",
    required: true,
  }),
  secret: secret(
    "Key of the request signature (HMAC-SHA256). whsec_<base64> is decoded; other text is used as is.",
    { minLength: 16, required: true },
  ),
  sessions: texts("Session key patterns with `*`. Unset: every session."),
  enabled: flag("False: disabled.", { default: true }),
});

const NAME = [
  /^(?!agent$|wake$)[a-z0-9][a-z0-9_-]{0,63}$/,
  "must be 1 to 64 of a-z, 0-9, _ and -, and not agent or wake",
] as const;
const HEADER = [/^[a-z0-9][a-z0-9_-]{0,63}$/i, "must be the name of a header"] as const;

const mapping = object({
  id: text("Unique name, also shown to the agent.", { pattern: NAME, required: true }),
  match: section({
    path: text("Requests go to POST /hooks/<path>. Default: the id.", { pattern: NAME }),
    events: texts("With preset github: events that start a run, like push or issues.opened. Default: all.", {
      default: [],
    }),
  }),
  preset: choice(
    ["token", "github", "hmac"],
    "Authentication of requests: hooks.token, GitHub's signature, or an HMAC in a header.",
    { default: "token" },
  ),
  secret: secret("For github and hmac: the key of the signature.", { minLength: 16 }),
  signatureHeader: text(
    "For hmac: header with the HMAC-SHA256 of the body in hex or base64. Default x-signature-256.",
    { pattern: HEADER },
  ),
  deliveryHeader: text("For hmac: header with the id of a delivery. Default x-delivery-id.", {
    pattern: HEADER,
  }),
  message: text(
    "Message for the agent; {{body.a.b}} inserts a field of the body. Preset github has a default.",
    { maxLength: 16_000 },
  ),
  name: text("Display name. Default: the id.", { maxLength: 200 }),
  agentId: text("Agent that gets the message. Default: the default agent."),
  sessionKey: text("One session for all requests. Default: a new one for each, hook:<uuid>."),
  deliver: flag("Whether replies are also delivered to a chat.", { default: false }),
  channel: text(
    "Delivery channel: webchat, a channel, or last (the last chat of a session's people). Default webchat.",
  ),
  to: text("Delivery target: a chat; with webchat or last a session. Default: the main session."),
  accountId: text("Account of the channel. Default: the first."),
  threadId: text("Thread or topic of the channel."),
  model: modelName("Default: the agent's."),
  thinking: choice(THINKING_LEVELS, "Default: the agent's."),
  timeoutSeconds: integer("Time limit of a run; 0: none. Default 0.", [0, 7 * DAY_SECONDS]),
});

export const hooks = object({
  enabled: flag("Whether incoming web hooks are accepted.", { default: false }),
  token: optionalText("Grants access to /hooks/agent and /hooks/wake only; at least 16 characters."),
  allowedSessionKeys: texts("Keys that a caller of /hooks/agent may name, `*` as a wildcard.", {
    default: HOOK_KEYS_DEFAULT,
  }),
  mappings: list(mapping, "Senders with their own path.", { maxItems: 64, default: [] }),
  outgoing: list(outgoing, "Programs that receive events.", { maxItems: 32, default: [] }),
});
