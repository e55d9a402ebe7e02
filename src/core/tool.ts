// Owns what a tool is to the agent loop: a description for the model, and an outcome.

import type { ImageBlock } from "./message.ts";

/** A JSON Schema made of plain `object`, `properties` and `required` (SPEC 3). */
export type JsonSchema = Readonly<Record<string, unknown>>;

export interface ToolSpec {
  readonly name: string;
  readonly description: string;
  readonly parameters: JsonSchema;
  /** May run beside other calls of the same message. Others run one by one, in order. */
  readonly parallel: boolean;
  /** May be run again after a crash; otherwise the lost call is answered "outcome unknown". */
  readonly idempotent: boolean;
}

/** What a call is answered with; `text` is what the model reads. */
export interface ToolOutcome {
  readonly text: string;
  readonly isError: boolean;
  readonly images?: readonly ImageBlock[];
  readonly details?: unknown;
}

export interface ToolCallRequest {
  /** `runId:assistantMessageId:index`, the same after a crash (SPEC 4). */
  readonly callId: string;
  /** The run's attempt number, from 1. */
  readonly attempt: number;
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}
