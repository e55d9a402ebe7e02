// Owns the methods about channels: their status, who may write, bound chats.

import { about, object } from "../schema.ts";
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

export const CHANNEL_METHODS = {
  "channels.status": {
    scope: READ,
    summary: "Returns the status of webchat, channel accounts, web hooks, MCP servers and ACP agents.",
    params: NOTHING,
  },
  "channels.test": {
    scope: ADMIN,
    summary: "Tests an account: asks the platform for its name.",
    params: object(
      { channel: about(name, "Like telegram.") },
      { accountId: about(name, "The account. Default: the first.") },
    ),
    errors: ["channel_unknown", "channel_failed"],
  },
  "channels.pair.list": {
    scope: ADMIN,
    summary: "Lists people's requests to write to agents. For tokens that cover every session.",
    params: NOTHING,
  },
  "channels.pair.approve": {
    scope: ADMIN,
    summary: "Approves a person. For tokens that cover every session.",
    params: BY_CODE,
    errors: ["pairing_not_found"],
  },
  "channels.pair.reject": {
    scope: ADMIN,
    summary: "Rejects a person, who is then blocked. For tokens that cover every session.",
    params: BY_CODE,
    errors: ["pairing_not_found"],
  },
  "channels.pair.remove": {
    scope: ADMIN,
    summary: "Deletes the decision about a person. For tokens that cover every session.",
    params: object(
      { channel: about(name, "Like telegram."), peerId: about(name, "The person's id at the platform.") },
      { accountId: about(name, "Which account. Default: default."), idempotencyKey },
    ),
    errors: ["pairing_not_found"],
  },
  "bindings.list": {
    scope: READ,
    summary: "Lists the chats of channels that are bound to their own session, at most 1000.",
    params: NOTHING,
  },
  "bindings.unbind": {
    scope: ADMIN,
    summary: "Ends the bindings of a session; the chat gets a notice.",
    params: object({ sessionKey }, { idempotencyKey }),
    errors: NAMES_SESSION,
    events: ["deliveries"],
  },
} as const satisfies Record<string, MethodSpec>;
