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

const BY_CODE = object({ code: about(name, "The code that the person got."), idempotencyKey }, ["code"]);

export const CHANNEL_METHODS = {
  "channels.status": {
    scope: READ,
    does: "Returns the status of webchat, channel accounts, web hooks, MCP servers and ACP agents.",
    params: NOTHING,
    ignored: [],
  },
  "channels.test": {
    scope: ADMIN,
    does: "Tests an account: asks the platform for its name.",
    params: object(
      {
        channel: about(name, "Like telegram."),
        accountId: about(name, "The account. Default: the first."),
      },
      ["channel"],
    ),
    ignored: [],
    fails: ["channel_unknown", "channel_failed"],
  },
  "channels.pair.list": {
    scope: ADMIN,
    does: "Lists people's requests to write to agents. For tokens that cover every session.",
    params: NOTHING,
    ignored: [],
  },
  "channels.pair.approve": {
    scope: ADMIN,
    does: "Approves a person. For tokens that cover every session.",
    params: BY_CODE,
    ignored: [],
    fails: ["pairing_not_found"],
  },
  "channels.pair.reject": {
    scope: ADMIN,
    does: "Rejects a person, who is then blocked. For tokens that cover every session.",
    params: BY_CODE,
    ignored: [],
    fails: ["pairing_not_found"],
  },
  "channels.pair.remove": {
    scope: ADMIN,
    does: "Deletes the decision about a person. For tokens that cover every session.",
    params: object(
      {
        channel: about(name, "Like telegram."),
        peerId: about(name, "The person's id at the platform."),
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
    does: "Lists the chats of channels that are bound to their own session, at most 1000.",
    params: NOTHING,
    ignored: [],
  },
  "bindings.unbind": {
    scope: ADMIN,
    does: "Ends the bindings of a session; the chat gets a notice.",
    params: object({ sessionKey, idempotencyKey }, ["sessionKey"]),
    ignored: [],
    fails: NAMES_SESSION,
    causes: ["deliveries"],
  },
} as const satisfies Record<string, MethodSpec>;
