// Owns that an imported transcript is valid: every tool call has exactly one result, right behind it.
// PA1: a result without a call is left out; a call without a result gets one that says so.
// PA2: a result's id comes from its call, so that a later import never gives a call a second one.

import type { Entry, ToolCallBlock } from "../core/message.ts";
import type { SourceEntry } from "./entries.ts";
import { entryId } from "./ids.ts";

const NO_RESULT = "The result of this call is not in the imported transcript.";

interface OpenCall {
  readonly call: ToolCallBlock;
  readonly resultId: string;
}

/** An entry of the source with what it is called there and when it was written. */
export interface Placed {
  readonly entry: SourceEntry;
  readonly name: string;
  readonly at: number;
  /** Of a compaction: the message that was kept first, by name. */
  readonly firstKept?: string;
}

/** What was repaired. */
export interface Repairs {
  callsWithoutResult: number;
  resultsWithoutCall: number;
}

/** Turns the entries of one conversation, in order, into ours. */
export class Pairing {
  readonly #sessionId: string;
  readonly repairs: Repairs = { callsWithoutResult: 0, resultsWithoutCall: 0 };
  #open: OpenCall[] = [];
  #lastAt = 0;

  constructor(sessionId: string) {
    this.#sessionId = sessionId;
  }

  next({ entry, name, at, firstKept }: Placed): Entry[] {
    const base = { id: entryId(this.#sessionId, name), timestamp: at };
    switch (entry.kind) {
      case "toolResult":
        return this.#result(entry, at);
      case "user": {
        const { kind: _, ...message } = entry;
        return [...this.#close(at), { ...base, role: "user", ...message }];
      }
      case "assistant": {
        const closed = this.#close(at);
        const calls = entry.message.content.filter(
          (block): block is ToolCallBlock => block.type === "toolCall",
        );
        this.#open = calls.map((call, index) => ({
          call,
          resultId: entryId(this.#sessionId, name, "result", String(index)),
        }));
        return [...closed, { ...base, ...entry.message }];
      }
      case "compaction": {
        const firstKeptId = firstKept === undefined ? "" : entryId(this.#sessionId, firstKept);
        return [...this.#close(at), { ...base, type: "compaction", summary: entry.summary, firstKeptId }];
      }
      default:
        return [];
    }
  }

  /** Nothing follows. */
  end(): Entry[] {
    return this.#close(this.#lastAt);
  }

  #result(entry: Extract<SourceEntry, { kind: "toolResult" }>, at: number): Entry[] {
    const index = this.#open.findIndex(({ call }) => call.id === entry.message.toolCallId);
    const open = this.#open[index];
    if (open === undefined) {
      this.repairs.resultsWithoutCall += 1;
      return [];
    }
    this.#open.splice(index, 1);
    this.#lastAt = at;
    return [{ id: open.resultId, timestamp: at, ...entry.message, toolName: open.call.name }];
  }

  #close(at: number): Entry[] {
    const left = this.#open;
    this.#open = [];
    this.#lastAt = at;
    this.repairs.callsWithoutResult += left.length;
    return left.map(({ call, resultId }) => ({
      id: resultId,
      role: "toolResult",
      toolCallId: call.id,
      toolName: call.name,
      content: [{ type: "text", text: NO_RESULT }],
      isError: true,
      timestamp: at,
    }));
  }
}
