// Owns the nodes that are connected to this gateway, and sends commands to any node, wherever it is
// connected.
// NH1: a node has one connection, the newest. When a device is unpaired, its connection ends at once, or at
// the latest when the rows of connected nodes are checked again.
// A command is sent only if the row, the node's list of commands and the settings allow it at that moment
// (ND1 of node.ts).
// NH3: processes pass commands to each other as messages. If a message is lost, the caller learns that the
// outcome is unknown. A message never has an effect twice.
// NH4: the number of runs that one node can start per minute is limited.

import type { EventPayloads } from "../../contract/events.ts";
import type { ConnectParams, DeviceProof } from "../../contract/frames.ts";
import { CLOSE, NODE_REPLACED } from "../../contract/protocol.ts";
import { type Failure, fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { Service, ServiceParts } from "../../feature.ts";
import { type Allowance, createAllowance } from "../../gateway/allowance.ts";
import type { Caller } from "../../gateway/auth.ts";
import type { Member } from "../../gateway/socket/connection.ts";
import { encodeEvent } from "../../gateway/socket/outlet.ts";
import type { Timer } from "../../world.ts";
import { NodeCalls, type NodeLine, type NodeSaid, unknownOutcome } from "./calls.ts";
import {
  commandRefusal,
  NODE_PARAMS_MAX_BYTES,
  NODE_TIMEOUT_MAX_MS,
  type NodeCall,
  type NodeRow,
  type NodeStatus,
  nodeFacts,
} from "./node.ts";
import { admitDevice, noNode } from "./pairing.ts";
import { getNode, hasNodes, listNodes, nodeLeft } from "./store.ts";

/**
 * Interval at which the rows of connected nodes are checked, in case the message about a removed node was
 * lost.
 */
const LOOK_MS = 30_000;
/**
 * Maximum time for a message to another process and for its answer, in addition to the command's own timeout.
 */
const MESSAGES_MS = 5_000;
/**
 * A node may start a burst of `max` runs, then one per second. No node's count is evicted, because `usersMax`
 * is above the number of paired nodes.
 */
const EVENTS = { max: 60, everyMs: 1_000, usersMax: 1_000 };

/** `ownerLives`: whether the process that the row names as the node's process is alive. */
type OwnedNodeStatus = NodeStatus & { readonly ownerLives: boolean };

interface Checked {
  readonly status: OwnedNodeStatus;
  readonly paramsJSON: string | undefined;
}

interface Live {
  readonly member: Member;
  readonly line: NodeLine;
}

/** A message between processes. */
type ProcessMessage =
  | { readonly kind: "node.ask"; readonly from: string; readonly id: string; readonly call: NodeCall }
  | { readonly kind: "node.cancel"; readonly id: string }
  /**
   * The node has connected to the sending process, so the receiving process closes the connection `connId`.
   */
  | { readonly kind: "node.moved"; readonly nodeId: string; readonly connId: string }
  | { readonly kind: "node.answer"; readonly id: string; readonly result: Result<unknown> };

export class NodeHub implements Service {
  readonly #parts: ServiceParts;
  readonly #calls: NodeCalls;
  readonly #live = new Map<string, Live>();
  /** Commands sent to other processes, by message id. */
  readonly #elsewhere = new Map<string, (result: Result<unknown>) => void>();
  /** Commands that other processes have sent, and may cancel. */
  readonly #forOthers = new Map<string, AbortController>();
  /** Limits the runs that each node may start (NH4). */
  readonly #events: Allowance;
  #writes: Promise<unknown> = Promise.resolve();
  #lookTimer: Timer | undefined;
  #offs: (() => void)[] = [];
  #closed = false;

  constructor(parts: ServiceParts) {
    this.#parts = parts;
    this.#calls = new NodeCalls(parts.world);
    this.#events = createAllowance(parts.world.clock, EVENTS);
  }

  /** Subscribes to other processes' messages and to the removal of devices. */
  start(): void {
    const engine = this.#parts.engine();
    this.#offs = [
      engine.bus.subscribe((event) => {
        if (event.kind !== "feature" || event.event !== "node.pair.resolved") return;
        const { decision, nodeId } = event.payload as EventPayloads["node.pair.resolved"];
        if (decision === "removed") this.#end(nodeId);
      }),
      engine.onMessage((body) => this.#read(body as ProcessMessage)),
    ];
  }

  /**
   * Resolves when the state of the ended connections is stored. Other code closes the connections themselves.
   */
  async close(): Promise<void> {
    this.#closed = true;
    this.#lookTimer?.cancel();
    for (const off of this.#offs) off();
    await this.#writes;
  }

  /** Checks whether a device may connect. If so, its row then names this process. */
  async admit(
    caller: Caller,
    params: ConnectParams,
    at: { readonly proof: DeviceProof | undefined; readonly remote: string; readonly connId: string },
  ): Promise<Result<NodeRow>> {
    if (caller.actsAs !== undefined) return fail("missing_scope", "a session's pass is not valid for nodes");
    const { proof, remote, connId } = at;
    if (proof?.nonce === undefined) {
      const text =
        "a node must prove its identity: connect needs device, with a signature over the challenge's nonce";
      return fail("not_paired", text);
    }
    const { client, caps, commands } = params;
    const { displayName: name = client.id, platform, version } = client;
    const facts = nodeFacts({ name, platform, version, caps, commands });
    const { settings } = this.#parts;
    const engine = this.#parts.engine();
    const device = {
      ...facts,
      id: proof.id,
      publicKey: proof.publicKey,
      remote: remote.slice(0, 64),
      askedBy: caller.accessToken ?? caller.id,
    };
    const admitted = await admitDevice({ engine, settings }, device, { owner: engine.processId, connId });
    const before = admitted.ok ? admitted.value.place : undefined;
    if (before !== undefined && before.owner !== engine.processId) {
      const moved: ProcessMessage = { kind: "node.moved", nodeId: proof.id, connId: before.connId };
      engine.writeTo(before.owner, moved);
    }
    return admitted;
  }

  /**
   * Makes an admitted connection the node's current one. Call the returned function when the connection ends.
   */
  join(member: Member, node: Pick<NodeRow, "id" | "name">): () => void {
    const line: NodeLine = {
      node,
      ask: (request) => member.event(encodeEvent("node.invoke.request", request)),
      cancel: (cancel) => member.event(encodeEvent("node.invoke.cancel", cancel)),
    };
    const live = { member, line };
    const before = this.#live.get(node.id);
    this.#live.set(node.id, live);
    before?.member.close(CLOSE.policy, NODE_REPLACED);
    if (this.#lookTimer === undefined) this.#lookLater();
    // The node may have been unpaired while it connected.
    this.#later(async () => {
      const row = await getNode(this.#parts.engine().store.db, node.id);
      if (row === undefined && this.#live.get(node.id) === live) this.#end(node.id);
    });
    return () => {
      this.#calls.lost(line);
      if (this.#live.get(node.id) === live) this.#live.delete(node.id);
      const engine = this.#parts.engine();
      const place = { owner: engine.processId, connId: member.connId };
      this.#later(() => engine.commit((unit) => nodeLeft(unit.tx, node.id, place, unit.now)));
    };
  }

  /** Returns the paired nodes and whether they are connected. */
  async statuses(): Promise<OwnedNodeStatus[]> {
    const engine = this.#parts.engine();
    const rows = await listNodes(engine.store.db);
    return rows.map(({ node, ownerLives }) => {
      const elsewhere = ownerLives && node.place?.owner !== engine.processId;
      return { node, ownerLives, connected: this.#live.has(node.id) || elsewhere };
    });
  }

  /** Returns whether any node is paired: if not, the node tools are left out. */
  anyPaired(): Promise<boolean> {
    return hasNodes(this.#parts.engine().store.db);
  }

  /** Sends a command to a node and waits for the answer. The node may be connected to another process. */
  async invoke(call: NodeCall, signal: AbortSignal): Promise<Result<unknown>> {
    const checked = await this.#check(call);
    if (!checked.ok) return checked;
    const { status, paramsJSON } = checked.value;
    const { node } = status;
    const { place } = node;
    const isElsewhere = place !== undefined && place.owner !== this.#parts.engine().processId;
    // The row names the newest connection. An earlier one may still be open in this process.
    if (isElsewhere && status.ownerLives) return this.#askElsewhere(place.owner, node, call, signal);
    const live = this.#live.get(node.id);
    return live === undefined ? this.#away(node) : this.#calls.ask(live.line, call, paramsJSON, signal);
  }

  /** Takes a node's answer to a command. Returns false if it is not pending. */
  answered(nodeId: string, said: NodeSaid): boolean {
    const taken = this.#calls.answer(nodeId, said);
    if (!taken)
      this.#parts.world.log.debug(
        { nodeId, callId: said.id },
        "a node answered a command that is not pending",
      );
    return taken;
  }

  /** Counts a node's event that starts a run, and refuses it above the node's rate limit. */
  allowEvent(nodeId: string): Result<void> {
    const retryAfterMs = this.#events.waitMs(nodeId);
    if (retryAfterMs > 0) {
      return fail("rate_limited", `a node may start ${EVENTS.max} runs in a minute; wait`, {
        details: { retryAfterMs },
      });
    }
    this.#events.take(nodeId);
    return ok(undefined);
  }

  async #check(call: NodeCall): Promise<Result<Checked>> {
    const status = (await this.statuses()).find(({ node }) => node.id === call.nodeId);
    if (status === undefined) return noNode(call.nodeId);
    const refused = commandRefusal(status.node, call.command, this.#parts.settings.nodes);
    if (refused !== undefined) return fail("node_command_denied", refused);
    if (call.timeoutMs > NODE_TIMEOUT_MAX_MS) {
      return fail("invalid_argument", `timeoutMs must be at most ${NODE_TIMEOUT_MAX_MS}`);
    }
    const paramsJSON = call.params === undefined ? undefined : JSON.stringify(call.params);
    const bytes = Buffer.byteLength(paramsJSON ?? "");
    if (bytes > NODE_PARAMS_MAX_BYTES) {
      return fail("too_large", `the params have ${bytes} bytes; the maximum is ${NODE_PARAMS_MAX_BYTES}`);
    }
    return ok({ status, paramsJSON });
  }

  #away({ name, lastSeenAt }: NodeRow): Failure {
    const seen = lastSeenAt === undefined ? "" : `; it was last seen ${new Date(lastSeenAt).toISOString()}`;
    return fail("node_unavailable", `node "${name}" is not connected${seen}; the command was not sent`, {
      hint: "Start it on that device with: npx parley-gateway node run",
    });
  }

  #askElsewhere(owner: string, node: NodeRow, call: NodeCall, signal: AbortSignal): Promise<Result<unknown>> {
    const engine = this.#parts.engine();
    const { clock, ids } = this.#parts.world;
    const id = ids.uuid();
    return new Promise((resolve) => {
      const settle = (result: Result<unknown>): void => {
        if (!this.#elsewhere.delete(id)) return;
        timer.cancel();
        signal.removeEventListener("abort", stopWaiting);
        resolve(result);
      };
      const giveUp = (why: string): void => {
        settle(unknownOutcome(node.name, why));
        engine.writeTo(owner, { kind: "node.cancel", id } satisfies ProcessMessage);
      };
      const stopWaiting = (): void => giveUp("the caller disconnected before the node answered");
      const timer = clock.after(call.timeoutMs + MESSAGES_MS, () =>
        giveUp("the node's gateway did not answer"),
      );
      this.#elsewhere.set(id, settle);
      signal.addEventListener("abort", stopWaiting, { once: true });
      if (signal.aborted)
        return settle(fail("run_aborted", "the caller disconnected; the command was not sent"));
      engine.writeTo(owner, { kind: "node.ask", from: engine.processId, id, call } satisfies ProcessMessage);
    });
  }

  #read(message: ProcessMessage): void {
    switch (message.kind) {
      case "node.ask":
        void this.#serve(message);
        return;
      case "node.cancel":
        this.#forOthers.get(message.id)?.abort();
        return;
      case "node.moved": {
        const live = this.#live.get(message.nodeId);
        if (live?.member.connId === message.connId) live.member.close(CLOSE.policy, NODE_REPLACED);
        return;
      }
      case "node.answer":
        this.#elsewhere.get(message.id)?.(message.result);
        return;
    }
  }

  /** Executes a command for another process. The settings of both processes must allow it. */
  async #serve({ from, id, call }: Extract<ProcessMessage, { kind: "node.ask" }>): Promise<void> {
    const gone = new AbortController();
    this.#forOthers.set(id, gone);
    const { world } = this.#parts;
    try {
      const checked = await this.#check(call);
      const live = this.#live.get(call.nodeId);
      let result: Result<unknown> = checked;
      if (checked.ok) {
        const { paramsJSON, status } = checked.value;
        result =
          live === undefined
            ? this.#away(status.node)
            : await this.#calls.ask(live.line, call, paramsJSON, gone.signal);
      }
      this.#parts.engine().writeTo(from, { kind: "node.answer", id, result } satisfies ProcessMessage);
    } catch (error) {
      // Send no answer: the other process reports an unknown outcome to its caller when its time limit is
      // over.
      world.log.error(
        { err: error, nodeId: call.nodeId },
        "could not send another gateway's command to a node",
      );
    } finally {
      this.#forOthers.delete(id);
    }
  }

  /** Closes the connection of a device that was unpaired. */
  #end(nodeId: string): void {
    const live = this.#live.get(nodeId);
    if (live === undefined) return;
    this.#live.delete(nodeId);
    live.member.close(CLOSE.policy, "this device is no longer paired");
  }

  /** Queues work on the store, one at a time; a failure is logged and has no other effect. */
  #later(work: () => Promise<unknown>): void {
    this.#writes = this.#writes.then(work).catch((error: unknown) => {
      this.#parts.world.log.warn({ err: error }, "could not store the state of a node's connection");
    });
  }

  /** Checks the rows regularly while any node is connected. */
  #lookLater(): void {
    if (this.#closed) return;
    const { clock } = this.#parts.world;
    this.#lookTimer = clock.after(LOOK_MS, () => {
      this.#lookTimer = undefined;
      if (this.#live.size === 0) return;
      this.#later(async () => {
        // List the local nodes first, because a node that connects during the read may be missing from the
        // rows.
        const here = [...this.#live.keys()];
        const paired = new Set((await this.statuses()).map(({ node }) => node.id));
        for (const nodeId of here) if (!paired.has(nodeId)) this.#end(nodeId);
      });
      this.#lookLater();
    });
  }
}

export function start(parts: ServiceParts): Service {
  const hub = new NodeHub(parts);
  hub.start();
  return hub;
}
