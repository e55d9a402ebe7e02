// Follows the tool calls that a program reports, those of its sub-agents included, and tells when each begins
// and ends. A report may come in parts, and between two prompts: the next prompt's run is then told.

import type { SessionUpdate } from "@agentclientprotocol/sdk/unstable";
import { remember } from "../../../core/bounded.ts";
import { fieldsOf, textOf } from "../../../core/json.ts";
import type { ReportedCall } from "../../../core/rules/labels/reported.ts";
import { isTooLong } from "./work-log.ts";

/** Maximum number of open calls, and of events that wait for a prompt. The oldest call is forgotten. */
const CALLS_MAX = 1_000;
const PATHS_MAX = 20;

export interface ReportEvent {
  readonly id: string;
  readonly call: ReportedCall;
  readonly phase: "begins" | "ends";
  /** Time before which the call has written nothing, in ms since 1970. */
  readonly since: number;
}

type State = { -readonly [K in keyof ReportedCall]: ReportedCall[K] } & {
  readonly since: number;
  hasBegun: boolean;
};

/** Returns the names that a report gives to its tool. */
function namesIn(name: string | null | undefined, meta: unknown): string[] {
  const { toolName, claudeCode } = fieldsOf(meta);
  return [name, toolName, fieldsOf(claudeCode).toolName].flatMap((one) => textOf(one) ?? []);
}

export class Reports {
  readonly #now: () => number;
  readonly #calls = new Map<string, State>();
  #waiting: ReportEvent[] = [];
  #promptAt: number;
  #onCall: ((event: ReportEvent) => void) | undefined;

  constructor(now: () => number) {
    this.#now = now;
    this.#promptAt = now();
  }

  begin(onCall: (event: ReportEvent) => void): void {
    this.#promptAt = this.#now();
    this.#onCall = onCall;
    for (const event of this.#waiting.splice(0)) onCall(event);
  }

  add(sessionId: string, update: SessionUpdate): void {
    if (update.sessionUpdate !== "tool_call" && update.sessionUpdate !== "tool_call_update") return;
    if (isTooLong(update.toolCallId)) return;
    const id = `${sessionId} ${update.toolCallId}`;
    const { status, kind, title, rawInput, locations, content, name, _meta } = update;
    const isOver = status === "completed" || status === "failed";
    const state = remember(this.#calls, id, CALLS_MAX, () => ({
      ...{ names: [], kind: "", title: "", args: {}, paths: [], created: [] },
      ...{ since: isOver ? this.#promptAt : this.#now(), hasBegun: false },
    }));
    state.names = [...new Set([...state.names, ...namesIn(name, _meta)])];
    state.kind = kind ?? state.kind;
    state.title = title ?? state.title;
    if (Object.keys(fieldsOf(rawInput)).length > 0) state.args = fieldsOf(rawInput);
    const diffs = (content ?? []).flatMap((part) => (part.type === "diff" ? [part] : []));
    const named = [...(locations ?? []), ...diffs].map(({ path }) => path);
    state.paths = [...new Set([...state.paths, ...named])].slice(0, PATHS_MAX);
    const written = diffs.filter(({ oldText }) => oldText == null).map(({ path }) => path);
    state.created = [...new Set([...state.created, ...written])].slice(0, PATHS_MAX);
    if (isOver) this.#end(id, state);
    else if (status === "in_progress" && !state.hasBegun) this.#tell(id, state, "begins");
  }

  /** Forgets a call that was not permitted. */
  deny(sessionId: string, toolCallId: string): void {
    this.#calls.delete(`${sessionId} ${toolCallId}`);
  }

  /** Ends the prompt. A call that the program never reported as ended may have read everything. */
  end(): void {
    for (const [id, state] of this.#calls) this.#end(id, state);
    this.#onCall = undefined;
  }

  #end(id: string, state: State): void {
    this.#calls.delete(id);
    this.#tell(id, state, "ends");
  }

  #tell(id: string, state: State, phase: ReportEvent["phase"]): void {
    state.hasBegun = true;
    const event = { id, call: { ...state }, phase, since: state.since };
    if (this.#onCall !== undefined) this.#onCall(event);
    else if (this.#waiting.length < CALLS_MAX) this.#waiting.push(event);
  }
}
