// Defines the methods for nodes, including the methods that only nodes call.

import type { EventSpec } from "../../contract/events.ts";
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
  READ,
} from "../../contract/methods/parts.ts";
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
} from "../../contract/schema.ts";

/**
 * Maximum length of a JSON text from a node. The handler refuses texts above its own, lower limit with a
 * better error.
 */
const JSON_TEXT_MAX_CHARS = 4 * 1024 * 1024;

const jsonText = text(undefined, { maxLength: JSON_TEXT_MAX_CHARS });
/** Identifies a pairing request by its code or its id. */
const WHICH = {
  code: about(name, "The code that the device shows. Give either `code` or `requestId`."),
  requestId: about(name, "Id of the pairing request."),
} as const;
const nodeId = about(name, "Id of the node.");
/** Error code of all these methods while nodes are disabled. */
const NODES_OFF = "node_unavailable";

const PAIR_REQUEST = named(
  "PairRequestRow",
  "A device that requests pairing.",
  object({
    requestId: text(),
    code: text("Code that the device shows, so that a person can compare it."),
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
  commands: list(text(), "Commands that the node offers."),
  paired: oneOf(true),
  connected: flag(),
  sessionKey: text("Key of the node's own session. The session might not exist yet."),
  pairedAtMs: number(),
} as const;
const ifKnown = { agentId: text(), connectedAtMs: number(), lastSeenAtMs: number() } as const;

const PAIRED_NODE = named("NodeListRow", "A paired node.", object(always, ifKnown));
export type NodeListRow = Of<typeof PAIRED_NODE>;

export const NODE_METHODS = {
  "node.pair.list": {
    scope: READ,
    summary: "Lists pairing requests and paired devices.",
    params: NOTHING,
    result: object({ ts: number(), pending: list(PAIR_REQUEST, "Oldest first."), paired: list(PAIRED_NODE) }),
    errors: [NODES_OFF],
  },
  "node.pair.approve": {
    scope: ADMIN,
    part: "operator.pairing",
    outlivesToken: true,
    summary: "Pairs a device.",
    params: object(
      {},
      {
        ...WHICH,
        name: about(name, "Name of the node. Default: the device's own name."),
        agentId: about(name, "Agent of the node's session. Default: the default agent."),
        idempotencyKey,
      },
    ),
    result: object({ ok: oneOf(true), requestId: text(), node: PAIRED_NODE }),
    errors: ["pairing_not_found", "agent_not_found", NODES_OFF],
    events: ["node.pair.resolved"],
  },
  "node.pair.reject": {
    scope: ADMIN,
    part: "operator.pairing",
    summary: "Rejects a pairing request. The device may request pairing again.",
    params: object({}, { ...WHICH, idempotencyKey }),
    result: object({ ok: oneOf(true), requestId: text(), nodeId: text() }),
    errors: ["pairing_not_found", NODES_OFF],
    events: ["node.pair.resolved"],
  },
  "node.pair.remove": {
    scope: ADMIN,
    part: "operator.pairing",
    summary: "Unpairs a device and closes its connection.",
    params: object({ nodeId }, { idempotencyKey }),
    result: object({ ok: oneOf(true), nodeId: text(), removed: oneOf(true) }),
    errors: ["node_not_found", NODES_OFF],
    events: ["node.pair.resolved"],
  },
  "node.rename": {
    scope: ADMIN,
    part: "operator.pairing",
    summary: "Renames a paired device.",
    params: object(
      { nodeId, displayName: about(name, "New name, at most 64 characters.") },
      { idempotencyKey },
    ),
    result: object({ ok: oneOf(true), nodeId: text(), displayName: text() }),
    errors: ["node_not_found", NODES_OFF],
  },
  "node.list": {
    scope: READ,
    summary: "Lists the paired devices. Devices whose sessions the token does not cover are left out.",
    params: NOTHING,
    result: object({ ts: number(), nodes: list(PAIRED_NODE) }),
    errors: [NODES_OFF],
  },
  "node.describe": {
    scope: READ,
    summary: "Returns one paired device and its allowed commands.",
    params: object({ nodeId }),
    result: object(
      {
        ts: number(),
        ...always,
        allowedCommands: list(text(), "The part of `commands` that the configuration allows."),
      },
      ifKnown,
    ),
    errors: ["node_not_found", NODES_OFF],
  },
  "node.invoke": {
    scope: ADMIN,
    takesLong: true,
    summary: "Sends a command to a node and waits for its answer.",
    params: object(
      {
        nodeId,
        command: about(name, "Name of the command, like exec, notify or device.info."),
        idempotencyKey,
      },
      {
        params: about(anything, "Params of the command. At most 256 KiB."),
        timeoutMs: about(count(1), "Maximum wait in ms. Default 30000, at most 600000."),
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
    summary: "Returns the result of a command to the gateway.",
    params: object(
      { id: about(name, "Id from the request."), ok: flag("Whether the command succeeded.") },
      {
        nodeId: about(name, "Ignored: the connection identifies the node."),
        payload: about(anything, "Result of the command, at most 1 MiB."),
        payloadJSON: about(nullable(jsonText), "`payload` as a JSON text."),
        error: about(nullable(anyObject), "Failure of the command: `{code?, message?}`."),
      },
    ),
    result: object(
      { ok: oneOf(true) },
      { ignored: about(oneOf(true), "Present if the gateway no longer waits for this command.") },
    ),
    errors: [NODES_OFF],
  },
  "node.event": {
    scope: NODE,
    summary: "Reports an event of a node. `agent.request` and `voice.transcript` start a run.",
    params: object(
      { event: text("Name of the event.", { minLength: 1, maxLength: NAME_MAX_CHARS }) },
      {
        payload: about(anything, "Payload of the event, as one object."),
        payloadJSON: about(nullable(jsonText), "`payload` as a JSON text."),
        idempotencyKey,
      },
    ),
    result: object(
      { ok: oneOf(true), handled: flag("False if the gateway does not handle this event.") },
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

export const NODE_EVENTS = {
  "node.pair.requested": {
    summary: "A device requests pairing. Sent to operator.admin.",
    payload: object(
      { nodeId: text(), displayName: text(), platform: text(), ts: number() },
      { requestId: text(), code: text() },
    ),
  },
  "node.pair.resolved": {
    summary: "A pairing request was decided, or a device was unpaired. Sent to operator.admin.",
    payload: object(
      {
        nodeId: text(),
        displayName: text(),
        decision: oneOf("approved", "rejected", "removed"),
        ts: number(),
      },
      { requestId: text() },
    ),
  },
  "node.invoke.request": {
    summary: "A command for a node. Sent to that node.",
    payload: object(
      { id: text(), nodeId: text(), command: text(), timeoutMs: number(), idempotencyKey: text() },
      { paramsJSON: text() },
    ),
  },
  "node.invoke.cancel": {
    summary: "The caller no longer needs the result of a command. Sent to its node.",
    payload: object({ id: text(), nodeId: text() }),
  },
} as const satisfies Record<string, EventSpec>;
