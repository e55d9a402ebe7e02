// Owns the methods about nodes, for operators, and those that nodes themselves call.
// A node whose session the token does not cover is not listed, found, called or changed (I9).
// A node's messages apply only to that node, whatever id they contain.

import { chosenAgent, maySpeakAs } from "../../access/access.ts";
import { createGate } from "../../access/token.ts";
import { isTooDeep } from "../../contract/check.ts";
import type { ParamsOf, PayloadOf } from "../../contract/methods.ts";
import { isObject, jsonOf } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { Run } from "../../core/shapes/run.ts";
import type { Redactor } from "../../core/text/redact/redact.ts";
import { keyOwnerOf } from "../../gateway/auth.ts";
import { answerAfter, type CallContext, type FeatureDeps, type Methods } from "../../gateway/call.ts";
import type { NODE_METHODS, NodeListRow, PairRequestRow } from "./contract.ts";
import type { NodeHub } from "./hub.ts";
import {
  allowedCommands,
  NODE_TIMEOUT_DEFAULT_MS,
  NODE_TIMEOUT_MAX_MS,
  type NodeRow,
  type NodeStatus,
  nodeKey,
  PAIR_REQUEST_MS,
  type PairRequest,
} from "./node.ts";
import { approveDevice, noNode, openRequests, rejectDevice, removeDevice, renameDevice } from "./pairing.ts";
import { acceptNodeTurn, type NodeTurn } from "./turns.ts";

/** Maximum characters of an event's payload. */
const EVENT_MAX_CHARS = 512 * 1024;

/** Wraps a method that exists only if nodes are enabled. */
function whereNodesAre<P, T>(
  handle: (ctx: CallContext<FeatureDeps>, params: P, hub: NodeHub) => Promise<Result<T>>,
): { handle(ctx: CallContext<FeatureDeps>, params: P): Promise<Result<T>> } {
  return {
    async handle(ctx, params) {
      const hub = ctx.deps.services?.get("nodes");
      if (hub !== undefined) return handle(ctx, params, hub as NodeHub);
      return fail("node_unavailable", "nodes are disabled: set nodes.enabled to true");
    },
  };
}

/** Returns a function that checks whether the caller's token covers a node. */
function covering(ctx: CallContext, access: "list" | "send"): (nodeId: string) => boolean {
  const gate = createGate(ctx.deps.settings, ctx.caller, access);
  return (nodeId) => gate(nodeKey(nodeId));
}

function rowOf({ node, connected }: NodeStatus, redactor: Redactor): NodeListRow {
  const { id, name, platform, version, caps, commands, agentId, pairedAt, lastSeenAt, place } = node;
  return {
    nodeId: id,
    displayName: redactor.mask(name),
    platform,
    version,
    caps,
    commands,
    paired: true,
    connected,
    ...optional({ agentId }),
    sessionKey: nodeKey(id),
    pairedAtMs: pairedAt,
    ...(connected && place !== undefined ? { connectedAtMs: place.since } : {}),
    ...optional({ lastSeenAtMs: lastSeenAt }),
  };
}

function requestRow(request: PairRequest, redactor: Redactor): PairRequestRow {
  const { requestId, code, nodeId, name, platform, version, caps, commands, remote, createdAt } = request;
  return {
    requestId,
    code,
    nodeId,
    displayName: redactor.mask(name),
    platform,
    version,
    caps,
    commands,
    remoteIp: remote,
    createdAtMs: createdAt,
    expiresAtMs: createdAt + PAIR_REQUEST_MS,
  };
}

async function rows(ctx: CallContext, hub: NodeHub): Promise<NodeListRow[]> {
  const covers = covering(ctx, "list");
  return (await hub.statuses())
    .filter(({ node }) => covers(node.id))
    .map((one) => rowOf(one, ctx.deps.world.redactor));
}

/** Resolves a node that the caller may use, by its id. */
function findCoveredNode(ctx: CallContext, access: "list" | "send", nodeId: string): Result<string> {
  const id = nodeId.trim().toLowerCase();
  if (covering(ctx, access)(id)) return ok(id);
  return noNode(nodeId);
}

function wantedRequest({ code, requestId }: { code?: string; requestId?: string }): Result<string> {
  const wanted = requestId ?? code;
  return wanted === undefined || (code !== undefined && requestId !== undefined)
    ? fail("invalid_argument", "give either code or requestId")
    : ok(wanted);
}

async function approve(ctx: CallContext, params: ParamsOf<"node.pair.approve">) {
  const wanted = wantedRequest(params);
  if (!wanted.ok) return wanted;
  const { name, agentId } = params;
  const agent = chosenAgent(ctx.deps.settings, agentId);
  if (agent.ok && !maySpeakAs(ctx.deps.settings, ctx.viewer, agent.value)) {
    return fail(
      "not_visible",
      `the token does not cover agent ${agent.value}, to which the node's messages would go`,
      {
        hint: "Use an agentId that it covers; see gateway.auth.tokens[].sessions.",
      },
    );
  }
  const answer = (node: NodeRow, requestId: string): PayloadOf<"node.pair.approve"> => {
    return { ok: true, requestId, node: rowOf({ node, connected: false }, ctx.deps.world.redactor) };
  };
  let requestId = "";
  const paired = await approveDevice(ctx.deps, wanted.value, {
    name,
    agentId,
    covers: covering(ctx, "send"),
    by: ctx.caller.id,
    also: async (unit, node, request) => {
      requestId = request.requestId;
      await ctx.remember(unit, answer(node, requestId));
    },
  });
  return paired.ok ? ok(answer(paired.value, requestId)) : paired;
}

async function reject(ctx: CallContext, params: ParamsOf<"node.pair.reject">) {
  const wanted = wantedRequest(params);
  if (!wanted.ok) return wanted;
  const answer = ({ requestId, nodeId }: PairRequest) => ({ ok: true, requestId, nodeId }) as const;
  const covers = covering(ctx, "send");
  return answerAfter(ctx, answer, (also) => rejectDevice(ctx.deps, wanted.value, { covers, also }));
}

async function invoke(
  ctx: CallContext,
  params: ParamsOf<"node.invoke">,
  hub: NodeHub,
): Promise<Result<PayloadOf<"node.invoke">>> {
  const id = findCoveredNode(ctx, "send", params.nodeId);
  if (!id.ok) return id;
  const { command, timeoutMs = NODE_TIMEOUT_DEFAULT_MS, idempotencyKey } = params;
  const call = {
    nodeId: id.value,
    command,
    ...optional({ params: params.params }),
    timeoutMs: Math.min(timeoutMs, NODE_TIMEOUT_MAX_MS),
    // Prefixed with the caller, so that the node can tell equal keys of two callers apart.
    idempotencyKey: `${keyOwnerOf(ctx.caller)}:${idempotencyKey}`,
  };
  const done = await hub.invoke(call, ctx.signal);
  if (!done.ok) return done;
  const payloadJSON = JSON.stringify(done.value);
  return ok({ ok: true, nodeId: id.value, command, payload: done.value, payloadJSON });
}

/** Returns an event's payload. Returns undefined if it is not an object, or too large. */
function eventPayload(params: ParamsOf<"node.event">): Record<string, unknown> | undefined {
  const { payload, payloadJSON } = params;
  const text = typeof payloadJSON === "string" ? payloadJSON : JSON.stringify(payload ?? {});
  if (text.length > EVENT_MAX_CHARS) return undefined;
  const value = jsonOf(text);
  return isObject(value) && !isTooDeep(value) ? value : undefined;
}

/** Events that start a run. */
const TURN_EVENTS: Readonly<Record<string, { readonly text: string; readonly spoken: boolean }>> = {
  "agent.request": { text: "message", spoken: false },
  "voice.transcript": { text: "text", spoken: true },
};

type TurnFields = Omit<NodeTurn, "also">;

function turnOf(event: string, payload: Record<string, unknown>): Result<TurnFields> {
  const kind = TURN_EVENTS[event];
  const own = (name: string): unknown => (Object.hasOwn(payload, name) ? payload[name] : undefined);
  const text = (name: string): string | undefined => {
    const value = own(name);
    return typeof value === "string" && value.trim() !== "" ? value : undefined;
  };
  const message = own(kind?.text ?? "message") ?? own("message");
  if (typeof message !== "string")
    return fail("invalid_argument", `${event}: ${kind?.text} must be a string`);
  const seconds = own("timeoutSeconds");
  const isTime = typeof seconds === "number" && Number.isFinite(seconds) && seconds >= 0;
  if (seconds !== undefined && seconds !== null && !isTime) {
    return fail("invalid_argument", `${event}: timeoutSeconds must be a number of at least 0`);
  }
  return ok({
    message,
    spoken: kind?.spoken === true,
    sessionKey: text("sessionKey"),
    deliver: own("deliver") === true ? { to: text("to") } : undefined,
    thinking: text("thinking"),
    timeoutSeconds: isTime ? seconds : undefined,
  });
}

async function event(
  ctx: CallContext<FeatureDeps>,
  params: ParamsOf<"node.event">,
  hub: NodeHub,
): Promise<Result<PayloadOf<"node.event">>> {
  const { nodeId = "" } = ctx.caller;
  // Nothing in this gateway uses other events.
  if (!Object.hasOwn(TURN_EVENTS, params.event)) return ok({ ok: true, handled: false });
  const payload = eventPayload(params);
  if (payload === undefined) {
    const most = `at most ${EVENT_MAX_CHARS} characters, not nested too deeply`;
    return fail("invalid_argument", `${params.event}: the payload must be one JSON object of ${most}`);
  }
  const turn = turnOf(params.event, payload);
  if (!turn.ok) return turn;
  const allowed = hub.allowEvent(nodeId);
  if (!allowed.ok) return allowed;
  const answer = ({ runId, sessionKey }: Run) => ({ ok: true, handled: true, runId, sessionKey }) as const;
  return answerAfter(ctx, answer, (also) => acceptNodeTurn(ctx.deps, nodeId, { ...turn.value, also }));
}

export const nodeMethods: Methods<keyof typeof NODE_METHODS, FeatureDeps> = {
  "node.pair.list": whereNodesAre(async (ctx, _, hub) => {
    const covers = covering(ctx, "list");
    const pending = (await openRequests(ctx.deps))
      .filter(({ nodeId }) => covers(nodeId))
      .map((one) => requestRow(one, ctx.deps.world.redactor));
    return ok({ ts: ctx.deps.engine.now(), pending, paired: await rows(ctx, hub) });
  }),
  "node.pair.approve": whereNodesAre(approve),
  "node.pair.reject": whereNodesAre(reject),
  "node.pair.remove": whereNodesAre(async (ctx, params) => {
    const id = findCoveredNode(ctx, "send", params.nodeId);
    if (!id.ok) return id;
    const answer = { ok: true, nodeId: id.value, removed: true } as const;
    const gone = await removeDevice(ctx.deps, id.value, (unit) => ctx.remember(unit, answer));
    return gone.ok ? ok(answer) : gone;
  }),
  "node.rename": whereNodesAre(async (ctx, params) => {
    const id = findCoveredNode(ctx, "send", params.nodeId);
    if (!id.ok) return id;
    const answer = ({ id: nodeId, name }: NodeRow) => ({ ok: true, nodeId, displayName: name }) as const;
    return answerAfter(ctx, answer, (also) => renameDevice(ctx.deps, id.value, params.displayName, also));
  }),
  "node.list": whereNodesAre(async (ctx, _, hub) =>
    ok({ ts: ctx.deps.engine.now(), nodes: await rows(ctx, hub) }),
  ),
  "node.describe": whereNodesAre(async (ctx, params, hub) => {
    const id = findCoveredNode(ctx, "list", params.nodeId);
    if (!id.ok) return id;
    const found = (await hub.statuses()).find(({ node }) => node.id === id.value);
    if (found === undefined) return noNode(params.nodeId);
    const allowed = allowedCommands(found.node, ctx.deps.settings.nodes);
    return ok({
      ts: ctx.deps.engine.now(),
      ...rowOf(found, ctx.deps.world.redactor),
      allowedCommands: allowed,
    });
  }),
  "node.invoke": whereNodesAre(invoke),
  "node.invoke.result": whereNodesAre(async (ctx, params, hub) => {
    const taken = hub.answered(ctx.caller.nodeId ?? "", params);
    return ok(taken ? { ok: true } : { ok: true, ignored: true });
  }),
  "node.event": {
    ...whereNodesAre(event),
    // An event that starts no run does not use up the node's rate limit, so its answer must not be stored
    // either.
    repeats: (params) => !Object.hasOwn(TURN_EVENTS, params.event),
  },
};
