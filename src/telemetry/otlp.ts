// Sends spans to an OpenTelemetry collector: OTLP over HTTP, as JSON. Only this file uses the libraries, and
// only gateways with traces load it.
// Nothing is registered globally, so other tracing in this process is not affected.
// OT2: a collector's answer is never shown; a failure is described by its HTTP status or the system's error
// code.
// OT3: spans and headers go only to the configured address. The libraries use Node's HTTP, which follows no
// redirect.

import { type HrTime, ROOT_CONTEXT, SpanKind, SpanStatusCode, TraceFlags, trace } from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { AlwaysOnSampler, type ReadableSpan, TracerProvider } from "@opentelemetry/sdk-trace";
import { optional } from "../core/optional.ts";
import type { TraceSettings } from "../core/shapes/settings/settings.ts";
import { agentFor } from "../world/outgoing.ts";
import type { Exporter } from "./queue.ts";
import type { Span } from "./span.ts";

/** Time limit of an export, including retries. */
const EXPORT_MAX_MS = 5_000;
/** The libraries' `ExportResultCode.SUCCESS`. */
const SUCCESS = 0;

function timeOf(ms: number): HrTime {
  const seconds = Math.floor(ms / 1_000);
  return [seconds, Math.round((ms - seconds * 1_000) * 1_000_000)];
}

function failureText(error: unknown): string {
  if (typeof error !== "object" || error === null) return "the collector did not accept the spans";
  const { code, message } = error as { code?: unknown; message?: unknown };
  if (typeof code === "number") return `the collector answered ${code}`;
  if (typeof code === "string" && /^[A-Z_]{1,40}$/.test(code))
    return `the collector cannot be reached: ${code}`;
  return message === "Request timed out"
    ? "the collector did not answer"
    : "the collector did not accept the spans";
}

/** Returns a function that converts spans to the libraries' spans, with the same ids. */
function spanMaker(settings: TraceSettings, facts: { version: string; instanceId: string }) {
  const made: ReadableSpan[] = [];
  const next = { traceId: "", spanId: "" };
  const provider = new TracerProvider({
    sampler: new AlwaysOnSampler(),
    idGenerator: { generateTraceId: () => next.traceId, generateSpanId: () => next.spanId },
    resource: resourceFromAttributes({
      "service.name": settings.serviceName,
      "service.version": facts.version,
      "service.instance.id": facts.instanceId,
    }),
    spanProcessors: [
      {
        onStart: () => {},
        onEnd: (span) => void made.push(span),
        forceFlush: async () => {},
        shutdown: async () => {},
      },
    ],
  });
  const tracer = provider.getTracer("parley", facts.version);
  const begin = ({ traceId, spanId, parentSpanId, name, kind, startMs, attributes }: Span) => {
    Object.assign(next, { traceId, spanId });
    const parent = { traceId, spanId: parentSpanId ?? "", traceFlags: TraceFlags.SAMPLED, isRemote: true };
    const context = parentSpanId === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, parent);
    const copied = Object.entries(attributes).map(([key, value]) => [
      key,
      typeof value === "object" ? [...value] : value,
    ]);
    const options = {
      kind: kind === "client" ? SpanKind.CLIENT : SpanKind.INTERNAL,
      startTime: timeOf(startMs),
      attributes: Object.fromEntries(copied),
    };
    return tracer.startSpan(name, options, context);
  };
  return (spans: readonly Span[]): ReadableSpan[] => {
    for (const one of spans) {
      const span = begin(one);
      if (one.failed !== undefined) {
        const { words } = one.failed;
        span.setStatus({ code: SpanStatusCode.ERROR, ...optional({ message: words }) });
      }
      span.end(timeOf(Math.max(one.startMs, one.endMs)));
    }
    return made.splice(0);
  };
}

/** Opens the configured exporter. Nothing is sent before the first span. */
export function openOtlp(settings: TraceSettings, facts: { version: string; instanceId: string }): Exporter {
  const make = spanMaker(settings, facts);
  const agent = agentFor(settings.endpoint, { keepAlive: true, maxSockets: 1 });
  const exporter = new OTLPTraceExporter({
    url: settings.endpoint,
    headers: { ...settings.headers },
    timeoutMillis: EXPORT_MAX_MS,
    // Only one export runs at a time (SQ2 of queue.ts), but the libraries still count an export for a moment
    // after its end.
    concurrencyLimit: 4,
    httpAgentOptions: () => agent,
  });
  return {
    export: (batch) =>
      new Promise((resolve) => {
        exporter.export(make(batch), ({ code, error }) =>
          resolve(code === SUCCESS ? undefined : failureText(error)),
        );
      }),
    close: () => agent.destroy(),
  };
}
