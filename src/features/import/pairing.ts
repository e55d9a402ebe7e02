// Repairs tool calls: in an imported transcript every call has exactly one result, directly after it. A
// result without a call is dropped; a call without a result gets a placeholder. The result's id is derived
// from its call, so a later import never adds a second result.

import type { Entry, ToolCallBlock } from "../../core/shapes/message.ts";
import type { SourceEntry } from "./entries.ts";
import { entryId } from "./ids.ts";

const NO_RESULT = "The result of this call is not in the imported transcript.";

interface OpenCall {
  readonly call: ToolCallBlock;
  readonly resultId: string;
}

/** A source entry, its time, and the name from which its id is derived. */
export interface TimedSourceEntry {
  readonly entry: SourceEntry;
  readonly name: string;
  readonly at: number;
  /** Only for a compaction: the id of the first message that was not summarized. */
  readonly firstKept?: string;
}

/** Number of repairs of each kind. */
export interface Repairs {
  callsWithoutResult: number;
  resultsWithoutCall: number;
}

/** Converts the entries of one conversation, in order. */
export class Pairing {
  readonly #sessionId: string;
  readonly repairs: Repairs = { callsWithoutResult: 0, resultsWithoutCall: 0 };
  #open: OpenCall[] = [];
  #lastAt = 0;

  constructor(sessionId: string) {
    this.#sessionId = sessionId;
  }

  next({ entry, name, at, firstKept }: TimedSourceEntry): Entry[] {
    const base = { id: entryId(this.#sessionId, name), timestamp: at };
    switch (entry.kind) {
      case "toolResult": {
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

  /** Ends the conversation: adds the missing results of open calls. */
  end(): Entry[] {
    return this.#close(this.#lastAt);
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
