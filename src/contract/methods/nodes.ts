// Owns the methods about nodes, and of those that only nodes call.

import {
  about,
  anyObject,
  anything,
  flag,
  list,
  named,
  nullable,
  number,
  type Of,
  object,
  oneOf,
  text,
} from "../schema.ts";
import {
  ADMIN,
  ASKS_RUN,
  count,
  idempotencyKey,
  type MethodSpec,
  NAME_MAX_CHARS,
  NODE,
  NOTHING,
  name,
  OF_RUNS,
} from "./parts.ts";

/**
 * Characters of a JSON text from a node; the handler refuses larger ones with a better error than the
 * schema's.
 */
const JSON_TEXT_MAX_CHARS = 4 * 1024 * 1024;

const jsonText = text(undefined, { maxLength: JSON_TEXT_MAX_CHARS });
/** A pairing request, by its code or its id. */
const WHICH = {
  code: about(name, "The code that the device shows. Give either code or requestId."),
  requestId: about(name, "The id of the request."),
} as const;
const nodeId = about(name, "Id of the node.");
/** If nodes are disabled, every method fails with this code. */
const NODES_OFF = "node_unavailable";

const PAIR_REQUEST = named(
  "PairRequestRow",
  "A device that requests pairing.",
  object({
    requestId: text(),
    code: text("The code on the device's screen, for people to compare."),
    nodeId: text(),
    displayName: text(),
    platform: text(),
    version: text(),
    caps: list(text()),
    commands: list(text()),
    remoteIp: text(),
    createdAtMs: number(),
    expiresAtMs: number(),
  }),
);
export type PairRequestRow = Of<typeof PAIR_REQUEST>;

const always = {
  nodeId: text(),
  displayName: text(),
  platform: text(),
  version: text(),
  caps: list(text()),
  commands: list(text(), "The commands that it offers."),
  paired: oneOf(true),
  connected: flag(),
  sessionKey: text("Key of its own session, which need not exist."),
  pairedAtMs: number(),
} as const;
const ifKnown = { agentId: text(), connectedAtMs: number(), lastSeenAtMs: number() } as const;

const PAIRED_NODE = named("NodeListRow", "A paired node.", object(always, ifKnown));
export type NodeListRow = Of<typeof PAIRED_NODE>;

export const NODE_METHODS = {
  "node.pair.list": {
    scope: ADMIN,
    summary: "Lists the devices that request pairing, and the paired ones.",
    params: NOTHING,
    result: object({ ts: number(), pending: list(PAIR_REQUEST, "Oldest first."), paired: list(PAIRED_NODE) }),
    errors: [NODES_OFF],
  },
  "node.pair.approve": {
    scope: ADMIN,
    summary: "Pairs a device.",
    params: object(
      {},
      {
        ...WHICH,
        name: about(name, "Its name here. Default: the device's own name."),
        agentId: about(name, "The agent that its session belongs to. Default: the default agent."),
        idempotencyKey,
      },
    ),
    result: object({ ok: oneOf(true), requestId: text(), node: PAIRED_NODE }),
    errors: ["pairing_not_found", "agent_not_found", NODES_OFF],
    events: ["node.pair.resolved"],
  },
  "node.pair.reject": {
    scope: ADMIN,
    summary: "Rejects a device; it may request pairing again.",
    params: object({}, { ...WHICH, idempotencyKey }),
    result: object({ ok: oneOf(true), requestId: text(), nodeId: text() }),
    errors: ["pairing_not_found", NODES_OFF],
    events: ["node.pair.resolved"],
  },
  "node.pair.remove": {
    scope: ADMIN,
    summary: "Unpairs a device and closes its connection.",
    params: object({ nodeId }, { idempotencyKey }),
    result: object({ ok: oneOf(true), nodeId: text(), removed: oneOf(true) }),
    errors: ["node_not_found", NODES_OFF],
    events: ["node.pair.resolved"],
  },
  "node.rename": {
    scope: ADMIN,
    summary: "Renames a paired device.",
    params: object(
      { nodeId, displayName: about(name, "The name, of at most 64 characters.") },
      { idempotencyKey },
    ),
    result: object({ ok: oneOf(true), nodeId: text(), displayName: text() }),
    errors: ["node_not_found", NODES_OFF],
  },
  "node.list": {
    scope: ADMIN,
    summary: "Lists the paired devices whose sessions the token covers.",
    params: NOTHING,
    result: object({ ts: number(), nodes: list(PAIRED_NODE) }),
    errors: [NODES_OFF],
  },
  "node.describe": {
    scope: ADMIN,
    summary: "Returns one paired device, with the commands that it may be sent.",
    params: object({ nodeId }),
    result: object(
      {
        ts: number(),
        ...always,
        allowedCommands: list(text(), "Those of `commands` that the configuration permits."),
      },
      ifKnown,
    ),
    errors: ["node_not_found", NODES_OFF],
  },
  "node.invoke": {
    scope: ADMIN,
    summary: "Sends a command to a node and waits for its answer.",
    params: object(
      { nodeId, command: about(name, "Like exec, notify or device.info."), idempotencyKey },
      {
        params: about(anything, "The command's params. At most 256 KiB."),
        timeoutMs: about(count(1), "How long to wait. Default 30000, at most 600000."),
      },
    ),
    result: object({
      ok: oneOf(true),
      nodeId: text(),
      command: text(),
      payload: anything,
      payloadJSON: text(),
    }),
    errors: [
      "node_not_found",
      "node_command_denied",
      NODES_OFF,
      "node_timeout",
      "node_failed",
      "outcome_unknown",
      "too_large",
      "run_aborted",
    ],
    events: ["node.invoke.request", "node.invoke.cancel"],
  },
  "node.invoke.result": {
    scope: NODE,
    summary: "Answers a command.",
    params: object(
      { id: about(name, "The id of the request."), ok: flag("Whether the command succeeded.") },
      {
        nodeId: about(name, "Ignored: the connection identifies the node."),
        payload: about(anything, "The answer, at most 1 MiB."),
        payloadJSON: about(nullable(jsonText), "The same as JSON text."),
        error: about(nullable(anyObject), "The failure: `{code?, message?}`."),
      },
    ),
    result: object(
      { ok: oneOf(true) },
      { ignored: about(oneOf(true), "The command was no longer pending.") },
    ),
    errors: [NODES_OFF],
  },
  "node.event": {
    scope: NODE,
    summary: "Reports an event; `agent.request` and `voice.transcript` start a run.",
    params: object(
      { event: text("The event's name.", { minLength: 1, maxLength: NAME_MAX_CHARS }) },
      {
        payload: about(anything, "The event's payload: one object."),
        payloadJSON: about(nullable(jsonText), "The same as JSON text."),
        idempotencyKey,
      },
    ),
    result: object(
      { ok: oneOf(true), handled: flag("False: the event starts no run here.") },
      { runId: text(), sessionKey: text() },
    ),
    errors: [
      "not_paired",
      "not_visible",
      "session_not_found",
      "invalid_session_key",
      "too_large",
      ...ASKS_RUN,
      "invalid_thinking",
      NODES_OFF,
    ],
    events: OF_RUNS,
  },
} as const satisfies Record<string, MethodSpec>;
