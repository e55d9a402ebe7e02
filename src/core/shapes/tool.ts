// The interface between a tool and the agent loop: its description for the model, and the outcome of a call.

import type { ImageBlock } from "./message.ts";

/** A JSON Schema of which only `object`, `properties` and `required` are used. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** Limits of one result of `read`: lines and bytes of the file. */
export const FILE_LINES_MAX = 2_000;
export const FILE_TEXT_MAX_BYTES = 64 * 1024;
/** Limits of one result of `grep` or `glob`: its items, the characters of a line, and the bytes in all. */
export const GREP_LIMIT = { fallback: 100, min: 1, max: 1_000 };
export const SEARCH_LINE_MAX_CHARS = 400;
export const SEARCH_TEXT_MAX_BYTES = 64 * 1024;
/** Maximum characters of a page that one call of `fetch` returns. */
export const FETCH_TEXT_MAX_CHARS = 40_000;
/** Limits of one call of `search`: its results, and the characters of its query (the limit of Brave). */
export const SEARCH_COUNT_LIMIT = { fallback: 5, min: 1, max: 10 };
export const SEARCH_QUERY_MAX_CHARS = 400;
export const SEARCH_TITLE_MAX_CHARS = 300;
export const SEARCH_SNIPPET_MAX_CHARS = 600;
/** Maximum edits of one call of `edit`. */
export const EDITS_MAX = 100;

export interface ToolSpec {
  readonly name: string;
  readonly description: string;
  readonly parameters: JsonSchema;
  /**
   * True if calls may run in parallel with other calls of the same message. If false, the calls run one at a
   * time, in order.
   */
  readonly parallel: boolean;
  /**
   * True if a call may be repeated after a crash. Otherwise an interrupted call gets the result "outcome
   * unknown".
   */
  readonly idempotent: boolean;
}

/** Outcome of a call. The model reads `text`. */
export interface ToolOutcome {
  readonly text: string;
  readonly isError: boolean;
  readonly images?: readonly ImageBlock[];
  readonly details?: unknown;
}

export interface ToolCallRequest {
  /** `runId:assistantMessageId:index`, which stays the same after a crash. */
  readonly callId: string;
  /** Number of the run's attempt, starting at 1. */
  readonly attempt: number;
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}
