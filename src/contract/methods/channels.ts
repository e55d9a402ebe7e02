// Defines the methods for channels: their status, the people who may write, and bound chats.

import type { Route } from "../../core/shapes/route.ts";
import {
  about,
  declared,
  flag,
  list,
  mapOf,
  named,
  number,
  type Of,
  object,
  oneOf,
  text,
} from "../schema.ts";
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

const BY_CODE = object({ code: about(name, "Pairing code that the person got.") }, { idempotencyKey });

const CHANNEL = named(
  "ChannelRow",
  "A connection to the outside and its status. Counts of deliveries need a token for every session.",
  object(
    {
      id: text("`webchat`, `<channel>:<account>`, `webhook:<name>`, `mcp:<server>`, `acp:<agent>`."),
      kind: about(
        oneOf("webchat", "channel", "webhook", "mcp", "acp", "other"),
        "`other`: was removed from the configuration, but has pending or failed deliveries.",
      ),
      configured: flag(),
      ok: flag(),
      state: about(
        oneOf("ready", "idle", "starting", "retrying", "failing", "down", "configured", "standby"),
        "`idle`: not used yet. `configured`: the real state is hidden, because the token must not see " +
          "details. `standby`: another process receives the account's messages.",
      ),
    },
    {
      connectedSince: number(),
      backoffUntil: number("Time before which no new attempt is made."),
      lastError: text(),
      lastErrorAt: number(),
      lastSentAt: number(),
      pending: number(),
      failed: number("Number of deliveries that failed and were not dismissed."),
      tools: number("Number of tools, for an MCP server that is ready."),
      programs: number("Number of running programs, for an ACP agent."),
    },
  ),
);
export type ChannelRow = Of<typeof CHANNEL>;

const PEER = named(
  "PeerRow",
  "A person who asked to write to an agent, and the decision about this.",
  object(
    {
      channel: text(),
      accountId: text(),
      peerId: text(),
      agentId: text("Agent that answers the person."),
      state: oneOf("pending", "approved", "blocked"),
      askedAt: number(),
    },
    { name: text(), code: text("Pairing code, while the decision is pending."), decidedAt: number() },
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
      "`created`: a new thread was created for the session. `bound`: an existing chat was bound.",
    ),
    createdAt: number(),
    usedAt: number(),
    idleMs: number("The binding expires this many ms after the last message. 0: never."),
    maxAgeMs: number("The binding expires at this age in ms. 0: never."),
  }),
);

const DECIDED = object({ ok: oneOf(true), peer: PEER });

export const CHANNEL_METHODS = {
  "channels.status": {
    scope: READ,
    summary: "Returns the status of webchat, channel accounts, webhooks, MCP servers and ACP agents.",
    params: NOTHING,
    result: object({ channels: list(CHANNEL) }),
    ignored: ["probe", "timeoutMs", "channel"],
  },
  "channels.test": {
    scope: ADMIN,
    takesLong: true,
    summary: "Tests an account by asking the platform for the account's name.",
    params: object(
      { channel: about(name, "Name of the channel, like telegram.") },
      {
        accountId: about(name, "Account of the channel. Default: the first one."),
        values: about(
          mapOf(text()),
          "Values of the channel's default account for the keys that a new account needs, like " +
            '`{"botToken": "…"}`: tests the account with them, and writes nothing. Needs a token for every ' +
            "session.",
        ),
      },
    ),
    result: object({ ok: oneOf(true), account: text(), name: text("Name of the account at its platform.") }),
    errors: ["channel_unknown", "channel_failed", "invalid_config"],
  },
  "channels.pair.list": {
    scope: ADMIN,
    everySession: true,
    summary: "Lists people's requests to write to agents.",
    params: NOTHING,
    result: object({ peers: list(PEER, "Newest first.") }),
  },
  "channels.pair.approve": {
    scope: ADMIN,
    everySession: true,
    outlivesToken: true,
    summary: "Lets a person write to agents.",
    params: BY_CODE,
    result: DECIDED,
    errors: ["pairing_not_found"],
  },
  "channels.pair.reject": {
    scope: ADMIN,
    everySession: true,
    summary: "Rejects and blocks a person.",
    params: BY_CODE,
    result: DECIDED,
    errors: ["pairing_not_found"],
  },
  "channels.pair.remove": {
    scope: ADMIN,
    everySession: true,
    summary: "Deletes the decision about a person.",
    params: object(
      {
        channel: about(name, "Name of the channel, like telegram."),
        peerId: about(name, "Id of the person at the platform."),
      },
      { accountId: about(name, "Account of the channel. Default: `default`."), idempotencyKey },
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
    summary: "Removes the bindings of a session. Each chat gets a notice.",
    params: object({ sessionKey }, { idempotencyKey }),
    result: object({ ok: oneOf(true), sessionKey: text(), ended: number() }),
    errors: NAMES_SESSION,
    events: ["deliveries"],
  },
} as const satisfies Record<string, MethodSpec>;
