// Defines a span, independent of libraries, and derives the ids of traces and spans.
// SP1: ids are derived from stored data (chain, run, call), so that each process and each attempt computes
// the same ones: one chain is one trace, and a later span can name a parent from another process.

import { createHash } from "node:crypto";

export type Attribute = string | number | boolean | readonly string[];

/** A completed piece of work. */
export interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  /** `client`: a call to another program. */
  readonly kind: "internal" | "client";
  /** Milliseconds since 1970. */
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Readonly<Record<string, Attribute>>;
  /** Set if the work failed; contains the error text if content is traced. */
  readonly failed?: { readonly words?: string };
}

/**
 * Returns an id of `digits` hexadecimal digits. It is never all zeros, because OpenTelemetry forbids that.
 */
function idOf(kind: string, name: string, digits: number): string {
  const id = createHash("sha256").update(`parley ${kind} ${name}`).digest("hex").slice(0, digits);
  return /^0+$/.test(id) ? id.replace(/0$/, "1") : id;
}

export function traceIdOf(chainId: string): string {
  return idOf("chain", chainId, 32);
}

/** Returns the span id of a run, from its first start to its end, over all attempts. */
export function runSpanId(runId: string): string {
  return idOf("run", runId, 16);
}

export function callSpanId(runId: string, callId: string): string {
  return idOf("call", `${runId} ${callId}`, 16);
}

/** Returns the span id of a model call. `id` is any unique text, because model calls have no stored id. */
export function modelSpanId(id: string): string {
  return idOf("model", id, 16);
}
