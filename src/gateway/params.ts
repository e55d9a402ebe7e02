// Owns the list of methods: which scope each needs and which params it takes, as JSON Schema. Compiled on
// first use (`validate.ts`).
// PA1: a method that isn't here doesn't exist; a param that is neither here nor in `ignored` is an error.
// PA2: `ignored` are params of the OpenClaw method of that name that mean nothing here: taken, never read.

import type { XStatic } from "typebox/schema";
import { SESSION_KINDS } from "../core/session.ts";
import { accessParams } from "./params/access.ts";
import { CHAIN_PARAMS } from "./params/chains.ts";
import { CHANNEL_METHODS } from "./params/channels.ts";
import { CRON_METHODS } from "./params/cron.ts";
import { DEMO_METHODS } from "./params/demo.ts";
import { NODE_METHODS } from "./params/nodes.ts";
import { OPERATIONS } from "./params/operations.ts";
import {
  ADMIN,
  anyObject,
  count,
  flag,
  idempotencyKey,
  MESSAGE_MAX_CHARS,
  type MethodSpec,
  message,
  NAME_MAX_CHARS,
  NOTHING,
  name,
  nameOrNull,
  object,
  READ,
  threadId,
  WRITE,
} from "./params/shapes.ts";

const ATTACHMENTS_MAX = 16;
const HISTORY_LIMIT_MAX = 1000;
const PREVIEW_KEYS_MAX = 64;
const LIST_KEYS_MAX = 200;

const attachments = { type: "array", items: anyObject, maxItems: ATTACHMENTS_MAX } as const;
const ONE_DELIVERY = object({ id: name, idempotencyKey }, ["id"]);

const PATCH = object(
  {
    key: name,
    label: nameOrNull,
    thinkingLevel: nameOrNull,
    verboseLevel: nameOrNull,
    model: nameOrNull,
    sendPolicy: { enum: ["allow", "deny", null] },
    archived: flag,
    idempotencyKey,
  },
  ["key"],
);

const SEND = object(
  {
    to: name,
    message,
    channel: name,
    accountId: name,
    threadId,
    sessionKey: name,
    idempotencyKey,
  },
  ["to", "message", "idempotencyKey"],
);

const CHAT_SEND = object(
  {
    sessionKey: name,
    message: { type: "string", maxLength: MESSAGE_MAX_CHARS },
    thinking: name,
    deliver: flag,
    attachments,
    timeoutMs: count(0),
    idempotencyKey,
  },
  ["sessionKey", "message", "idempotencyKey"],
);

const AGENT = object(
  {
    message,
    sessionKey: name,
    agentId: name,
    sessionId: name,
    to: name,
    channel: name,
    accountId: name,
    threadId,
    deliver: flag,
    thinking: name,
    timeout: count(0),
    lane: name,
    extraSystemPrompt: { type: "string", maxLength: MESSAGE_MAX_CHARS },
    label: name,
    spawnedBy: name,
    attachments,
    idempotencyKey,
  },
  ["message", "idempotencyKey"],
);

const LIST = object(
  {
    limit: count(1),
    activeMinutes: count(1),
    includeGlobal: flag,
    includeUnknown: flag,
    includeDerivedTitles: flag,
    includeLastMessage: flag,
    includeArchived: flag,
    label: name,
    spawnedBy: name,
    roots: flag,
    keys: { type: "array", items: name, maxItems: LIST_KEYS_MAX },
    includeChildren: flag,
    agentId: name,
    search: { type: "string", maxLength: NAME_MAX_CHARS },
    kinds: { type: "array", items: { enum: SESSION_KINDS }, maxItems: SESSION_KINDS.length },
    cursor: name,
  },
  [],
);

const words = { type: "array", items: { type: "string" } } as const;
const said = { type: "string" } as const;

function open<const P extends object, const R extends readonly (keyof P & string)[]>(
  properties: P,
  required: R,
) {
  return { type: "object", properties, required } as const;
}

/** The params of `connect`, with room for what newer clients add. */
export const CONNECT = open(
  {
    minProtocol: { type: "integer" },
    maxProtocol: { type: "integer" },
    client: open(
      { id: name, version: said, platform: said, mode: said, displayName: said, instanceId: said },
      ["id", "version", "platform", "mode"],
    ),
    role: said,
    scopes: words,
    caps: words,
    commands: words,
    auth: open({ token: said, deviceToken: said, password: said }, []),
    device: open({ id: name, publicKey: said, signature: said, signedAt: { type: "number" }, nonce: said }, [
      "id",
      "publicKey",
      "signature",
      "signedAt",
    ]),
  },
  ["minProtocol", "maxProtocol", "client"],
);

export const METHODS = {
  health: { scope: READ, params: NOTHING, ignored: ["probe"] },
  status: { scope: READ, params: NOTHING, ignored: [] },
  "agents.list": { scope: READ, params: NOTHING, ignored: [] },
  "models.list": { scope: READ, params: NOTHING, ignored: ["view"] },
  "sessions.list": { scope: READ, params: LIST, ignored: [] },
  "sessions.resolve": {
    scope: READ,
    params: object({ key: name, sessionId: name, label: name, agentId: name, spawnedBy: name }, []),
    ignored: ["includeGlobal", "includeUnknown"],
  },
  "sessions.create": {
    scope: WRITE,
    params: object({ agentId: name, label: name, client: { enum: ["acp"] }, idempotencyKey }, [
      "idempotencyKey",
    ]),
    ignored: ["key", "model", "envelope", "parentSessionKey", "task", "message"],
  },
  "sessions.preview": {
    scope: READ,
    params: object(
      {
        keys: { type: "array", items: name, minItems: 1, maxItems: PREVIEW_KEYS_MAX },
        limit: count(1),
        maxChars: { type: "integer", minimum: 20 },
      },
      ["keys"],
    ),
    ignored: [],
  },
  "sessions.patch": {
    scope: WRITE,
    params: PATCH,
    ignored: [
      ...["fastMode", "traceLevel", "reasoningLevel", "responseUsage", "elevatedLevel", "execHost"],
      ...["execSecurity", "execAsk", "execNode", "spawnedBy", "spawnedWorkspaceDir", "spawnDepth"],
      ...["subagentRole", "subagentControlScope", "envelope", "groupActivation"],
    ],
  },
  "sessions.reset": {
    scope: ADMIN,
    params: object({ key: name, idempotencyKey }, ["key"]),
    ignored: ["reason"],
  },
  "sessions.delete": {
    scope: ADMIN,
    params: object({ key: name, deleteTranscript: flag, idempotencyKey }, ["key"]),
    ignored: ["emitLifecycleHooks"],
  },
  "chat.history": {
    scope: READ,
    params: object(
      {
        sessionKey: name,
        limit: { type: "integer", minimum: 1, maximum: HISTORY_LIMIT_MAX },
        before: name,
        after: name,
        around: name,
        includeRuns: flag,
      },
      ["sessionKey"],
    ),
    ignored: ["maxChars"],
  },
  "chat.send": {
    scope: WRITE,
    params: CHAT_SEND,
    ignored: [
      ...["sessionId", "fastMode", "originatingChannel", "originatingTo", "originatingAccountId"],
      ...["originatingThreadId", "systemInputProvenance", "systemProvenanceReceipt"],
    ],
  },
  "chat.abort": {
    scope: WRITE,
    params: object({ sessionKey: name, runId: name, idempotencyKey }, ["sessionKey"]),
    ignored: [],
  },
  "chat.inject": {
    scope: WRITE,
    params: object({ sessionKey: name, message, label: name, idempotencyKey }, ["sessionKey", "message"]),
    ignored: ["command", "interactive", "channelData"],
  },
  agent: {
    scope: WRITE,
    params: AGENT,
    ignored: [
      ...["replyTo", "replyChannel", "replyAccountId", "groupId", "groupChannel", "groupSpace"],
      ...["inputProvenance", "voiceWakeTrigger", "bestEffortDeliver"],
    ],
  },
  "agent.wait": {
    scope: READ,
    params: object({ runId: name, timeoutMs: count(0) }, ["runId"]),
    ignored: [],
  },
  send: {
    scope: WRITE,
    params: SEND,
    ignored: ["mediaUrl", "mediaUrls", "gifPlayback", "agentId"],
  },
  "tools.catalog": {
    scope: READ,
    params: object({ sessionKey: name }, []),
    ignored: ["agentId", "includePlugins"],
  },
  "tools.invoke": {
    scope: ADMIN,
    params: object({ name, arguments: anyObject, args: anyObject, sessionKey: name, idempotencyKey }, [
      "name",
    ]),
    ignored: ["agentId", "confirm"],
  },
  "deliveries.list": {
    scope: ADMIN,
    params: object(
      {
        state: { enum: ["pending", "sent", "failed", "skipped"] },
        sessionKey: name,
        includeDismissed: flag,
        maxChars: count(1),
        limit: count(1),
        cursor: name,
      },
      [],
    ),
    ignored: [],
  },
  "deliveries.retry": { scope: ADMIN, params: ONE_DELIVERY, ignored: [] },
  "deliveries.dismiss": { scope: ADMIN, params: ONE_DELIVERY, ignored: [] },
  "permissions.list": { scope: READ, params: NOTHING, ignored: [] },
  "permissions.answer": {
    scope: ADMIN,
    params: object({ id: name, decision: { enum: ["allow", "deny"] }, idempotencyKey }, ["id", "decision"]),
    ignored: [],
  },
  ...CHAIN_PARAMS,
  ...accessParams,
  ...CHANNEL_METHODS,
  ...DEMO_METHODS,
  ...OPERATIONS,
  ...CRON_METHODS,
  ...NODE_METHODS,
} as const satisfies Record<string, MethodSpec>;

export type MethodName = keyof typeof METHODS;
export type ParamsOf<M extends MethodName> = XStatic<(typeof METHODS)[M]["params"]>;

export function isMethod(text: string): text is MethodName {
  return Object.hasOwn(METHODS, text);
}
