// Owns the pending commands of nodes that are connected here.
// NC1: an answer counts only if it comes from the node that got the command, while the command is pending.
// NC2: each caller gets one answer: from the node, on timeout, or because the node or the caller has
// disconnected. If the command may have been executed, the outcome is reported as unknown.
// NC3: a node's answer is bounded in bytes and in depth before it is read.

import { isTooDeep } from "../../contract/check.ts";
import type { EventPayloads } from "../../contract/events.ts";
import type { ParamsOf } from "../../contract/methods.ts";
import { isObject, readJson } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { type Failure, fail, ok, type Result } from "../../core/shapes/errors.ts";
import { head } from "../../core/text/cut.ts";
import { safeText } from "../../core/text/safe-text.ts";
import type { Timer, World } from "../../world.ts";
import { NODE_ANSWER_MAX_BYTES, type NodeCall, type NodeRow } from "./node.ts";

/** Maximum number of pending commands of one node. */
const PENDING_MAX = 64;
const ERROR_MAX_CHARS = 2_000;

/** The connection to one node. */
export interface NodeLine {
  readonly node: Pick<NodeRow, "id" | "name">;
  ask(request: EventPayloads["node.invoke.request"]): void;
  cancel(cancel: EventPayloads["node.invoke.cancel"]): void;
}

/** A node's answer to a command. */
export type NodeSaid = ParamsOf<"node.invoke.result">;

interface Pending {
  readonly line: NodeLine;
  settle(result: Result<unknown>): void;
}

/** Returns the failure of a command that was sent and may have been executed. */
export function unknownOutcome(name: string, why: string): Failure {
  return fail("outcome_unknown", `${why}: it is unknown whether node "${name}" has executed the command`, {
    hint: "Check the command's effects before you repeat it.",
  });
}

function tooLate(name: string, timeoutMs: number): Failure {
  const text = `node "${name}" did not answer within ${timeoutMs / 1_000} s`;
  return fail("node_timeout", `${text}; it may have executed the command`, {
    hint: "Use a larger timeout, or check the command's effects.",
  });
}

/** Returns the payload of an answer, or `null` if it has none. */
function payloadOf({ payload, payloadJSON }: NodeSaid): Result<unknown> {
  const text = typeof payloadJSON === "string" ? payloadJSON : JSON.stringify(payload ?? null);
  const bytes = Buffer.byteLength(text);
  if (bytes > NODE_ANSWER_MAX_BYTES) {
    return fail("too_large", `the node's answer has ${bytes} bytes; the maximum is ${NODE_ANSWER_MAX_BYTES}`);
  }
  const value = typeof payloadJSON === "string" ? readJson(payloadJSON) : ok(payload ?? null);
  if (value.ok && value.value === undefined)
    return fail("node_failed", "the node answered with text that is not JSON");
  if (value.ok && isTooDeep(value.value))
    return fail("node_failed", "the node's answer is nested too deeply");
  return value;
}

/** Converts a node's error to a failure. The error's message is untrusted text. */
function refusalOf(name: string, { error }: NodeSaid): Failure {
  const own = (field: string): string => {
    const value = isObject(error) && Object.hasOwn(error, field) ? error[field] : undefined;
    return typeof value === "string" ? safeText(head(value, ERROR_MAX_CHARS)) : "";
  };
  const code = own("code").slice(0, 64);
  return fail("node_failed", `node "${name}" failed: ${own("message") || "no reason given"}`, {
    ...(code === "" ? {} : { details: { nodeCode: code } }),
  });
}

export class NodeCalls {
  readonly #world: World;
  readonly #pending = new Map<string, Pending>();

  constructor(world: World) {
    this.#world = world;
  }

  /** Sends a command to a node that is connected here. Never rejects. */
  ask(
    line: NodeLine,
    call: NodeCall,
    paramsJSON: string | undefined,
    signal: AbortSignal,
  ): Promise<Result<unknown>> {
    const { id: nodeId, name } = line.node;
    if (signal.aborted)
      return Promise.resolve(fail("run_aborted", "the caller disconnected; the command was not sent"));
    const inHand = [...this.#pending.values()].filter((one) => one.line === line).length;
    if (inHand >= PENDING_MAX) {
      const text = `node "${name}" has ${PENDING_MAX} pending commands; wait for some of them`;
      return Promise.resolve(fail("rate_limited", text));
    }
    const { clock, ids } = this.#world;
    const { command, timeoutMs, idempotencyKey } = call;
    const id = ids.uuid();
    return new Promise((resolve) => {
      let timer: Timer | undefined;
      const settle = (result: Result<unknown>): void => {
        if (!this.#pending.delete(id)) return;
        timer?.cancel();
        signal.removeEventListener("abort", stopWaiting);
        resolve(result);
      };
      const giveUp = (failure: Failure): void => {
        settle(failure);
        line.cancel({ id, nodeId });
      };
      const stopWaiting = (): void =>
        giveUp(unknownOutcome(name, "the caller disconnected before the node answered"));
      signal.addEventListener("abort", stopWaiting, { once: true });
      this.#pending.set(id, { line, settle });
      timer = clock.after(timeoutMs, () => giveUp(tooLate(name, timeoutMs)));
      const params = optional({ paramsJSON });
      line.ask({ id, nodeId, command, ...params, timeoutMs, idempotencyKey });
    });
  }

  /** Takes a node's answer. Returns false if no such command of that node is pending. */
  answer(nodeId: string, said: NodeSaid): boolean {
    const pending = this.#pending.get(said.id);
    const asked = pending?.line.node;
    if (pending === undefined || asked?.id !== nodeId) return false;
    if (said.nodeId !== undefined && said.nodeId !== nodeId) return false;
    pending.settle(said.ok ? payloadOf(said) : refusalOf(asked.name, said));
    return true;
  }

  /** Called when the connection has ended: its pending commands get no answer. */
  lost(line: NodeLine): void {
    for (const pending of [...this.#pending.values()]) {
      if (pending.line !== line) continue;
      pending.settle(unknownOutcome(line.node.name, "the node's connection broke before it answered"));
    }
  }
}
