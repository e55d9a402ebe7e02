// Turns a window of messages into items to draw: days, texts, the work between two texts, ends of runs.
// IT1: a tool result is shown with its call, or alone if the call is not in the window.
// IT2: if the parts of an item did not change, the item stays the same object, so it is not drawn again.
// IT3: the texts and the work of one run share one header.

import { fieldsOf } from "../../../src/core/json.ts";
import { isSilent } from "../../../src/core/rules/turn-rules.ts";
import type { Labels } from "../../../src/core/shapes/labels.ts";
import { textOf } from "../../../src/core/shapes/message.ts";
import type { Message, Run, Thread } from "./thread.ts";
import { parsed, resultText, type ToolCall } from "./work/calls.ts";

export type ToolResult = Extract<Message, { role: "toolResult" }>;

/** A step of an agent's work: a thought or a tool call. `messageId`: the message that contains the step. */
export type Step = { readonly id: string; readonly messageId: string } & (
  | { readonly kind: "thought"; readonly text: string }
  | {
      readonly kind: "call";
      /** Undefined if the call is in a part of the transcript that is not loaded. */
      readonly call: ToolCall | undefined;
      readonly result: ToolResult | undefined;
      readonly calledAt: number;
      /** The labels that the result brought into the session. */
      readonly labels: Labels | undefined;
    }
);

/** A part of a transcript that is drawn below one header. */
interface Part {
  readonly id: string;
  /** Of a list of steps, the message that contains the first one. */
  readonly message: Message;
  readonly run: Run | undefined;
  readonly headed: boolean;
}

export interface TextItem extends Part {
  readonly kind: "message";
  /** The part of the message's text that this item shows. */
  readonly blocks: Message["content"];
  /** True if the item is the last part of its message. */
  readonly last: boolean;
  /** The labels that the message brought into the session. */
  readonly labels: Labels | undefined;
}

export interface WorkItem extends Part {
  readonly kind: "work";
  readonly steps: readonly Step[];
}

export type Item =
  /** `compaction`: for the model, a summary replaces everything above this item. */
  | { readonly kind: "day" | "compaction"; readonly id: string; readonly atMs: number }
  | TextItem
  | WorkItem
  /** The end of a run. `silent`: the agent chose not to reply. */
  | { readonly kind: "end"; readonly id: string; readonly run: Run; readonly silent: boolean }
  /** Turns that brought nothing new (see `#isQuiet`), and that the agent chose not to reply to. */
  | { readonly kind: "quiet"; readonly id: string; readonly turns: number; readonly items: readonly Item[] };

/** Maps calls to results. A result belongs to the last call with its id before it. */
function pairResults(messages: readonly Message[]): Map<ToolCall, ToolResult> {
  const open = new Map<string, ToolCall>();
  const pairs = new Map<ToolCall, ToolResult>();
  for (const message of messages) {
    if (message.role === "toolResult") {
      const call = open.get(message.toolCallId);
      open.delete(message.toolCallId);
      if (call !== undefined) pairs.set(call, message);
    } else if (message.role === "assistant") {
      for (const block of message.content) if (block.type === "toolCall") open.set(block.id, block);
    }
  }
  return pairs;
}

/** Returns whether the end of a run is shown: not the success of one that only added a message. */
function hasEnd(run: Run | undefined): run is Run {
  return run?.endedAt !== undefined && (run.kind === "turn" || run.state !== "ok");
}

/** Returns the answers that calls to send a message got. */
function answersIn(results: Iterable<ToolResult>): Set<unknown> {
  const sends = [...results].filter(({ toolName }) => toolName === "sessions_send");
  return new Set(sends.map((result) => fieldsOf(parsed(resultText(result))).reply));
}

class Items {
  readonly list: Item[] = [];
  readonly #thread: Thread;
  readonly #results: Map<ToolCall, ToolResult>;
  #answers: Set<unknown> | undefined;
  /** Runs whose agent chose not to reply. */
  readonly #silent = new Set<Run>();
  /** The run whose header was added last. Further texts and steps of this run need no header. */
  #speaker: string | undefined;

  constructor(thread: Thread) {
    this.#thread = thread;
    this.#results = pairResults(thread.messages);
    const paired = new Set<Message>(this.#results.values());
    const lastIds = new Map(thread.messages.map(({ runId, id }) => [runId, id]));
    let day = "";
    for (const message of thread.messages) {
      const { id, timestamp, runId } = message;
      const date = new Date(timestamp).toDateString();
      const compactedAt = thread.compactions?.[id];
      if (!paired.has(message)) {
        if (date !== day) this.#mark("day", id, timestamp);
        if (compactedAt !== undefined) this.#mark("compaction", id, compactedAt);
        day = date;
        this.#add(message);
      }
      if (runId !== undefined && lastIds.get(runId) === id) this.#end(runId);
    }
  }

  #mark(kind: "day" | "compaction", messageId: string, atMs: number): void {
    this.#speaker = undefined;
    this.list.push({ kind, id: `${kind} ${messageId}`, atMs });
  }

  #end(runId: string): void {
    const run = this.#thread.runs[runId];
    if (!hasEnd(run)) return;
    this.#speaker = undefined;
    const silent = this.#silent.has(run);
    this.list.push({ kind: "end", id: `end ${runId}`, run, silent });
    if (silent && run.state === "ok") this.#fold(run);
  }

  /**
   * Returns true for the message of a turn that neither a person nor another agent requested, and for an
   * answer that its call shows already.
   */
  #isQuiet({ message, run }: TextItem): boolean {
    const kind = message.role === "user" ? message.provenance?.kind : undefined;
    if (kind !== "inter_session") return kind !== undefined;
    if (run?.flow?.step !== "reply") return false;
    this.#answers ??= answersIn(this.#results.values());
    return this.#answers.has(textOf(message));
  }

  /** Adds the turn that has just ended to the folded turns before it, if it is a quiet one. */
  #fold(run: Run): void {
    const from = this.list.findLastIndex(({ kind }) => kind === "message");
    const first = this.list[from];
    if (first?.kind !== "message" || !this.#isQuiet(first)) return;
    if (this.list.slice(from).some((item) => !("run" in item) || item.run !== run)) return;
    const items = this.list.splice(from);
    const before = this.list.at(-1);
    if (before?.kind !== "quiet") this.list.push({ kind: "quiet", id: `quiet ${first.id}`, turns: 1, items });
    else this.#replaceLast({ ...before, turns: before.turns + 1, items: [...before.items, ...items] });
  }

  #replaceLast(item: Item): void {
    this.list[this.list.length - 1] = item;
  }

  #add(message: Message): void {
    if (message.role === "toolResult")
      this.#step(message, this.#makeCall(message.id, message, undefined, message));
    else if (message.role === "assistant") this.#answer(message);
    else this.#text(message, message.content, true);
  }

  /** Returns what items of a message share. Has a header if a person wrote it, or if its run has none. */
  #begin(id: string, message: Message): Part {
    const { runId, role } = message;
    const headed = role === "user" || runId === undefined || runId !== this.#speaker;
    this.#speaker = role === "user" ? undefined : runId;
    return { id, message, run: this.#thread.runs[runId ?? ""], headed };
  }

  #text(message: Message, blocks: Message["content"], last: boolean, part = 0): void {
    const id = part === 0 ? message.id : `${message.id}:${part}`;
    const labels = this.#thread.labels?.[message.id];
    this.list.push({ kind: "message", ...this.#begin(id, message), blocks, last, labels });
  }

  #step(message: Message, step: Step): void {
    const last = this.list.at(-1);
    if (last?.kind === "work" && last.message.runId === message.runId)
      this.#replaceLast({ ...last, steps: [...last.steps, step] });
    else this.list.push({ kind: "work", ...this.#begin(`work ${step.id}`, message), steps: [step] });
  }

  #makeCall(id: string, message: Message, call: ToolCall | undefined, result: ToolResult | undefined): Step {
    const labels = this.#thread.labels?.[result?.id ?? ""];
    return { kind: "call", id, messageId: message.id, call, result, calledAt: message.timestamp, labels };
  }

  /** Adds the items of an agent's message: its texts, and the steps of the agent's work. */
  #answer(message: Extract<Message, { role: "assistant" }> & { runId?: string }): void {
    const { id: messageId, runId, content } = message;
    const run = this.#thread.runs[runId ?? ""];
    let texts = 0;
    content.forEach((block, at) => {
      const id = `${messageId}:${at}`;
      if (block.type === "toolCall")
        this.#step(message, this.#makeCall(id, message, block, this.#results.get(block)));
      else if (block.type === "thinking") {
        const text = block.thinking;
        if (text.trim() !== "") this.#step(message, { kind: "thought", id, messageId, text });
      } else if (block.text.trim() !== "") {
        if (hasEnd(run) && isSilent(block.text)) {
          this.#silent.add(run);
          return;
        }
        const last = content.slice(at + 1).every(({ type }) => type !== "text");
        this.#text(message, [block], last, texts);
        texts += 1;
      }
    });
    if (message.errorMessage !== undefined && texts === 0) this.#text(message, [], true);
  }
}

/** Compares values with all that is in them. Messages and runs that did not change are the same objects. */
function isSame(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  const names = Object.keys(a);
  if (names.length !== Object.keys(b).length) return false;
  return names.every((name) => isSame(Reflect.get(a, name), Reflect.get(b, name)));
}

/** `before`: the previous items. Objects and ids of unchanged ones are reused. */
export function itemsOf(thread: Thread, before: readonly Item[] = []): Item[] {
  const all = before.flatMap((item) => (item.kind === "quiet" ? [item, ...item.items] : item));
  const known = new Map(all.map((item) => [item.id, item]));
  const works = new Map(
    all.flatMap((item) => (item.kind === "work" ? item.steps.map(({ id }) => [id, item.id] as const) : [])),
  );
  const adapt = (fresh: Item): Item => {
    if (fresh.kind === "quiet") return { ...fresh, items: fresh.items.map(reuseItem) };
    if (fresh.kind !== "work") return fresh;
    // If steps were added to an item, at either end, the item keeps its id, so that rows which the reader
    // opened stay open.
    return { ...fresh, id: fresh.steps.map(({ id }) => works.get(id)).find(Boolean) ?? fresh.id };
  };
  const reuseItem = (fresh: Item): Item => {
    const item = adapt(fresh);
    const old = known.get(item.id);
    return old !== undefined && isSame(old, item) ? old : item;
  };
  return new Items(thread).list.map(reuseItem);
}
