// Turns a window of messages into items to draw: days, messages with the results of their tool calls, ends of
// runs.
// IT1: a result is shown with its call; alone if the call is not in the window.
// IT2: an item whose parts did not change stays the same object, so it is not drawn again.

import type { Message, Run, Thread } from "./thread.ts";

export type ToolResult = Extract<Message, { role: "toolResult" }>;

export type Item =
  /** A new day begins; or the model reads a summary in place of everything above this point. */
  | { readonly kind: "day" | "compaction"; readonly id: string; readonly atMs: number }
  | {
      readonly kind: "message";
      readonly id: string;
      readonly message: Message;
      readonly run: Run | undefined;
      readonly results: readonly ToolResult[];
    }
  | { readonly kind: "end"; readonly id: string; readonly run: Run };

function dayOf(atMs: number): string {
  return new Date(atMs).toDateString();
}

/** Maps messages to the results of their calls. A call id may occur again: the nearest result counts. */
function pairResults(messages: readonly Message[]): Map<Message, ToolResult[]> {
  const open = new Map<string, Message>();
  const pairs = new Map<Message, ToolResult[]>();
  for (const message of messages) {
    if (message.role === "toolResult") {
      const caller = open.get(message.toolCallId);
      open.delete(message.toolCallId);
      if (caller !== undefined) pairs.set(caller, [...(pairs.get(caller) ?? []), message]);
    } else if (message.role === "assistant") {
      for (const block of message.content) if (block.type === "toolCall") open.set(block.id, message);
    }
  }
  return pairs;
}

/** Returns true if the end of a run is shown. A message that was only appended between runs has no end. */
function isTold(run: Run): boolean {
  return run.endedAt !== undefined && (run.kind === "turn" || run.state !== "ok");
}

function freshItems({ messages, runs, compactions = {} }: Thread): Item[] {
  const pairs = pairResults(messages);
  const paired = new Set<Message>([...pairs.values()].flat());
  const lastOf = new Map(messages.map(({ runId, id }) => [runId, id]));
  const items: Item[] = [];
  let day = "";
  for (const message of messages) {
    const { id, timestamp, runId } = message;
    const run = runId === undefined ? undefined : runs[runId];
    if (!paired.has(message)) {
      if (dayOf(timestamp) !== day) items.push({ kind: "day", id: `day ${id}`, atMs: timestamp });
      day = dayOf(timestamp);
      const compactedAt = compactions[id];
      if (compactedAt !== undefined)
        items.push({ kind: "compaction", id: `compaction ${id}`, atMs: compactedAt });
      items.push({ kind: "message", id, message, run, results: pairs.get(message) ?? [] });
    }
    if (runId !== undefined && run !== undefined && lastOf.get(runId) === id && isTold(run)) {
      items.push({ kind: "end", id: `end ${runId}`, run });
    }
  }
  return items;
}

function isSame(a: Item, b: Item): boolean {
  if ("atMs" in a && "atMs" in b) return a.kind === b.kind && a.atMs === b.atMs;
  if (a.kind === "end" && b.kind === "end") return a.run === b.run;
  if (a.kind !== "message" || b.kind !== "message") return false;
  return (
    a.message === b.message &&
    a.run === b.run &&
    a.results.length === b.results.length &&
    a.results.every((result, at) => result === b.results[at])
  );
}

/** Returns the items of a window. `before`: the previous items, whose objects are reused. */
export function itemsOf(thread: Thread, before: readonly Item[] = []): Item[] {
  const known = new Map(before.map((item) => [item.id, item]));
  return freshItems(thread).map((item) => {
    const old = known.get(item.id);
    return old !== undefined && isSame(old, item) ? old : item;
  });
}
