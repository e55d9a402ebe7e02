// Owns the sub-agents that one program shows: as child sessions of the protocol, or by marks on updates of
// its own session. The work of a child session is the result of a call `subagent` in the transcript of the
// agent; marked work is part of the result of the call that started the sub-agent.
// SA1: text of a sub-agent is never text of the agent. A session that was not announced is ignored.
// SA2: a sub-agent that works while the agent writes further does not hold back the transcript: its call says
//      so, and the rest of its work is a second call, when it has ended or at the end of the turn.
// SA3: work between two turns is shown in the next one.

import type { SessionUpdate, SubagentUpdate } from "@agentclientprotocol/sdk/unstable";
import { fieldsOf } from "../../../core/json.ts";
import { optional } from "../../../core/optional.ts";
import { head } from "../../../core/text/cut.ts";
import type { AcpTurn } from "./turn.ts";
import { isTooLong, WorkLog } from "./work-log.ts";

/** Maximum number of sub-agents of one program. A further one replaces one that has ended. */
const CHILDREN_MAX = 200;
const MARKED_CALLS_MAX = 1_000;
const UNMARKED_MAX_CHARS = 1024 * 1024;
const LABEL_MAX_CHARS = 200;
const UNNAMED = "a sub-agent";
const IN_BACKGROUND = "[It works in the background.]";
const STILL_WORKING = "[It still worked when this turn ended.]";

interface Child {
  readonly id: string;
  /** The names of the sub-agents above it. */
  readonly above: string;
  title: string;
  role: string;
  isWorking: boolean;
  /** How it ended last. */
  end: ReturnType<typeof fieldsOf>;
  /** The work that no call has shown yet. */
  log: WorkLog;
  /** Id of its open call. */
  callId: string | undefined;
  calls: number;
  /** It works in the background of the running turn. */
  isBehind: boolean;
}

const labelOf = ({ title, above }: Child): string => head(above + (title || UNNAMED), LABEL_MAX_CHARS);

/** Returns the sub-agent of a marked update: the call that started it, or its id and type. */
function markOf(update: SessionUpdate): { launchId?: string; id?: string; type?: string } {
  const meta = fieldsOf(update._meta);
  const launchId = meta.parentToolCallId ?? fieldsOf(meta.claudeCode).parentToolUseId;
  const { agentId } = fieldsOf(meta["github.com/copilot"]);
  const text = (value: unknown) => (typeof value === "string" && value !== "" ? value : undefined);
  return optional({ launchId: text(launchId), id: text(agentId), type: text(meta.subagentType) });
}

export class Subagents {
  readonly #children = new Map<string, Child>();
  /** The marked calls of the turn, with the call that started their sub-agent. */
  readonly #marked = new Map<string, string>();
  /** The last text that was taken for a sub-agent's because its call was open. */
  #unmarked = "";
  #turn: AcpTurn | undefined;

  /** Returns whether this sub-agent was announced. */
  has(id: string): boolean {
    return this.#children.has(id);
  }

  /** Returns the name of a sub-agent for people, or undefined if it was not announced. */
  labelOf(id: string): string | undefined {
    const child = this.#children.get(id);
    return child && labelOf(child);
  }

  /** Takes the announcement of a child, or later news of it. `parentId`: undefined for the agent itself. */
  announce(parentId: string | undefined, update: SubagentUpdate): void {
    const { sessionId: id, title, description, state } = update;
    const known = this.#children.get(id);
    if (known === undefined && (isTooLong(id) || !this.#hasRoom())) return;
    const parent = parentId === undefined ? undefined : this.labelOf(parentId);
    const child = known ?? {
      ...{ id, above: parent === undefined ? "" : `${parent} › `, title: "", role: "", end: {} },
      ...{ isWorking: false, isBehind: false, log: new WorkLog(), callId: undefined, calls: 0 },
    };
    this.#children.set(id, child);
    if (title !== undefined) child.title = head(title ?? "", LABEL_MAX_CHARS);
    if (description !== undefined) child.role = head(description ?? "", LABEL_MAX_CHARS);
    if (state == null) return;
    const wasWorking = child.isWorking;
    child.isWorking = state.state === "running" || state.state === "requires_action";
    if (child.isWorking) this.#show(child);
    if (state.state !== "idle") return;
    child.end = fieldsOf(state);
    this.#finish(child, wasWorking);
  }

  /** At the limit, forgets the first sub-agent that has ended. Returns whether there is room for one more. */
  #hasRoom(): boolean {
    if (this.#children.size < CHILDREN_MAX) return true;
    const isOver = (one: Child) => !one.isWorking && one.log.isEmpty && one.callId === undefined;
    const over = [...this.#children.values()].find(isOver);
    return over !== undefined && this.#children.delete(over.id);
  }

  /** Takes an update of a child session. Returns false if no such session was announced. */
  update(id: string, update: SessionUpdate): boolean {
    const child = this.#children.get(id);
    if (child === undefined) return false;
    child.log.add(update, id);
    if (!child.log.isEmpty) this.#show(child);
    return true;
  }

  /**
   * Takes an update of the agent's own session if it is marked as work of a sub-agent. `argument`: the calls
   * with this argument start a sub-agent, whose text is not marked. Returns the sub-agent's name.
   */
  nest(update: SessionUpdate, argument?: string): string | undefined {
    const turn = this.#turn;
    const callId = "toolCallId" in update ? update.toolCallId : undefined;
    const mark = markOf(update);
    const isUnmarked = mark.id !== undefined || callId === undefined;
    const started = argument !== undefined && isUnmarked ? turn?.openCallWith(argument) : undefined;
    const caller = callId === undefined ? undefined : this.#marked.get(callId);
    const launchId = mark.launchId ?? caller ?? started ?? mark.id;
    if (callId !== undefined) this.#unmarked = "";
    else if (started !== undefined && mark.launchId === undefined && mark.id === undefined)
      this.#keepUnmarked(update);
    if (turn === undefined || launchId === undefined || launchId === callId) return undefined;
    if (isTooLong(launchId) || isTooLong(callId)) return UNNAMED;
    // The work of a sub-agent's own sub-agents belongs to the same call.
    const id = this.#marked.get(launchId) ?? launchId;
    if (callId !== undefined && this.#marked.size < MARKED_CALLS_MAX) this.#marked.set(callId, id);
    const title = turn.nest(id, update);
    if (title !== undefined) return title;
    // The call that started it has ended: it works in the background.
    const child = `call ${id}`;
    if (!this.#children.has(child))
      this.announce(undefined, { sessionId: child, ...optional({ title: mark.type }) });
    this.update(child, update);
    return this.labelOf(child) ?? UNNAMED;
  }

  #keepUnmarked(update: SessionUpdate): void {
    if (update.sessionUpdate !== "agent_message_chunk" || update.content.type !== "text") return;
    if (this.#unmarked.length < UNMARKED_MAX_CHARS) this.#unmarked += update.content.text;
  }

  /** Begins a turn: shows what the sub-agents did since the last one. */
  begin(turn: AcpTurn): void {
    this.#turn = turn;
    this.#marked.clear();
    this.#unmarked = "";
    for (const child of this.#children.values()) {
      child.isBehind = false;
      if (child.log.isEmpty) continue;
      if (child.isWorking) this.#show(child);
      else this.#finish(child);
    }
  }

  /** The agent writes further: sub-agents that still work do so in the background. */
  passBy(): void {
    for (const child of this.#children.values()) {
      if (child.callId === undefined) continue;
      this.#close(child, IN_BACKGROUND);
      child.isBehind = true;
    }
  }

  /** Ends the turn. `isDropped`: it was stopped, and nothing more of it is shown. */
  end(isDropped: boolean): void {
    for (const child of this.#children.values()) {
      child.isBehind = false;
      if (!child.log.isEmpty) this.#show(child);
      this.#close(child, child.isWorking ? STILL_WORKING : "");
      if (isDropped) child.log = new WorkLog();
    }
    // The call of a sub-agent never ended, so the last text is the agent's answer.
    const content = { type: "text" as const, text: this.#unmarked };
    if (!isDropped && this.#turn?.isSilent)
      this.#turn.update({ sessionUpdate: "agent_message_chunk", content });
    this.#turn = undefined;
  }

  #show(child: Child): void {
    if (this.#turn === undefined || child.callId !== undefined || child.isBehind) return;
    child.calls += 1;
    child.callId = `${child.id}#${child.calls}`;
    const rawInput = { label: labelOf(child), ...(child.role === "" ? {} : { role: child.role }) };
    const call = { toolCallId: child.callId, name: "subagent", title: labelOf(child), rawInput };
    this.#turn.call({ ...call, kind: "think", status: "in_progress" }, true);
  }

  /** `wasWorking`: a failure is news, also if there is no work to show. */
  #finish(child: Child, wasWorking = false): void {
    const { stopReason, error } = child.end;
    child.isBehind = false;
    const isGood = stopReason === undefined || stopReason === null || stopReason === "end_turn";
    if (!child.log.isEmpty || (wasWorking && !isGood)) this.#show(child);
    const { message } = fieldsOf(error);
    const why = typeof message === "string" ? `: ${message}` : "";
    this.#close(child, isGood ? "" : `[It stopped: ${String(stopReason)}${why}]`, isGood);
  }

  #close(child: Child, note: string, isGood = true): void {
    if (this.#turn === undefined || child.callId === undefined) return;
    const text = [child.log.text, note].filter((part) => part !== "").join("\n\n");
    this.#turn.call({
      toolCallId: child.callId,
      status: isGood ? "completed" : "failed",
      content: [{ type: "content", content: { type: "text", text } }],
    });
    child.callId = undefined;
    child.log = new WorkLog();
  }
}
