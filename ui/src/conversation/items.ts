// Owns what the reader sees of a window of messages, one after the other: days, messages with the results of
// their tool calls, ends of runs.
// IT1: a result stands with its call; where the call is not in the window, by itself.
// IT2: an item whose parts are the same as before is the same object: it is not drawn again.

import type { Message, Run, Thread } from "./thread.ts";

export type ToolResult = Extract<Message, { role: "toolResult" }>;

export type Item =
  /** A new day begins; or a part that the model has in full, a summary standing for what is before it. */
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

/** Which results stand with which message. An id of a call may come again later: the nearest counts. */
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

/** Whether the end of a run is worth a line: what was only written down between runs has none. */
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

/** The items of a window; `before`: those that were made last. */
export function itemsOf(thread: Thread, before: readonly Item[] = []): Item[] {
  const known = new Map(before.map((item) => [item.id, item]));
  return freshItems(thread).map((item) => {
    const old = known.get(item.id);
    return old !== undefined && isSame(old, item) ? old : item;
  });
}
