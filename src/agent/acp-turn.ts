// Owns what becomes of an ACP agent's updates: transcript entries, tool events and live text of one run.
// AT1: the transcript stays valid: an assistant message, then exactly one result for each of its calls, in
//      their order, then the next message. What the agent reports out of order waits for its turn.
// AT2: a message with calls is written as soon as all of them have begun, so that a crash or an abort finds
//      it there; its results follow as they come.
// AT3: what an agent may say in one run is bounded; what is over is left out, and the text says so.
// AT4: after `end` or `drop` no update does anything.
// AT5: thinking and tool calls that an agent wrote as text are in no text, live or written.

import type {
  SessionUpdate,
  ToolCall,
  ToolCallContent,
  ToolCallUpdate,
} from "@agentclientprotocol/sdk/unstable";
import { withoutHidden } from "../core/hidden-text.ts";
import {
  type AssistantMessage,
  type Entry,
  resultIdOf,
  type TextBlock,
  type ThinkingBlock,
  type ToolCallBlock,
  type ToolResultMessage,
  textOf,
  type Usage,
  ZERO_USAGE,
} from "../core/message.ts";
import { type TextDelta, withDelta } from "../core/text-delta.ts";
import type { World } from "../world.ts";
import { HiddenStream } from "./hidden-answer.ts";
import type { ToolEvent } from "./tool-calls.ts";

const TEXT_MAX_CHARS = 1024 * 1024;
const RESULT_MAX_CHARS = 64 * 1024;
const ARGUMENTS_MAX_CHARS = 256 * 1024;
const CALLS_MAX = 1_000;
const TITLE_MAX_CHARS = 300;
const LOCATIONS_MAX = 20;
const NAME = /^[A-Za-z0-9_-]{1,64}$/;
const NO_RESULT = "The agent ended its turn without reporting a result of this call.";
const SETTLED = ["completed", "failed"];

/** The agent's name of things, as its messages carry it. */
export const ACP_API = "acp";

export interface TurnPort {
  readonly runId: string;
  readonly agentId: string;
  readonly world: World;
  /** Durable before it returns; throws if the run was taken away. */
  append(entry: Entry): Promise<Entry>;
  onText(delta: TextDelta): void;
  onTool(event: ToolEvent): void;
}

interface Call {
  readonly block: ToolCallBlock;
  /** `runId:messageId:index`. */
  readonly callId: string;
  readonly name: string;
  title: string;
  args: Record<string, unknown>;
  output: string;
  details: Record<string, unknown>;
  begun: boolean;
  told: boolean;
  settled?: { readonly text: string; readonly isError: boolean };
}

interface Segment {
  readonly id: string;
  readonly blocks: (TextBlock | ThinkingBlock | Call)[];
  readonly calls: Call[];
  readonly stream: HiddenStream;
  /** Characters of its text as the agent wrote it. */
  textLength: number;
  /** Its text as people see it. */
  shown: string;
  chars: number;
  isWritten: boolean;
  /** How many of its results are written. */
  answered: number;
}

const isCall = (block: TextBlock | ThinkingBlock | Call): block is Call => "callId" in block;

function cut(text: string, max: number): string {
  return text.length <= max ? text : `${text.slice(0, max).toWellFormed()}\n[cut: ${text.length} characters]`;
}

/** Arguments as one object; undefined where nothing is told of them. */
function argumentsOf(rawInput: unknown): Record<string, unknown> | undefined {
  if (rawInput === undefined || rawInput === null) return undefined;
  const text = JSON.stringify(rawInput);
  if (text.length > ARGUMENTS_MAX_CHARS) return { input: cut(text, ARGUMENTS_MAX_CHARS) };
  const isPlain = typeof rawInput === "object" && !Array.isArray(rawInput);
  return isPlain ? { ...(rawInput as Record<string, unknown>) } : { input: rawInput };
}

function contentText(content: readonly ToolCallContent[] | null | undefined): string {
  const parts = (content ?? []).map((part) => {
    switch (part.type) {
      case "content":
        return part.content.type === "text" ? part.content.text : `[${part.content.type}]`;
      case "diff":
        return `${part.path}:\n${part.newText}`;
      case "terminal":
        return "[terminal]";
      default:
        return "";
    }
  });
  return parts.filter((part) => part !== "").join("\n");
}

function outputOf(update: ToolCallUpdate | ToolCall): string {
  const text = contentText(update.content);
  if (text !== "" || update.rawOutput === undefined || update.rawOutput === null) return text;
  return typeof update.rawOutput === "string" ? update.rawOutput : JSON.stringify(update.rawOutput);
}

/** Follows one prompt; made for each. */
export class AcpTurn {
  readonly #port: TurnPort;
  /** The last one is being written; those before it wait for results or for their turn. */
  readonly #segments: Segment[];
  readonly #calls = new Map<string, Call>();
  readonly #failed = Promise.withResolvers<never>();
  #lastText = "";
  #over = false;
  #busy = false;
  #working: Promise<void> = Promise.resolve();

  constructor(port: TurnPort) {
    this.#port = port;
    this.#segments = [this.#newSegment()];
    this.#failed.promise.catch(() => {});
  }

  /** Rejects when an entry could not be written: the run is not this process's any more. */
  get failed(): Promise<never> {
    return this.#failed.promise;
  }

  update(update: SessionUpdate): void {
    if (this.#over) return;
    switch (update.sessionUpdate) {
      case "agent_message_chunk":
        if (update.content.type === "text") this.#write("text", update.content.text);
        break;
      case "agent_thought_chunk":
        if (update.content.type === "text") this.#write("thinking", update.content.text);
        break;
      case "tool_call":
      case "tool_call_update":
        this.call(update);
        break;
      default:
        // Plans, modes and commands are the agent's own affair.
        break;
    }
  }

  /** A call, as far as it is known: its first report or a later one. `begins`: it is about to be run. */
  call(update: ToolCall | ToolCallUpdate, begins = false): void {
    if (this.#over) return;
    const call = this.#calls.get(update.toolCallId) ?? this.#newCall(update);
    if (call === undefined || call.settled !== undefined) return;
    const { status } = update;
    const args = argumentsOf(update.rawInput);
    if (args !== undefined && Object.keys(args).length > 0 && !call.told) call.args = args;
    if (update.title) call.title = update.title.slice(0, TITLE_MAX_CHARS).toWellFormed();
    const output = outputOf(update);
    if (output !== "") call.output = cut(output, RESULT_MAX_CHARS);
    if (update.kind) call.details = { ...call.details, kind: update.kind };
    if (update.locations?.length) {
      const paths = update.locations.slice(0, LOCATIONS_MAX).map(({ path }) => path);
      call.details = { ...call.details, paths };
    }
    if (begins || (status != null && status !== "pending")) this.#begin(call);
    if (status != null && SETTLED.includes(status)) this.#settle(call, call.output, status === "failed");
    this.#work();
  }

  #newSegment(): Segment {
    const id = this.#port.world.ids.orderedUuid();
    const stream = new HiddenStream();
    const counts = { textLength: 0, chars: 0, answered: 0 };
    return { id, blocks: [], calls: [], stream, shown: "", ...counts, isWritten: false };
  }

  get #current(): Segment {
    const last = this.#segments.at(-1);
    if (last === undefined) throw new Error("a turn without a segment");
    return last;
  }

  #newCall(update: ToolCall | ToolCallUpdate): Call | undefined {
    if (this.#calls.size >= CALLS_MAX) return undefined;
    const done = this.#current.calls.length > 0 && this.#current.calls.every((call) => call.settled);
    if (this.#current.isWritten || done) this.#segments.push(this.#newSegment());
    const segment = this.#current;
    const wanted = update.name ?? update.kind ?? "";
    const name = NAME.test(wanted) ? wanted : "tool";
    const block: ToolCallBlock = {
      type: "toolCall",
      id: update.toolCallId.slice(0, 200).toWellFormed() || `call_${segment.calls.length}`,
      name,
      arguments: {},
    };
    const callId = `${this.#port.runId}:${segment.id}:${segment.calls.length}`;
    const call: Call = {
      ...{ block, callId, name, title: name, args: {} },
      ...{ output: "", details: {}, begun: false, told: false },
    };
    segment.blocks.push(call);
    segment.calls.push(call);
    this.#calls.set(update.toolCallId, call);
    return call;
  }

  #write(type: "text" | "thinking", text: string): void {
    if (text === "") return;
    if (this.#current.calls.length > 0) this.#segments.push(this.#newSegment());
    const segment = this.#current;
    const room = TEXT_MAX_CHARS - segment.chars;
    if (room <= 0) return;
    const piece = text.length <= room ? text : `${text.slice(0, room).toWellFormed()}\n[cut]`;
    segment.chars += text.length;
    const last = segment.blocks.at(-1);
    const block: TextBlock | ThinkingBlock =
      type === "text" ? { type, text: piece } : { type, thinking: piece };
    const isNew = last === undefined || isCall(last) || last.type !== type;
    if (isNew) segment.blocks.push(block);
    else segment.blocks[segment.blocks.length - 1] = joined(last, piece);
    if (type === "text") this.#tell(segment, isNew ? `\n${piece}` : piece);
    this.#work();
  }

  /** Tells new text of a segment: a block, or more of one. */
  #tell(segment: Segment, written: string): void {
    const text = segment.textLength === 0 ? written.replace(/^\n/, "") : written;
    const shown = segment.stream.next({ offset: segment.textLength, text });
    segment.textLength += text.length;
    if (shown === undefined) return;
    segment.shown = withDelta(segment.shown, shown) ?? shown.text;
    this.#port.onText(shown);
  }

  #begin(call: Call): void {
    call.begun = true;
    if (call.told) return;
    call.told = true;
    const { callId, name } = call;
    const shown = Object.keys(call.args).length === 0 ? { title: call.title } : call.args;
    this.#port.onTool({ phase: "start", callId, name, arguments: shown, atMs: this.#port.world.clock.now() });
  }

  #settle(call: Call, text: string, isError: boolean): void {
    this.#begin(call);
    call.settled = { text, isError };
    const { callId, name } = call;
    this.#port.onTool({
      phase: "end",
      callId,
      name,
      isError,
      result: text,
      atMs: this.#port.world.clock.now(),
    });
  }

  /** Writes what can be written, one entry after the other, in one line. */
  #work(): void {
    if (this.#busy) return;
    this.#busy = true;
    this.#working = this.#drain();
  }

  async #drain(): Promise<void> {
    try {
      for (let entry = this.#next(); entry !== undefined; entry = this.#next()) {
        await this.#port.append(entry);
        const text = this.#over ? "" : this.#current.shown;
        if (text !== "") this.#port.onText({ offset: 0, text });
      }
    } catch (error) {
      this.#over = true;
      this.#failed.reject(error);
    }
    // In the same step as the last look: nothing can be added in between and be missed.
    this.#busy = false;
  }

  #next(): Entry | undefined {
    const [head] = this.#segments;
    if (head === undefined) return undefined;
    const isClosed = this.#segments.length > 1;
    if (!head.isWritten) {
      if (head.calls.length === 0) {
        if (isClosed) this.#segments.shift();
        return isClosed ? this.#next() : undefined;
      }
      if (!isClosed && !head.calls.every((call) => call.begun)) return undefined;
      head.isWritten = true;
      return this.#message(head, "toolUse", ZERO_USAGE);
    }
    const call = head.calls[head.answered];
    if (call !== undefined) {
      if (call.settled === undefined) return undefined;
      const id = resultIdOf({ messageId: head.id, index: head.answered });
      head.answered += 1;
      return this.#result(id, call, call.settled);
    }
    if (!isClosed) return undefined;
    this.#segments.shift();
    return this.#next();
  }

  #message(segment: Segment, stopReason: string, usage: Usage, errorMessage?: string): AssistantMessage {
    const { world, agentId } = this.#port;
    const content = segment.blocks.map((block) =>
      isCall(block)
        ? {
            ...block.block,
            arguments: Object.keys(block.args).length === 0 ? { title: block.title } : block.args,
          }
        : block,
    );
    const message: AssistantMessage = {
      ...{ id: segment.id, role: "assistant", content: withoutHidden(content), timestamp: world.clock.now() },
      ...{ api: ACP_API, provider: ACP_API, model: agentId, usage, stopReason },
      ...(errorMessage === undefined ? {} : { errorMessage }),
    };
    const text = textOf(message);
    if (text.trim() !== "") this.#lastText = text;
    return message;
  }

  #result(id: string, call: Call, settled: { text: string; isError: boolean }): ToolResultMessage {
    const { world } = this.#port;
    return {
      id,
      role: "toolResult",
      toolCallId: call.block.id,
      toolName: call.name,
      content: [{ type: "text", text: settled.text }],
      isError: settled.isError,
      details: { title: call.title, ...call.details },
      timestamp: world.clock.now(),
    };
  }

  /** Nothing more is written: the run was stopped, and what is open is answered where it ends. */
  drop(): void {
    this.#over = true;
    this.#segments.length = 0;
  }

  /**
   * The agent's turn is over: open calls get their result, everything is on disk, and the last message is
   * handed out, which the caller appends. Undefined where the agent wrote nothing behind its last call.
   */
  async end(stopReason: string, usage: Usage, errorMessage?: string): Promise<AssistantMessage | undefined> {
    for (const call of this.#calls.values()) {
      if (call.settled === undefined) this.#settle(call, call.output || NO_RESULT, true);
    }
    this.#over = true;
    if (this.#current.calls.length > 0) this.#segments.push(this.#newSegment());
    this.#work();
    await Promise.race([this.failed, this.#working]);
    const last = this.#current;
    if (last.blocks.length === 0) return undefined;
    return this.#message(last, stopReason, usage, errorMessage);
  }

  /** The last text that the agent wrote in this turn, for an end without one. */
  lastText(): string {
    return this.#lastText;
  }
}

function joined(block: TextBlock | ThinkingBlock, more: string): TextBlock | ThinkingBlock {
  return block.type === "text"
    ? { ...block, text: block.text + more }
    : { ...block, thinking: block.thinking + more };
}
