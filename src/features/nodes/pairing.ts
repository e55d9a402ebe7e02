// Owns device pairing: requests, approval and removal.
// NP1: an unapproved device gets only a pairing request, and the number of requests is limited, also for each
//      token, so that no token keeps the devices of others out. A device with an unknown key counts as an
//      unknown device.
// NP2: if several callers decide on a request or remove a device at once, one succeeds; the others get "not
//      found".

import { createHash } from "node:crypto";
import { chosenAgent } from "../../access/access.ts";
import type { Of } from "../../contract/schema.ts";
import { optional } from "../../core/optional.ts";
import { type Failure, fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { Settings } from "../../core/shapes/settings/settings.ts";
import { quoted } from "../../core/text/cut.ts";
import { checkLabel, deviceText } from "../../core/text/label.ts";
import type { Engine } from "../../engine/engine.ts";
import type { Unit } from "../../engine/unit.ts";
import { takeAdvisoryLock } from "../../store/locks.ts";
import { type Also, creatorOf } from "../../triggers/creator.ts";
import type { NODE_EVENTS } from "./contract.ts";
import {
  NODES_MAX,
  type NodeConnection,
  type NodeFacts,
  type NodeRow,
  nodeKey,
  PAIR_REQUEST_MS,
  PAIR_REQUESTS_MAX,
  PAIR_REQUESTS_PER_TOKEN_MAX,
  type PairRequest,
} from "./node.ts";
import {
  countNodes,
  deleteNode,
  deleteRequest,
  dropRequests,
  holdNode,
  holdRequestOf,
  insertRequest,
  listRequests,
  nodeCame,
  putNode,
  renameNode,
} from "./store.ts";

export interface NodeContext {
  readonly engine: Engine;
  readonly settings: Settings;
}

/** A device that has proved that it holds the private key of its id. */
export interface Device extends NodeFacts {
  readonly id: string;
  readonly publicKey: string;
  readonly remote: string;
  /** Id of the token with which the device connects. */
  readonly askedBy: string;
}

/** Letters and digits of a code, without those that look alike. */
const CODE_LETTERS = "ABCDEFGHJKMNPQRSTUVWXYZ23456789";
const CODE_CHARS = 8;
const NAME_MAX_CHARS = 64;

/** Returns a random code that no other open request has. */
function freshCode(unit: Unit, open: readonly PairRequest[]): string {
  for (;;) {
    const bytes = createHash("sha256").update(unit.newId()).digest().subarray(0, CODE_CHARS);
    const letters = [...bytes].map((byte) => CODE_LETTERS[byte % CODE_LETTERS.length]).join("");
    const code = `${letters.slice(0, 4)}-${letters.slice(4)}`;
    if (!open.some((other) => other.code === code)) return code;
  }
}

function plainCode(text: string): string {
  return text.toUpperCase().replaceAll(/[^A-Z0-9]/g, "");
}

/** Tells operators about a request, and about its end or that of a device. */
function tell(
  unit: Unit,
  {
    nodeId,
    name: displayName,
    platform,
    requestId,
    code,
  }: Pick<NodeFacts, "name" | "platform"> & {
    readonly nodeId: string;
  } & Partial<Pick<PairRequest, "requestId" | "code">>,
  decision?: Of<(typeof NODE_EVENTS)["node.pair.resolved"]["payload"]>["decision"],
): void {
  const facts = { nodeId, displayName, ...optional({ requestId }), ts: unit.now };
  unit.publish({
    kind: "feature",
    event: decision === undefined ? "node.pair.requested" : "node.pair.resolved",
    sessionKey: nodeKey(nodeId),
    payload: decision === undefined ? { ...facts, platform, ...optional({ code }) } : { ...facts, decision },
    isForAdmins: true,
  });
}

/** Returns the device's open request, or creates one. Returns the reason if there are too many requests. */
async function requestOf(unit: Unit, device: Device): Promise<PairRequest | string> {
  const oldest = unit.now - PAIR_REQUEST_MS;
  await dropRequests(unit.tx, oldest);
  const known = await holdRequestOf(unit.tx, device.id);
  if (known !== undefined) return known;
  await takeAdvisoryLock(unit.tx, "limits");
  const open = await listRequests(unit.tx, oldest);
  const ofToken = open.filter(({ askedBy }) => askedBy === device.askedBy);
  if (ofToken.length >= PAIR_REQUESTS_PER_TOKEN_MAX)
    return `too many devices with this token wait to be paired (${PAIR_REQUESTS_PER_TOKEN_MAX})`;
  if (open.length >= PAIR_REQUESTS_MAX) return `too many devices wait to be paired (${PAIR_REQUESTS_MAX})`;
  const { id: nodeId, ...said } = device;
  const requestId = unit.newId();
  const request = { ...said, nodeId, requestId, code: freshCode(unit, open), createdAt: unit.now };
  await insertRequest(unit.tx, request);
  tell(unit, request);
  return request;
}

/** Admits a paired device and stores its data. For an unpaired device, stores a pairing request. */
export async function admitDevice(
  ctx: NodeContext,
  device: Device,
  place: Omit<NodeConnection, "since">,
): Promise<Result<NodeRow>> {
  const met = await ctx.engine.commit(async (unit) => {
    const node = await holdNode(unit.tx, device.id);
    if (node?.publicKey !== device.publicKey) return { request: await requestOf(unit, device) };
    await nodeCame(unit.tx, node.id, device, { ...place, since: unit.now });
    return { node };
  });
  if (met.node !== undefined) return ok(met.node);
  if (typeof met.request !== "string") {
    const { code, requestId, createdAt } = met.request;
    return fail("not_paired", `this device is not paired yet; its code is ${code}`, {
      hint: `An operator approves it with: npx parley-gateway node approve ${code}`,
      details: { pairing: { requestId, code, expiresAtMs: createdAt + PAIR_REQUEST_MS } },
    });
  }
  return fail("not_paired", met.request, {
    hint: "An operator accepts or rejects them: npx parley-gateway node pending. They expire after an hour.",
  });
}

export async function openRequests({ engine }: NodeContext): Promise<PairRequest[]> {
  return listRequests(engine.store.db, engine.now() - PAIR_REQUEST_MS);
}

/** Returns the request with a code or an id, if `covers` allows the caller to decide on it. */
async function settle(
  ctx: NodeContext,
  wanted: string,
  covers: (nodeId: string) => boolean,
  decide: (unit: Unit, request: PairRequest) => Promise<Result<unknown>>,
): Promise<Result<PairRequest>> {
  const gone = fail("pairing_not_found", `there is no pairing request ${quoted(wanted, 80)}`, {
    hint: "npx parley-gateway node pending lists the requests. A request expires after an hour.",
  });
  return ctx.engine.commit(async (unit) => {
    const open = await listRequests(unit.tx, unit.now - PAIR_REQUEST_MS);
    const plain = plainCode(wanted);
    const request = open.find(
      ({ code, requestId }) => requestId === wanted.trim() || plainCode(code) === plain,
    );
    if (request === undefined || !covers(request.nodeId)) return gone;
    if (!(await deleteRequest(unit.tx, request.nodeId))) return gone;
    const done = await decide(unit, request);
    return done.ok ? ok(request) : done;
  });
}

export interface Approval {
  /** The node's name. Default: the name that the device reports. */
  readonly name?: string | undefined;
  /** The agent of the node's runs. Default: the default agent. */
  readonly agentId?: string | undefined;
}

function checkName(name: string | undefined): Result<string | undefined> {
  if (name === undefined) return ok(undefined);
  const checked = checkLabel(name, "name");
  if (!checked.ok) return checked;
  if (checked.value.length <= NAME_MAX_CHARS) return checked;
  return fail(
    "invalid_argument",
    `name has ${checked.value.length} characters; the maximum is ${NAME_MAX_CHARS}`,
  );
}

/** Pairs a device, which can connect from then on. */
export async function approveDevice(
  ctx: NodeContext,
  wanted: string,
  asked: Approval & {
    readonly covers: (nodeId: string) => boolean;
    /** Id of the caller. The node gets the rights of the caller's token. */
    readonly by: string;
    readonly also: (unit: Unit, node: NodeRow, request: PairRequest) => Promise<void>;
  },
): Promise<Result<NodeRow>> {
  const name = checkName(asked.name);
  if (!name.ok) return name;
  const agent = asked.agentId === undefined ? ok(undefined) : chosenAgent(ctx.settings, asked.agentId);
  if (!agent.ok) return agent;
  let paired: NodeRow | undefined;
  const settled = await settle(ctx, wanted, asked.covers, async (unit, request) => {
    await takeAdvisoryLock(unit.tx, "limits");
    if ((await countNodes(unit.tx)) >= NODES_MAX) {
      return fail("rate_limited", `there are already ${NODES_MAX} paired nodes, the maximum`, {
        hint: "Remove one: npx parley-gateway node remove.",
      });
    }
    const { nodeId, publicKey, platform, version, caps, commands } = request;
    paired = {
      id: nodeId,
      publicKey,
      platform,
      version,
      caps,
      commands,
      pairedAt: unit.now,
      name: name.value ?? request.name,
      ...optional({ agentId: agent.value, createdBy: creatorOf(ctx.settings, asked.by) }),
    };
    await putNode(unit.tx, paired);
    tell(unit, { ...request, name: paired.name }, "approved");
    await asked.also(unit, paired, request);
    return ok(undefined);
  });
  if (!settled.ok) return settled;
  if (paired === undefined) throw new Error("an approved device is missing in the store");
  return ok(paired);
}

/** Rejects a pairing request. The device may send another one. */
export async function rejectDevice(
  ctx: NodeContext,
  wanted: string,
  asked: { readonly covers: (nodeId: string) => boolean; readonly also: Also<PairRequest> },
): Promise<Result<PairRequest>> {
  return settle(ctx, wanted, asked.covers, async (unit, request) => {
    tell(unit, request, "rejected");
    await asked.also(unit, request);
    return ok(undefined);
  });
}

export function noNode(id: string): Failure {
  const hint = "node.list, or npx parley-gateway node list, shows them.";
  return fail("node_not_found", `no paired node ${quoted(id, 80)}`, { hint });
}

/** Removes a device and closes its connection in every process. Its session stays. */
export async function removeDevice(
  ctx: NodeContext,
  id: string,
  also: Also<NodeRow>,
): Promise<Result<NodeRow>> {
  return ctx.engine.commit(async (unit) => {
    const node = await holdNode(unit.tx, id);
    if (node === undefined || !(await deleteNode(unit.tx, id))) return noNode(id);
    tell(unit, { ...node, nodeId: id }, "removed");
    await also(unit, node);
    return ok(node);
  });
}

export async function renameDevice(
  ctx: NodeContext,
  id: string,
  wanted: string,
  also: Also<NodeRow>,
): Promise<Result<NodeRow>> {
  const name = checkName(wanted);
  if (!name.ok) return name;
  return ctx.engine.commit(async (unit) => {
    const node = await holdNode(unit.tx, id);
    const called = deviceText(name.value, NAME_MAX_CHARS, "node");
    if (node === undefined || !(await renameNode(unit.tx, id, called))) return noNode(id);
    await also(unit, { ...node, name: called });
    return ok({ ...node, name: called });
  });
}
