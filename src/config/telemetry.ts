// Owns the keys of the configuration file about what a collector of traces is told, and what comes of them.
// TL1: traces are on only where the file says so. The environment may say where to, never whether.

import { z } from "zod";
import type { TraceSettings } from "../core/trace-settings.ts";
import { httpAddress, text } from "./fields.ts";
import type { Env, Problem } from "./source.ts";

const DEFAULT_ENDPOINT = "http://127.0.0.1:4318/v1/traces";
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/;
/** Neither line breaks nor what a header can't carry. */
const HEADER_VALUE = /^[\t\x20-\x7e]{0,8192}$/;

const collectorAddress = httpAddress("headers");

export const telemetry = z
  .strictObject({
    traces: z
      .strictObject({
        enabled: z.boolean().default(false).describe("Whether runs are told of to a collector."),
        endpoint: collectorAddress
          .optional()
          .describe(
            "Where OTLP over HTTP (JSON) is taken. Default: OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, " +
              `OTEL_EXPORTER_OTLP_ENDPOINT with /v1/traces, else ${DEFAULT_ENDPOINT}.`,
          ),
        headers: z
          .record(
            z.string().regex(HEADER_NAME, "must be the name of a header"),
            z.string().regex(HEADER_VALUE, "must be plain text on one line"),
          )
          .default({})
          .describe("Sent with every request."),
        sampleRatio: z
          .number()
          .min(0)
          .max(1)
          .default(1)
          .describe("The share of chains that are told of; of each one all or nothing."),
        content: z
          .boolean()
          .default(false)
          .describe("Whether messages, arguments and results are told, with credentials masked."),
        serviceName: text.default("parley").describe("What the collector calls this deployment."),
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

/** What is told, and where to; nothing where it is off. */
export function tracesOf(
  { traces }: z.output<typeof telemetry>,
  env: Env,
  problems: Problem[],
): { traces?: TraceSettings } {
  const { enabled, endpoint, ...more } = traces;
  if (!enabled) return {};
  return { traces: { ...more, endpoint: endpoint ?? endpointOf(env, problems) } };
}
