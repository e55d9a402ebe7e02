// Turns a window of messages into items to draw: days, texts, the work between two texts, ends of runs.
// IT1: a tool result is shown with its call, or alone if the call is not in the window.
// IT2: if the parts of an item did not change, the item stays the same object, so it is not drawn again.
// IT3: the texts and the work of one run share one header.

import { isSilent } from "../../../src/core/rules/turn-rules.ts";
import type { Labels } from "../../../src/core/shapes/labels.ts";
import type { Message, Run, Thread } from "./thread.ts";
import type { ToolCall } from "./work/calls.ts";

export type ToolResult = Extract<Message, { role: "toolResult" }>;

/** A step of an agent's work: a thought or a tool call. `messageId`: the message that contains the step. */
export type Step = { readonly id: string; readonly messageId: string; readonly runId: string | undefined } & (
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

export type TextItem = {
  readonly kind: "message";
  readonly id: string;
  readonly message: Message;
  readonly run: Run | undefined;
  /** The part of the message's text that this item shows. */
  readonly blocks: Message["content"];
  readonly headed: boolean;
  /** True if the item is the last part of its message. */
  readonly last: boolean;
  /** The labels that the message brought into the session. */
  readonly labels: Labels | undefined;
};

export type Item =
  /** `compaction`: for the model, a summary replaces everything above this item. */
  | { readonly kind: "day" | "compaction"; readonly id: string; readonly atMs: number }
  | TextItem
  | {
      readonly kind: "work";
      readonly id: string;
      readonly steps: readonly Step[];
      /** The message that contains the first step. */
      readonly message: Message;
      readonly run: Run | undefined;
      readonly headed: boolean;
    }
  /** The end of a run. `silent`: the agent chose not to reply. */
  | { readonly kind: "end"; readonly id: string; readonly run: Run; readonly silent: boolean }
  /** Turns that neither a person nor another agent requested, and that the agent chose not to reply to. */
  | { readonly kind: "quiet"; readonly id: string; readonly turns: number; readonly items: readonly Item[] };

function dayOf(atMs: number): string {
  return new Date(atMs).toDateString();
}

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
function isTold(run: Run): boolean {
  return run.endedAt !== undefined && (run.kind === "turn" || run.state !== "ok");
}

function isSilentText(text: string): boolean {
  return text.trim() !== "" && isSilent(text);
}

class Items {
  readonly list: Item[] = [];
  /** Runs whose agent chose not to reply. */
  readonly #silent = new Set<string>();
  readonly #runs: Thread["runs"];
  readonly #pairs: Map<ToolCall, ToolResult>;
  readonly #labels: NonNullable<Thread["labels"]>;
  /** The run whose header was added last. Further texts and steps of this run need no header. */
  #speaker: string | undefined;

  constructor({ messages, runs, labels = {} }: Thread) {
    this.#runs = runs;
    this.#labels = labels;
    this.#pairs = pairResults(messages);
  }

  mark(kind: "day" | "compaction", messageId: string, atMs: number): void {
    this.#speaker = undefined;
    this.list.push({ kind, id: `${kind} ${messageId}`, atMs });
  }

  end(runId: string): void {
    const run = this.#runs[runId];
    if (run === undefined || !isTold(run)) return;
    this.#speaker = undefined;
    this.list.push({ kind: "end", id: `end ${runId}`, run, silent: this.#silent.has(runId) });
  }

  add(message: Message): void {
    if (message.role === "toolResult") this.#orphan(message);
    else if (message.role === "assistant") this.#answer(message);
    else {
      this.#speaker = undefined;
      this.#text(message, message.content, true);
    }
  }

  #run({ runId }: Message): Run | undefined {
    return runId === undefined ? undefined : this.#runs[runId];
  }

  #text(message: Message, blocks: Message["content"], last: boolean, part = 0): void {
    const id = part === 0 ? message.id : `${message.id}:${part}`;
    const headed = this.#needsHeader(message);
    const labels = this.#labels[message.id];
    this.list.push({ kind: "message", id, message, run: this.#run(message), blocks, headed, last, labels });
  }

  /** Returns whether the message is a person's, or the first item of a run. Remembers the run. */
  #needsHeader(message: Message): boolean {
    if (message.role === "user") return true;
    const { runId } = message;
    const headed = runId === undefined || runId !== this.#speaker;
    this.#speaker = runId;
    return headed;
  }

  #step(message: Message, step: Step): void {
    const last = this.list.at(-1);
    if (last?.kind === "work" && last.message.runId === message.runId) {
      this.list[this.list.length - 1] = { ...last, steps: [...last.steps, step] };
      return;
    }
    const headed = this.#needsHeader(message);
    const run = this.#run(message);
    this.list.push({ kind: "work", id: `work ${step.id}`, steps: [step], message, run, headed });
  }

  #orphan(result: ToolResult): void {
    const { id, runId, timestamp: calledAt } = result;
    const labels = this.#labels[id];
    const step = {
      kind: "call",
      id,
      messageId: id,
      runId,
      call: undefined,
      result,
      calledAt,
      labels,
    } as const;
    this.#step(result, step);
  }

  /** Adds the items of an agent's message: its texts, and the steps of the agent's work. */
  #answer(message: Extract<Message, { role: "assistant" }> & { runId?: string }): void {
    const { id: messageId, runId, content, timestamp: calledAt } = message;
    const run = this.#run(message);
    let texts = 0;
    content.forEach((block, at) => {
      const id = `${messageId}:${at}`;
      if (block.type === "toolCall") {
        const result = this.#pairs.get(block);
        const labels = this.#labels[result?.id ?? ""];
        this.#step(message, { kind: "call", id, messageId, runId, call: block, result, calledAt, labels });
      } else if (block.type === "thinking") {
        const text = block.thinking;
        if (text.trim() !== "") this.#step(message, { kind: "thought", id, messageId, runId, text });
      } else if (isSilentText(block.text) && runId !== undefined && run !== undefined && isTold(run)) {
        this.#silent.add(runId);
      } else if (block.text.trim() !== "") {
        const last = content.slice(at + 1).every(({ type }) => type !== "text");
        this.#text(message, [block], last, texts);
        texts += 1;
      }
    });
    if (message.errorMessage !== undefined && texts === 0) this.#text(message, [], true);
  }
}

/** Returns true for a turn that neither a person nor another agent requested. */
function isRoutine(message: Message): boolean {
  const kind = message.role === "user" ? message.provenance?.kind : undefined;
  return kind !== undefined && kind !== "inter_session";
}

function runOf(item: Item): Run | undefined {
  return item.kind === "message" || item.kind === "work" || item.kind === "end" ? item.run : undefined;
}

/** Returns the number of items in the routine turn without a reply that begins at `from`, or 0. */
function quietTurnAt(items: readonly Item[], from: number): number {
  const first = items[from];
  if (first?.kind !== "message" || first.run === undefined || !isRoutine(first.message)) return 0;
  const length = items.slice(from).findIndex((item) => item.kind === "end" || runOf(item) !== first.run) + 1;
  const end = items[from + length - 1];
  if (end?.kind !== "end" || end.run !== first.run || end.run.state !== "ok" || !end.silent) return 0;
  return items.slice(from + 1, from + length).every(({ kind }) => kind !== "message") ? length : 0;
}

/** Replaces consecutive routine turns that have no reply by one item. */
function foldRoutine(items: readonly Item[]): Item[] {
  const shown: Item[] = [];
  for (let at = 0; at < items.length; ) {
    const first = items[at] as Item;
    let turns = 0;
    let end = at;
    for (let length = quietTurnAt(items, end); length > 0; length = quietTurnAt(items, end)) {
      turns += 1;
      end += length;
    }
    if (turns === 0) shown.push(first);
    else shown.push({ kind: "quiet", id: `quiet ${first.id}`, turns, items: items.slice(at, end) });
    at = Math.max(end, at + 1);
  }
  return shown;
}

function freshItems(thread: Thread): Item[] {
  const { messages, compactions = {} } = thread;
  const paired = new Set<Message>(pairResults(messages).values());
  const lastOf = new Map(messages.map(({ runId, id }) => [runId, id]));
  const items = new Items(thread);
  let day = "";
  for (const message of messages) {
    const { id, timestamp, runId } = message;
    if (!paired.has(message)) {
      if (dayOf(timestamp) !== day) items.mark("day", id, timestamp);
      day = dayOf(timestamp);
      const compactedAt = compactions[id];
      if (compactedAt !== undefined) items.mark("compaction", id, compactedAt);
      items.add(message);
    }
    if (runId !== undefined && lastOf.get(runId) === id) items.end(runId);
  }
  return items.list;
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
  const known = new Map(
    before
      .flatMap((item) => (item.kind === "quiet" ? [item, ...item.items] : [item]))
      .map((item) => [item.id, item]),
  );
  const works = new Map<string, string>();
  for (const item of known.values())
    if (item.kind === "work") for (const { id } of item.steps) works.set(id, item.id);
  const reuseItem = (fresh: Item): Item => {
    // If steps were added to an item, at either end, the item keeps its id, so that rows which the reader
    // opened stay open.
    const workId =
      fresh.kind === "work" ? fresh.steps.map(({ id }) => works.get(id)).find(Boolean) : undefined;
    const item = workId === undefined ? fresh : { ...fresh, id: workId };
    const old = known.get(item.id);
    return old !== undefined && isSame(old, item) ? old : item;
  };
  return foldRoutine(freshItems(thread).map(reuseItem)).map(reuseItem);
}

/** Returns true if an item contains this message, visible or folded. */
export function holds(item: Item, messageId: string | undefined): boolean {
  if (messageId === undefined) return false;
  if (item.kind === "quiet") return item.items.some((one) => holds(one, messageId));
  if (item.kind !== "work") return item.id === messageId;
  return item.steps.some((step) => step.messageId === messageId);
}
