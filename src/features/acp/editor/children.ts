// Shows an editor the sub-agents that its sessions spawn, as child sessions of the protocol: their task,
// their texts and calls, and their end. An editor that does not understand child sessions gets none.

import type { SessionUpdate } from "@agentclientprotocol/sdk/unstable";
import type { AgentEvent, ChatEvent, FlowData } from "../../../contract/events.ts";
import { head } from "../../../core/text/cut.ts";
import { RunUpdates } from "./updates.ts";

/** Maximum number of sub-agents of one connection that are shown. A further one replaces an ended one. */
const CHILDREN_MAX = 500;
const TITLE_MAX_CHARS = 80;
const FAILED = -32_603;

/** Sends an update of a session, under the id by which the editor knows it. */
export type SendFor = (sessionId: string, update: SessionUpdate) => void;

interface Child {
  readonly parentId: string;
  readonly send: SendFor;
  /** The flow of its job. Undefined after its end. */
  flowId: string | undefined;
  runId: string | undefined;
  updates: RunUpdates;
  /** How the last run of its job ended. */
  end: { readonly stopReason?: string; readonly error?: { code: number; message: string } } | undefined;
}

export class EditorChildren {
  readonly #newId: () => string;
  readonly #children = new Map<string, Child>();

  constructor(newId: () => string) {
    this.#newId = newId;
  }

  /** Returns the session of a sub-agent as a parent of others. */
  parentOf(key: string): { readonly sessionId: string; readonly send: SendFor } | undefined {
    const child = this.#children.get(key);
    return child && { sessionId: key, send: child.send };
  }

  /** Announces a sub-agent of this session. */
  announce(
    { to, text, flowId }: FlowData,
    { sessionId: parentId, send }: { sessionId: string; send: SendFor },
  ): void {
    if (this.#children.has(to)) return;
    if (this.#children.size >= CHILDREN_MAX) {
      const [over] = [...this.#children].find(([, child]) => child.flowId === undefined) ?? [];
      if (over === undefined || !this.#children.delete(over)) return;
    }
    const updates = this.#updatesOf(to, send);
    this.#children.set(to, { parentId, send, flowId, runId: undefined, updates, end: undefined });
    const [line = ""] = text.trim().split("\n");
    const about = { title: head(line, TITLE_MAX_CHARS), state: { state: "running" } } as const;
    send(parentId, { sessionUpdate: "subagent_update", sessionId: to, ...about });
    const ends = { senderSessionId: parentId, recipientSessionId: to };
    const content = [{ type: "text" as const, text }];
    send(to, { sessionUpdate: "session_message", messageId: this.#newId(), ...ends, content });
  }

  /** Reports that the job of a sub-agent has ended. */
  finish({ from, reason, flowId }: FlowData): void {
    const child = this.#children.get(from);
    if (child === undefined || child.flowId !== flowId) return;
    child.flowId = undefined;
    const end = reason === "cancelled" ? { stopReason: reason } : child.end;
    const state = { state: "idle", ...end } as const;
    child.send(child.parentId, { sessionUpdate: "subagent_update", sessionId: from, state });
  }

  onAgent(event: AgentEvent): void {
    const child = this.#childOf(event);
    if (event.stream === "tool") child?.updates.tool(event.data);
    else if (event.stream === "thinking") child?.updates.thought(event.data.text);
  }

  onChat(event: ChatEvent, text: string): void {
    const child = this.#childOf(event);
    if (child === undefined) return;
    if (event.state === "delta") {
      child.updates.text(text);
      return;
    }
    child.updates.end(text);
    const error = { code: FAILED, message: event.errorMessage ?? "the run failed" };
    const ends = {
      final: { stopReason: "end_turn" },
      aborted: { stopReason: "cancelled" },
      error: { stopReason: "error", error },
    };
    child.end = ends[event.state];
  }

  #updatesOf(key: string, send: SendFor): RunUpdates {
    return new RunUpdates((update) => send(key, update), this.#newId);
  }

  #childOf({ sessionKey, runId }: AgentEvent | ChatEvent): Child | undefined {
    const child = this.#children.get(sessionKey);
    if (child !== undefined && child.runId !== runId) {
      child.runId = runId;
      child.updates = this.#updatesOf(sessionKey, child.send);
    }
    return child;
  }
}
