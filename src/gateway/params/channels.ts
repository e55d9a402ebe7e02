// Owns the params of the methods about channels: how they stand, who may write there, which places are bound.

import { ADMIN, idempotencyKey, type MethodSpec, NOTHING, name, object, READ } from "./shapes.ts";

const BY_CODE = object({ code: name, idempotencyKey }, ["code"]);

export const CHANNEL_METHODS = {
  "channels.status": { scope: READ, params: NOTHING, ignored: [] },
  "channels.test": {
    scope: ADMIN,
    params: object({ channel: name, accountId: name }, ["channel"]),
    ignored: [],
  },
  "channels.pair.list": { scope: ADMIN, params: NOTHING, ignored: [] },
  "channels.pair.approve": { scope: ADMIN, params: BY_CODE, ignored: [] },
  "channels.pair.reject": { scope: ADMIN, params: BY_CODE, ignored: [] },
  "channels.pair.remove": {
    scope: ADMIN,
    params: object({ channel: name, peerId: name, accountId: name, idempotencyKey }, ["channel", "peerId"]),
    ignored: [],
  },
  "bindings.list": { scope: READ, params: NOTHING, ignored: [] },
  "bindings.unbind": {
    scope: ADMIN,
    params: object({ sessionKey: name, idempotencyKey }, ["sessionKey"]),
    ignored: [],
  },
} as const satisfies Record<string, MethodSpec>;
