// The interface between a tool and the agent loop: its description for the model, and the outcome of a call.

import type { ImageBlock } from "./message.ts";

/** A JSON Schema of which only `object`, `properties` and `required` are used. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** Limits of one result of `read`: lines and bytes of the file. */
export const FILE_LINES_MAX = 2_000;
export const FILE_TEXT_MAX_BYTES = 64 * 1024;

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
