// Owns the params of the methods about nodes, and of those that only nodes call.

import {
  ADMIN,
  ASKS_RUN,
  about,
  anyObject,
  count,
  flag,
  idempotencyKey,
  type MethodSpec,
  NAME_MAX_CHARS,
  NODE,
  NOTHING,
  name,
  OF_RUNS,
  object,
} from "./shapes.ts";

/**
 * Characters of a JSON text from a node; the handler refuses larger ones with a better error than the
 * schema's.
 */
const JSON_TEXT_MAX_CHARS = 4 * 1024 * 1024;

const jsonText = { type: "string", maxLength: JSON_TEXT_MAX_CHARS } as const;
/** A pairing request, by its code or its id. */
const WHICH = {
  code: about(name, "The code that the device shows. Give either code or requestId."),
  requestId: about(name, "The id of the request."),
} as const;
const nodeId = about(name, "Which node.");
/** If nodes are disabled, every method fails with this code. */
const NODES_OFF = "node_unavailable";

export const NODE_METHODS = {
  "node.pair.list": {
    scope: ADMIN,
    does: "Lists the devices that request pairing, and the paired ones.",
    params: NOTHING,
    ignored: [],
    fails: [NODES_OFF],
  },
  "node.pair.approve": {
    scope: ADMIN,
    does: "Pairs a device.",
    params: object(
      {
        ...WHICH,
        name: about(name, "Its name here. Default: the device's own name."),
        agentId: about(name, "The agent that its session belongs to. Default: the default agent."),
        idempotencyKey,
      },
      [],
    ),
    ignored: [],
    fails: ["pairing_not_found", "agent_not_found", NODES_OFF],
    causes: ["node.pair.resolved"],
  },
  "node.pair.reject": {
    scope: ADMIN,
    does: "Rejects a device; it may request pairing again.",
    params: object({ ...WHICH, idempotencyKey }, []),
    ignored: [],
    fails: ["pairing_not_found", NODES_OFF],
    causes: ["node.pair.resolved"],
  },
  "node.pair.remove": {
    scope: ADMIN,
    does: "Unpairs a device and closes its connection.",
    params: object({ nodeId, idempotencyKey }, ["nodeId"]),
    ignored: [],
    fails: ["node_not_found", NODES_OFF],
    causes: ["node.pair.resolved"],
  },
  "node.rename": {
    scope: ADMIN,
    does: "Renames a paired device.",
    params: object(
      { nodeId, displayName: about(name, "The name, of at most 64 characters."), idempotencyKey },
      ["nodeId", "displayName"],
    ),
    ignored: [],
    fails: ["node_not_found", NODES_OFF],
  },
  "node.list": {
    scope: ADMIN,
    does: "Lists the paired devices whose sessions the token covers.",
    params: NOTHING,
    ignored: [],
    fails: [NODES_OFF],
  },
  "node.describe": {
    scope: ADMIN,
    does: "Returns one paired device, with the commands that it may be sent.",
    params: object({ nodeId }, ["nodeId"]),
    ignored: [],
    fails: ["node_not_found", NODES_OFF],
  },
  "node.invoke": {
    scope: ADMIN,
    does: "Sends a command to a node and waits for its answer.",
    params: object(
      {
        nodeId,
        command: about(name, "Like exec, notify or device.info."),
        params: about({}, "The command's params. At most 256 KiB."),
        timeoutMs: about(count(1), "How long to wait. Default 30000, at most 600000."),
        idempotencyKey,
      },
      ["nodeId", "command", "idempotencyKey"],
    ),
    ignored: [],
    fails: [
      ...(["node_not_found", "node_command_denied", NODES_OFF, "node_timeout", "node_failed"] as const),
      ...(["outcome_unknown", "too_large", "run_aborted"] as const),
    ],
    causes: ["node.invoke.request", "node.invoke.cancel"],
  },
  "node.invoke.result": {
    scope: NODE,
    does: "Answers a command.",
    params: object(
      {
        id: about(name, "The id of the request."),
        nodeId: about(name, "Ignored: the connection identifies the node."),
        ok: about(flag, "Whether the command succeeded."),
        payload: about({}, "The answer, at most 1 MiB."),
        payloadJSON: about({ ...jsonText, type: ["string", "null"] }, "The same as JSON text."),
        error: about({ ...anyObject, type: ["object", "null"] }, "Why not: `{code?, message?}`."),
      },
      ["id", "ok"],
    ),
    ignored: [],
    fails: [NODES_OFF],
  },
  "node.event": {
    scope: NODE,
    does: "Reports an event; `agent.request` and `voice.transcript` start a run.",
    params: object(
      {
        event: about({ type: "string", minLength: 1, maxLength: NAME_MAX_CHARS }, "The event's name."),
        payload: about({}, "The event's payload: one object."),
        payloadJSON: about({ ...jsonText, type: ["string", "null"] }, "The same as JSON text."),
        idempotencyKey,
      },
      ["event"],
    ),
    ignored: [],
    fails: [
      ...(["not_paired", "not_visible", "session_not_found", "invalid_session_key", "too_large"] as const),
      ...ASKS_RUN,
      ...(["invalid_thinking", NODES_OFF] as const),
    ],
    causes: OF_RUNS,
  },
} as const satisfies Record<string, MethodSpec>;
