// Owns the params of the methods about nodes, and of those that only nodes call.

import {
  ADMIN,
  anyObject,
  count,
  flag,
  idempotencyKey,
  type MethodSpec,
  NAME_MAX_CHARS,
  NODE,
  NOTHING,
  name,
  object,
} from "./shapes.ts";

/** Characters of a JSON text from a node: what is too large is answered in words, not by the schema. */
const JSON_TEXT_MAX_CHARS = 4 * 1024 * 1024;

const jsonText = { type: "string", maxLength: JSON_TEXT_MAX_CHARS } as const;
/** A request to be paired: by its code, or its id. */
const WHICH = { code: name, requestId: name } as const;

export const NODE_METHODS = {
  "node.pair.list": { scope: ADMIN, params: NOTHING, ignored: [] },
  "node.pair.approve": {
    scope: ADMIN,
    params: object({ ...WHICH, name, agentId: name, idempotencyKey }, []),
    ignored: [],
  },
  "node.pair.reject": { scope: ADMIN, params: object({ ...WHICH, idempotencyKey }, []), ignored: [] },
  "node.pair.remove": {
    scope: ADMIN,
    params: object({ nodeId: name, idempotencyKey }, ["nodeId"]),
    ignored: [],
  },
  "node.rename": {
    scope: ADMIN,
    params: object({ nodeId: name, displayName: name, idempotencyKey }, ["nodeId", "displayName"]),
    ignored: [],
  },
  "node.list": { scope: ADMIN, params: NOTHING, ignored: [] },
  "node.describe": { scope: ADMIN, params: object({ nodeId: name }, ["nodeId"]), ignored: [] },
  "node.invoke": {
    scope: ADMIN,
    params: object({ nodeId: name, command: name, params: {}, timeoutMs: count(1), idempotencyKey }, [
      "nodeId",
      "command",
      "idempotencyKey",
    ]),
    ignored: [],
  },
  "node.invoke.result": {
    scope: NODE,
    params: object(
      {
        id: name,
        nodeId: name,
        ok: flag,
        payload: {},
        payloadJSON: { ...jsonText, type: ["string", "null"] },
        error: { ...anyObject, type: ["object", "null"] },
      },
      ["id", "ok"],
    ),
    ignored: [],
  },
  "node.event": {
    scope: NODE,
    params: object(
      {
        event: { type: "string", minLength: 1, maxLength: NAME_MAX_CHARS },
        payload: {},
        payloadJSON: { ...jsonText, type: ["string", "null"] },
        idempotencyKey,
      },
      ["event"],
    ),
    ignored: [],
  },
} as const satisfies Record<string, MethodSpec>;
