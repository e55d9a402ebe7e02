// Owns the methods about channels: their status, who may write, bound chats.

import type { Route } from "../../core/shapes/route.ts";
import { about, declared, flag, list, named, number, type Of, object, oneOf, text } from "../schema.ts";
import {
  ADMIN,
  idempotencyKey,
  type MethodSpec,
  NAMES_SESSION,
  NOTHING,
  name,
  READ,
  sessionKey,
} from "./parts.ts";

const BY_CODE = object({ code: about(name, "The code that the person got.") }, { idempotencyKey });

const CHANNEL = named(
  "ChannelRow",
  "An outgoing path and its status. The outbox's figures: only for tokens that cover every session.",
  object(
    {
      id: text("`webchat`, `<channel>:<account>`, `webhook:<name>`, `mcp:<server>`, `acp:<agent>`."),
      kind: about(
        oneOf("webchat", "channel", "webhook", "mcp", "acp", "other"),
        "`other`: pending or failed deliveries of paths that are no longer configured.",
      ),
      configured: flag(),
      ok: flag(),
      state: about(
        oneOf("ready", "idle", "starting", "retrying", "failing", "down", "configured", "standby"),
        "`idle`: not used yet. `configured`: the token may see no more than this. " +
          "`standby`: another process listens at the account.",
      ),
    },
    {
      connectedSince: number(),
      backoffUntil: number("Earliest time of the next attempt."),
      lastError: text(),
      lastErrorAt: number(),
      lastSentAt: number(),
      pending: number(),
      failed: number("Failed and not dismissed."),
      tools: number("Number of tools of an MCP server that is ready."),
      programs: number("Programs of an ACP agent that are running."),
    },
  ),
);
export type ChannelRow = Of<typeof CHANNEL>;

const PEER = named(
  "PeerRow",
  "A person who requested to write to an agent, and the decision.",
  object(
    {
      channel: text(),
      accountId: text(),
      peerId: text(),
      state: oneOf("pending", "approved", "blocked"),
      askedAt: number(),
    },
    { name: text(), code: text("The pairing code, while pending."), decidedAt: number() },
  ),
);
export type PeerRow = Of<typeof PEER>;

const BINDING = named(
  "BindingRow",
  "A chat of a channel that is bound to its own session.",
  object({
    route: declared<Route>("Route"),
    sessionKey: text(),
    kind: about(
      oneOf("created", "bound"),
      "`created`: a thread that was made for it. `bound`: an existing chat.",
    ),
    createdAt: number(),
    usedAt: number(),
    idleMs: number("Expires this long after the last message; 0: never."),
    maxAgeMs: number("Expires at this age; 0: never."),
  }),
);

const DECIDED = object({ ok: oneOf(true), peer: PEER });

export const CHANNEL_METHODS = {
  "channels.status": {
    scope: READ,
    summary: "Returns the status of webchat, channel accounts, web hooks, MCP servers and ACP agents.",
    params: NOTHING,
    result: object({ channels: list(CHANNEL) }),
  },
  "channels.test": {
    scope: ADMIN,
    summary: "Tests an account: asks the platform for its name.",
    params: object(
      { channel: about(name, "Like telegram.") },
      { accountId: about(name, "The account. Default: the first.") },
    ),
    result: object({ ok: oneOf(true), account: text(), name: text("The account's name at its platform.") }),
    errors: ["channel_unknown", "channel_failed"],
  },
  "channels.pair.list": {
    scope: ADMIN,
    summary: "Lists people's requests to write to agents. Requires a token that covers every session.",
    params: NOTHING,
    result: object({ peers: list(PEER, "Newest first.") }),
  },
  "channels.pair.approve": {
    scope: ADMIN,
    summary: "Approves a person. Requires a token that covers every session.",
    params: BY_CODE,
    result: DECIDED,
    errors: ["pairing_not_found"],
  },
  "channels.pair.reject": {
    scope: ADMIN,
    summary: "Rejects a person, who is then blocked. Requires a token that covers every session.",
    params: BY_CODE,
    result: DECIDED,
    errors: ["pairing_not_found"],
  },
  "channels.pair.remove": {
    scope: ADMIN,
    summary: "Deletes the decision about a person. Requires a token that covers every session.",
    params: object(
      { channel: about(name, "Like telegram."), peerId: about(name, "The person's id at the platform.") },
      { accountId: about(name, "Account of the channel. Default: default."), idempotencyKey },
    ),
    result: DECIDED,
    errors: ["pairing_not_found"],
  },
  "bindings.list": {
    scope: READ,
    summary: "Lists the chats of channels that are bound to their own session, at most 1000.",
    params: NOTHING,
    result: object({ bindings: list(BINDING) }),
  },
  "bindings.unbind": {
    scope: ADMIN,
    summary: "Ends the bindings of a session; the chat gets a notice.",
    params: object({ sessionKey }, { idempotencyKey }),
    result: object({ ok: oneOf(true), sessionKey: text(), ended: number() }),
    errors: NAMES_SESSION,
    events: ["deliveries"],
  },
} as const satisfies Record<string, MethodSpec>;
