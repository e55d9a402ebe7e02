// A trace collector on a real socket: it accepts OTLP over HTTP as JSON, and returns the spans as trees.

import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import { cleanup } from "./engine/engine.ts";
import { serveHttp } from "./loopback.ts";

/** The body of the collector's error responses. It contains a fake credential that must be redacted. */
export const COLLECTOR_WORDS = "go-away-sk-proj-abcdefghij0123456789ABCDEF";

interface WireValue {
  readonly stringValue?: string;
  readonly intValue?: number | string;
  readonly doubleValue?: number;
  readonly boolValue?: boolean;
  readonly arrayValue?: { readonly values: readonly WireValue[] };
}

type WireAttributes = readonly { readonly key: string; readonly value: WireValue }[];

interface WireSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: WireAttributes;
  readonly status: { readonly code?: number; readonly message?: string };
}

export interface CollectedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly name: string;
  readonly kind: number;
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly resource: Readonly<Record<string, unknown>>;
  readonly status: WireSpan["status"];
}

/** The reaction to a request: a response with this HTTP status, or no response. */
type Manner = number | "silent";

export interface Collector {
  readonly url: string;
  readonly spans: CollectedSpan[];
  /** The received request bodies, unchanged. */
  readonly bodies: string[];
  readonly headers: IncomingHttpHeaders[];
  behave(manner: Manner): void;
  /** Returns each trace as lines in order of time. Children are indented below their parent. */
  trees(): string[][];
  close(): Promise<void>;
}

function plainOf({ stringValue, intValue, doubleValue, boolValue, arrayValue }: WireValue): unknown {
  if (arrayValue !== undefined) return arrayValue.values.map(plainOf);
  return stringValue ?? (intValue === undefined ? undefined : Number(intValue)) ?? doubleValue ?? boolValue;
}

function fieldsOf(attributes: WireAttributes): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, plainOf(value)]));
}

function read(body: string): CollectedSpan[] {
  const { resourceSpans } = JSON.parse(body) as {
    resourceSpans: { resource: { attributes: WireAttributes }; scopeSpans: { spans: WireSpan[] }[] }[];
  };
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map(({ startTimeUnixNano, endTimeUnixNano, attributes, parentSpanId, ...span }) => ({
        ...span,
        parentSpanId: parentSpanId === "" ? undefined : parentSpanId,
        startMs: Number(startTimeUnixNano) / 1e6,
        endMs: Number(endTimeUnixNano) / 1e6,
        attributes: fieldsOf(attributes),
        resource: fieldsOf(resource.attributes),
      })),
    ),
  );
}

/** Formats a span with its step and, if it has one, its error. */
function titleOf({ name, attributes }: CollectedSpan): string {
  const step = name.startsWith("invoke_agent") ? attributes["parley.flow_step"] : undefined;
  const words = [name, ...(step === undefined ? [] : [`(${step})`])];
  const failure = attributes["error.type"];
  return [...words, ...(failure === undefined ? [] : [`!${failure}`])].join(" ");
}

function treeOf(spans: readonly CollectedSpan[]): string[] {
  const ids = new Set(spans.map(({ spanId }) => spanId));
  if (ids.size !== spans.length) throw new Error("a span was told twice");
  const inOrder = spans.toSorted((one, other) => one.startMs - other.startMs || one.endMs - other.endMs);
  const below = (parent: string, depth: number): string[] =>
    inOrder
      .filter(({ parentSpanId }) => parentSpanId === parent)
      .flatMap((span) => [`${"  ".repeat(depth)}${titleOf(span)}`, ...below(span.spanId, depth + 1)]);
  const roots = inOrder.filter(({ parentSpanId }) => parentSpanId === undefined || !ids.has(parentSpanId));
  return roots.flatMap((root) => {
    const lost = root.parentSpanId === undefined ? "" : "lost: ";
    return [`${lost}${titleOf(root)}`, ...below(root.spanId, 1)];
  });
}

export async function startCollector(): Promise<Collector> {
  const spans: CollectedSpan[] = [];
  const bodies: string[] = [];
  const headers: IncomingHttpHeaders[] = [];
  const held = new Set<ServerResponse>();
  let manner: Manner = 200;
  const { origin, close } = await serveHttp(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += String(chunk);
    bodies.push(body);
    headers.push(request.headers);
    if (manner === "silent") {
      held.add(response);
      return;
    }
    if (manner === 200) spans.push(...read(body));
    const words = manner === 200 ? "{}" : JSON.stringify({ message: COLLECTOR_WORDS });
    // The server asks for a pause of an hour, so that a test notices a retry that does not wait.
    const more = manner === 200 ? {} : { "retry-after": "3600", location: "http://127.0.0.1:1/" };
    response.writeHead(manner, COLLECTOR_WORDS, { "content-type": "application/json", ...more }).end(words);
  });
  cleanup(close);
  return {
    url: `${origin}/v1/traces`,
    spans,
    bodies,
    headers,
    behave: (next) => {
      manner = next;
    },
    trees() {
      const traces = [...new Set(spans.map(({ traceId }) => traceId))];
      return traces.map((id) => treeOf(spans.filter(({ traceId }) => traceId === id)));
    },
    close,
  };
}
