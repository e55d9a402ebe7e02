// Owns what a span is before any library sees it, and the ids of traces and spans.
// SP1: ids are made of what is stored (chain, run, call), so that each process and each attempt makes the
//      same ones: one chain is one trace, and whoever comes later names a parent that it has never met.

import { createHash } from "node:crypto";

export type Attribute = string | number | boolean | readonly string[];

/** A piece of work that is over. */
export interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  /** `client`: a call that leaves this program. */
  readonly kind: "internal" | "client";
  /** Milliseconds since 1970. */
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Readonly<Record<string, Attribute>>;
  /** It failed; with the words for it, where content may be told. */
  readonly failed?: { readonly words?: string };
}

/** Hexadecimal digits, as OpenTelemetry wants them; nothing but zeros is no id there. */
function idOf(kind: string, name: string, digits: number): string {
  const id = createHash("sha256").update(`parley ${kind} ${name}`).digest("hex").slice(0, digits);
  return /^0+$/.test(id) ? id.replace(/0$/, "1") : id;
}

/** The trace of everything that happens in one chain. */
export function traceIdOf(chainId: string): string {
  return idOf("chain", chainId, 32);
}

/** The span of a run, from its first start to its end, however many attempts it took. */
export function runSpanId(runId: string): string {
  return idOf("run", runId, 16);
}

/** The span of a tool call of a run. */
export function callSpanId(runId: string, callId: string): string {
  return idOf("call", `${runId} ${callId}`, 16);
}

/** The span of a model call, which has no stored name of its own: `id` is any that is used once. */
export function modelSpanId(id: string): string {
  return idOf("model", id, 16);
}
