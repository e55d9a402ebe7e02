// Owns the params of the methods about channels: their status, who may write, bound chats.

import {
  ADMIN,
  about,
  idempotencyKey,
  type MethodSpec,
  NAMES_SESSION,
  NOTHING,
  name,
  object,
  READ,
  sessionKey,
} from "./shapes.ts";

const BY_CODE = object({ code: about(name, "The code that the person was told."), idempotencyKey }, ["code"]);

export const CHANNEL_METHODS = {
  "channels.status": {
    scope: READ,
    does: "Says how webchat, accounts at channels, web hooks, MCP servers and ACP agents stand.",
    params: NOTHING,
    ignored: [],
  },
  "channels.test": {
    scope: ADMIN,
    does: "Asks a platform who we are there.",
    params: object(
      {
        channel: about(name, "Like telegram."),
        accountId: about(name, "Which account. Default: the first."),
      },
      ["channel"],
    ),
    ignored: [],
    fails: ["channel_unknown", "channel_failed"],
  },
  "channels.pair.list": {
    scope: ADMIN,
    does: "Lists who asked to write to agents, and what was decided. For tokens that cover every session.",
    params: NOTHING,
    ignored: [],
  },
  "channels.pair.approve": {
    scope: ADMIN,
    does: "Lets somebody in. For tokens that cover every session.",
    params: BY_CODE,
    ignored: [],
    fails: ["pairing_not_found"],
  },
  "channels.pair.reject": {
    scope: ADMIN,
    does: "Refuses somebody, who is then blocked. For tokens that cover every session.",
    params: BY_CODE,
    ignored: [],
    fails: ["pairing_not_found"],
  },
  "channels.pair.remove": {
    scope: ADMIN,
    does: "Forgets what was decided of somebody. For tokens that cover every session.",
    params: object(
      {
        channel: about(name, "Like telegram."),
        peerId: about(name, "The id that the platform gives the person."),
        accountId: about(name, "Which account. Default: default."),
        idempotencyKey,
      },
      ["channel", "peerId"],
    ),
    ignored: [],
    fails: ["pairing_not_found"],
  },
  "bindings.list": {
    scope: READ,
    does: "Lists the places of channels whose messages go to a session of their own, at most 1000.",
    params: NOTHING,
    ignored: [],
  },
  "bindings.unbind": {
    scope: ADMIN,
    does: "Ends the bindings of a session; the place is told.",
    params: object({ sessionKey, idempotencyKey }, ["sessionKey"]),
    ignored: [],
    fails: NAMES_SESSION,
    causes: ["deliveries"],
  },
} as const satisfies Record<string, MethodSpec>;
