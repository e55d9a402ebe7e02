// Defines the settings of incoming and outgoing web hooks.

import { createHash } from "node:crypto";
import type { Static } from "typebox";
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
} from "../../config/schema/setting.ts";
import { THINKING_LEVELS } from "../../core/shapes/settings/settings.ts";

/** Events that can be sent to web hooks. */
export const HOOK_EVENTS = [
  "run.ended",
  "session.created",
  "session.reset",
  "session.archived",
  "session.deleted",
  "announcement.delivered",
  "delivery.failed",
] as const;

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

export const HOOK_SETTINGS = section({
  enabled: flag("Whether incoming web hooks are accepted.", { default: false }),
  token: optionalText("Grants access to /hooks/agent and /hooks/wake only; at least 16 characters."),
  allowedSessionKeys: texts("Keys that a caller of /hooks/agent may name, `*` as a wildcard.", {
    default: ["hook:*"],
  }),
  mappings: list(mapping, "Senders with their own path.", { maxItems: 64, default: [] }),
  outgoing: list(outgoing, "Programs that receive events.", { maxItems: 32, default: [] }),
});

export type HookSettings = Static<typeof HOOK_SETTINGS>;
/** A sender with its own path. */
export type HookMapping = HookSettings["mappings"][number];
/** A program that receives events. The URL may itself be a secret. */
export type OutgoingHook = HookSettings["outgoing"][number];

export const pathOf = ({ id, match }: HookMapping): string => match.path ?? id;

const GITHUB_MESSAGE = [
  "GitHub tells of {{event}} {{body.action}} in {{body.repository.full_name}}, by {{body.sender.login}}.",
  "{{body.issue.title}}{{body.pull_request.title}}{{body.head_commit.message}}{{body.release.name}}",
  "{{body.issue.html_url}}{{body.pull_request.html_url}}{{body.comment.html_url}}{{body.compare}}",
  "{{body.comment.body}}",
].join("\n");

export const messageOf = ({ message, preset }: HookMapping): string =>
  message ?? (preset === "github" ? GITHUB_MESSAGE : "");

/**
 * Returns a hook's name. The default name is the host and a hash of the address: the address cannot be
 * derived from it.
 */
export function nameOf({ name, url }: OutgoingHook): string {
  if (name !== undefined) return name;
  const { host } = new URL(url);
  return `${host}-${createHash("sha256").update(url).digest("hex").slice(0, 8)}`;
}
