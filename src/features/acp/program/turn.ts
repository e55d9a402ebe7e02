// Turns an ACP agent's updates into transcript entries, tool events and live text of one run. A message with
// calls is written as soon as all of them have begun, so that it is stored before a crash or an abort; each
// result is written when it arrives. An agent's output in one run is limited; the text says if something was
// left out. Updates after `end` or `drop` are ignored.
// Live text and tool events wait while an entry is being stored. So a listener gets the whole text of a
// message, then the starts of its calls, and the text of the next message only after both.
// AT1: the transcript stays valid: an assistant message, then exactly one result for each of its calls, in
//      order, then the next message. Updates out of order wait.
// AT5: thinking and tool calls that an agent wrote as text are removed from live and stored text.

import type {
  SessionUpdate,
  ToolCall,
  ToolCallContent,
  ToolCallUpdate,
} from "@agentclientprotocol/sdk/unstable";
import type { ToolEvent } from "../../../agent/loop/tool-calls.ts";
import { HiddenStream } from "../../../agent/model/hidden-answer.ts";
import { optional } from "../../../core/optional.ts";
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
} from "../../../core/shapes/message.ts";
import { head } from "../../../core/text/cut.ts";
import { withoutHidden } from "../../../core/text/hidden-text.ts";
import { LongText, type TextDelta } from "../../../core/text/text-delta.ts";
import type { World } from "../../../world.ts";
import { WorkLog } from "./work-log.ts";

const TEXT_MAX_CHARS = 1024 * 1024;
const RESULT_MAX_CHARS = 64 * 1024;
const ARGUMENTS_MAX_CHARS = 256 * 1024;
const CALLS_MAX = 1_000;
const TITLE_MAX_CHARS = 300;
const LOCATIONS_MAX = 20;
const NAME = /^[A-Za-z0-9_-]{1,64}$/;
const NO_RESULT = "The agent ended its turn without reporting a result of this call.";
const SETTLED = ["completed", "failed"];

/** API name in the agent's messages. */
const ACP_API = "acp";

export interface TurnPort {
  readonly runId: string;
  readonly agentId: string;
  readonly world: World;
  /** Stores an entry before it returns. Throws if another process has taken over the run. */
  append(entry: Entry): Promise<Entry>;
  onText(delta: TextDelta): void;
  onThinking(delta: TextDelta): void;
  onTool(event: ToolEvent): void;
}

interface Call {
  readonly block: ToolCallBlock;
  readonly segment: Segment;
  /** Has the form `runId:messageId:index`. */
  readonly callId: string;
  readonly name: string;
  title: string;
  args: Record<string, unknown>;
  output: string;
  details: Record<string, unknown>;
  begun: boolean;
  told: boolean;
  /** The work of the sub-agent that it started. */
  work?: WorkLog;
  settled?: { readonly text: string; readonly isError: boolean };
}

interface Segment {
  readonly id: string;
  readonly blocks: (TextBlock | ThinkingBlock | Call)[];
  readonly calls: Call[];
  readonly stream: HiddenStream;
  /** Length of the segment's text as the agent wrote it. */
  textLength: number;
  /** The visible text of the segment. */
  readonly shown: LongText;
  /** The thinking of the segment, as streamed. */
  readonly thought: LongText;
  /** Tool events that are not published yet. */
  readonly events: ToolEvent[];
  /** The text and the thinking have to be published from the beginning. */
  isHeld: boolean;
  /** A tool event was published, so the text is complete and is not published again. */
  isTold: boolean;
  chars: number;
  isWritten: boolean;
  /** Number of results that were written. */
  answered: number;
}

const isCall = (block: TextBlock | ThinkingBlock | Call): block is Call => "callId" in block;

function cut(text: string, max: number): string {
  return text.length <= max ? text : `${head(text, max)}\n[too large: cut after ${max} characters]`;
}

/** Returns the arguments as one object, or undefined if the agent reported none. */
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

/** Records the updates of one prompt. */
export class AcpTurn {
  readonly #port: TurnPort;
  /**
   * The last segment is still growing. Earlier segments wait for results, or for their turn to be written.
   */
  readonly #segments: Segment[];
  readonly #calls = new Map<string, Call>();
  readonly #failed = Promise.withResolvers<never>();
  #lastText = "";
  #over = false;
  #busy = false;
  #storing = false;
  #working: Promise<void> = Promise.resolve();

  constructor(port: TurnPort) {
    this.#port = port;
    this.#segments = [this.#newSegment()];
    this.#failed.promise.catch(() => {});
  }

  /** Rejects if an entry could not be written because another process has taken over the run. */
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
        // Plans, modes and commands are not recorded in the transcript.
        break;
    }
  }

  /** The visible text since the last call. */
  get shown(): string {
    return this.#current.calls.length > 0 ? "" : this.#current.shown.text.trim();
  }

  /** Returns whether no visible text followed the last call. */
  get isSilent(): boolean {
    return this.shown === "";
  }

  /** Handles the first or a later report of a tool call. `begins`: the call is about to run. */
  call(update: ToolCall | ToolCallUpdate, begins = false): void {
    if (this.#over) return;
    const call = this.#calls.get(update.toolCallId) ?? this.#newCall(update);
    if (call === undefined || call.settled !== undefined) return;
    const { status } = update;
    const args = argumentsOf(update.rawInput);
    if (args !== undefined && Object.keys(args).length > 0 && !call.told) call.args = args;
    if (update.title) call.title = head(update.title, TITLE_MAX_CHARS);
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

  /** Returns the last open call that has an argument of this name. */
  openCallWith(argument: string): string | undefined {
    const open = [...this.#calls].filter(([, { args, settled }]) => !settled && argument in args);
    return open.at(-1)?.[0];
  }

  /** Adds work of a sub-agent to the call that started it. Returns the title of that call if it is open. */
  nest(toolCallId: string, update: SessionUpdate): string | undefined {
    const call = this.#calls.get(toolCallId);
    if (call === undefined || call.settled !== undefined) return undefined;
    call.work ??= new WorkLog();
    call.work.add(update);
    this.#begin(call);
    this.#work();
    return call.title;
  }

  #newSegment(): Segment {
    const id = this.#port.world.ids.orderedUuid();
    const stream = new HiddenStream();
    const texts = { stream, shown: new LongText(), thought: new LongText() };
    const counts = { textLength: 0, chars: 0, answered: 0 };
    const states = { events: [], isHeld: false, isTold: false, isWritten: false };
    return { id, blocks: [], calls: [], ...texts, ...counts, ...states };
  }

  get #current(): Segment {
    const last = this.#segments.at(-1);
    if (last === undefined) throw new Error("the turn has no segment");
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
      id: head(update.toolCallId, 200) || `call_${segment.calls.length}`,
      name,
      arguments: {},
    };
    const callId = `${this.#port.runId}:${segment.id}:${segment.calls.length}`;
    const call: Call = {
      block,
      segment,
      callId,
      name,
      title: name,
      args: {},
      output: "",
      details: {},
      begun: false,
      told: false,
    };
    segment.blocks.push(call);
    segment.calls.push(call);
    this.#calls.set(update.toolCallId, call);
    return call;
  }

  #write(type: "text" | "thinking", text: string): void {
    if (text === "") return;
    if (this.#current.calls.length > 0) {
      // The message is stored with these calls, so their starts must not come after the next text.
      for (const call of this.#current.calls) this.#begin(call);
      this.#segments.push(this.#newSegment());
      this.#work();
    }
    const segment = this.#current;
    const room = TEXT_MAX_CHARS - segment.chars;
    if (room <= 0) return;
    const piece = text.length <= room ? text : `${head(text, room)}\n[cut]`;
    segment.chars += text.length;
    const last = segment.blocks.at(-1);
    const block: TextBlock | ThinkingBlock =
      type === "text" ? { type, text: piece } : { type, thinking: piece };
    const isNew = last === undefined || isCall(last) || last.type !== type;
    if (isNew) segment.blocks.push(block);
    else {
      const longer =
        last.type === "text"
          ? { ...last, text: last.text + piece }
          : { ...last, thinking: last.thinking + piece };
      segment.blocks[segment.blocks.length - 1] = longer;
    }
    const written = isNew ? `\n${piece}` : piece;
    if (type === "text") this.#tell(segment, written);
    else this.#think(segment, written);
  }

  /** Publishes new text of a segment, or keeps it until the entry that is being stored is stored. */
  #tell(segment: Segment, written: string): void {
    const text = segment.textLength === 0 ? written.replace(/^\n/, "") : written;
    const shown = segment.stream.next({ offset: segment.textLength, text });
    segment.textLength += text.length;
    if (shown === undefined) return;
    segment.shown.change(shown);
    segment.isHeld ||= this.#storing;
    if (!segment.isHeld) this.#port.onText(shown);
  }

  #think(segment: Segment, written: string): void {
    const offset = segment.thought.length;
    const text = offset === 0 ? written.replace(/^\n/, "") : written;
    segment.thought.append(text);
    segment.isHeld ||= this.#storing;
    if (!segment.isHeld) this.#port.onThinking({ offset, text });
  }

  /** Publishes what was held: for each message its text, then its tool events. */
  #release(): void {
    if (this.#storing) return;
    for (const segment of this.#segments) {
      if (segment.isHeld) this.#tellAgain(segment);
      if (segment.events.length === 0) continue;
      if (!segment.isTold) this.#tellRest(segment);
      segment.isTold = true;
      for (const event of segment.events.splice(0)) this.#port.onTool(event);
    }
  }

  #tellAgain(segment: Segment): void {
    segment.isHeld = false;
    const { shown, thought } = segment;
    if (thought.length > 0) this.#port.onThinking({ offset: 0, text: thought.text });
    if (shown.length > 0) this.#port.onText({ offset: 0, text: shown.text });
  }

  /** Publishes the end of a text, which was kept back because it could have been the beginning of a tag. */
  #tellRest({ blocks, shown }: Segment): void {
    const content = withoutHidden(blocks.flatMap((block) => (isCall(block) ? [] : [block])));
    const whole = content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n");
    if (whole === "" || shown.is(whole)) return;
    const offset = shown.begins(whole) ? shown.length : 0;
    const rest = { offset, text: whole.slice(offset) };
    shown.change(rest);
    this.#port.onText(rest);
  }

  #begin(call: Call): void {
    call.begun = true;
    if (call.told) return;
    call.told = true;
    const { callId, name } = call;
    const shown = Object.keys(call.args).length === 0 ? { title: call.title } : call.args;
    const atMs = this.#port.world.clock.now();
    call.segment.events.push({ phase: "start", callId, name, arguments: shown, atMs });
    this.#release();
  }

  #settle(call: Call, text: string, isError: boolean): void {
    this.#begin(call);
    const work = call.work?.text ?? "";
    const result = work.endsWith(text) ? work : [work, text].filter((part) => part !== "").join("\n\n");
    call.settled = { text: result, isError };
    const { callId, name } = call;
    const atMs = this.#port.world.clock.now();
    call.segment.events.push({ phase: "end", callId, name, isError, result, atMs });
    this.#release();
  }

  /** Writes the entries that are ready, one after the other. */
  #work(): void {
    if (this.#busy) return;
    this.#busy = true;
    this.#working = this.#drain();
  }

  async #drain(): Promise<void> {
    try {
      for (let entry = this.#next(); entry !== undefined; entry = this.#next()) {
        this.#storing = true;
        await this.#port.append(entry);
        this.#storing = false;
        // The live text begins again with each stored entry.
        for (const segment of this.#segments) segment.isHeld ||= !segment.isTold;
        this.#release();
      }
    } catch (error) {
      this.#over = true;
      this.#failed.reject(error);
    }
    // Cleared in the same synchronous step as the last check, so no segment can be added in between and be
    // missed.
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
      id: segment.id,
      role: "assistant",
      content: withoutHidden(content),
      timestamp: world.clock.now(),
      api: ACP_API,
      provider: ACP_API,
      model: agentId,
      usage,
      stopReason,
      ...optional({ errorMessage }),
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

  /**
   * Stops writing, because the run was stopped. The open calls get their results when the run's end is
   * stored.
   */
  drop(): void {
    this.#over = true;
    this.#segments.length = 0;
  }

  /**
   * Ends the turn: open calls get a result and everything is stored. Returns the last message, which the
   * caller appends, or undefined if the agent wrote nothing after its last call.
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

  /** Returns the last text of this turn, for a turn that ends without text. */
  lastText(): string {
    return this.#lastText;
  }
}
