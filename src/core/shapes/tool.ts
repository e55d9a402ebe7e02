// The interface between a tool and the agent loop: a description for the model, and an outcome.

import type { ImageBlock } from "./message.ts";

/** A JSON Schema that uses only `object`, `properties` and `required`. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** Lines and bytes of a file in one answer of `read`. */
export const FILE_LINES_MAX = 2_000;
export const FILE_TEXT_MAX_BYTES = 64 * 1024;

export interface ToolSpec {
  readonly name: string;
  readonly description: string;
  readonly parameters: JsonSchema;
  /** May run in parallel with other calls of the same message. Others run one by one, in order. */
  readonly parallel: boolean;
  /** May run again after a crash; otherwise the lost call gets the answer "outcome unknown". */
  readonly idempotent: boolean;
}

/** The result of a call; the model reads `text`. */
export interface ToolOutcome {
  readonly text: string;
  readonly isError: boolean;
  readonly images?: readonly ImageBlock[];
  readonly details?: unknown;
}

export interface ToolCallRequest {
  /** `runId:assistantMessageId:index`; the same after a crash. */
  readonly callId: string;
  /** The run's attempt number, from 1. */
  readonly attempt: number;
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}
