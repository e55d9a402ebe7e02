// Defines the schema of traces in the configuration file, and builds their settings.
// TL1: only the file can enable traces. The environment can only set the destination.

import { z } from "zod";
import type { TraceSettings } from "../core/shapes/settings/traces.ts";
import { httpAddress, text } from "./schema/fields.ts";
import type { Env, Problem } from "./source.ts";

const DEFAULT_ENDPOINT = "http://127.0.0.1:4318/v1/traces";
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/;
/** Rejects line breaks and other characters that a header cannot contain. */
const HEADER_VALUE = /^[\t\x20-\x7e]{0,8192}$/;

const collectorAddress = httpAddress("headers");

export const telemetry = z
  .strictObject({
    traces: z
      .strictObject({
        enabled: z.boolean().default(false).describe("Whether runs are traced."),
        endpoint: collectorAddress
          .optional()
          .describe(
            "Collector that receives OTLP over HTTP (JSON). Default: OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, " +
              `OTEL_EXPORTER_OTLP_ENDPOINT with /v1/traces, else ${DEFAULT_ENDPOINT}.`,
          ),
        headers: z
          .record(
            z.string().regex(HEADER_NAME, "must be the name of a header"),
            z.string().regex(HEADER_VALUE, "must be plain text on one line"),
          )
          .default({})
          .describe("HTTP headers that are sent with every request."),
        sampleRatio: z
          .number()
          .min(0)
          .max(1)
          .default(1)
          .describe("Share of chains that are traced; a chain is traced completely or not at all."),
        content: z
          .boolean()
          .default(false)
          .describe("Whether traces contain messages, arguments and results, with credentials redacted."),
        serviceName: text.default("parley").describe("Name of this deployment in the collector."),
      })
      .prefault({}),
  })
  .prefault({});

function endpointOf(env: Env, problems: Problem[]): string {
  const own = env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT || undefined;
  const common = env.OTEL_EXPORTER_OTLP_ENDPOINT || undefined;
  const name = own === undefined ? "OTEL_EXPORTER_OTLP_ENDPOINT" : "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
  const given = own ?? (common === undefined ? undefined : `${common.replace(/\/+$/, "")}/v1/traces`);
  if (given === undefined) return DEFAULT_ENDPOINT;
  if (collectorAddress.safeParse(given).success) return given;
  const text = `must be an http or https address without user and password (${name})`;
  problems.push({ path: ["telemetry", "traces", "endpoint"], text });
  return DEFAULT_ENDPOINT;
}

/** Returns the trace settings, or undefined if traces are disabled. */
export function tracesOf(
  { traces }: z.output<typeof telemetry>,
  env: Env,
  problems: Problem[],
): { traces?: TraceSettings } {
  const { enabled, endpoint, ...more } = traces;
  if (!enabled) return {};
  return { traces: { ...more, endpoint: endpoint ?? endpointOf(env, problems) } };
}
