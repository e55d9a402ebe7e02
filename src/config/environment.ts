// Builds the settings that the environment can also set: the database, the log and the traces.
// TL1: only the file can enable traces. The environment can only set the destination.

import { LOGGING, type LoggingSettings, loggingFrom } from "../core/shapes/settings/logging.ts";
import type { StoreSettings, TraceSettings } from "../core/shapes/settings/settings.ts";
import { COLLECTOR_DEFAULT, type ConfigFile, collector } from "./schema/schema.ts";
import { FACTS } from "./schema/setting.ts";
import type { Env, Problem } from "./source.ts";

/** Returns the database of the file, else that of the environment. An empty text means none. */
export function postgresOf(
  store: StoreSettings,
  env: Env,
  problems: Problem[],
): Pick<StoreSettings, "postgresUrl"> {
  const url = store.postgresUrl ?? env.PARLEY_DATABASE_URL ?? "";
  if (url.trim() === "") return {};
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  const isDatabase = ["postgres:", "postgresql:"].includes(parsed?.protocol ?? "");
  if (isDatabase && parsed?.host !== "" && (parsed?.pathname.length ?? 0) > 1) return { postgresUrl: url };
  const from = store.postgresUrl === undefined ? " (PARLEY_DATABASE_URL)" : "";
  const text = `must be like postgres://user:password@host:5432/database${from}`;
  problems.push({ path: ["store", "postgresUrl"], text });
  return {};
}

/** Returns the effective log settings. */
export function loggingOf(file: LoggingSettings, env: Env, problems: Problem[]): LoggingSettings {
  const wanted = loggingFrom(file, env);
  if (wanted.ok) return wanted.value;
  problems.push({ path: ["logging"], text: wanted.error });
  return LOGGING;
}

function endpointOf(env: Env, problems: Problem[]): string {
  const own = env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT || undefined;
  const common = env.OTEL_EXPORTER_OTLP_ENDPOINT || undefined;
  const name = own === undefined ? "OTEL_EXPORTER_OTLP_ENDPOINT" : "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
  const given = own ?? (common === undefined ? undefined : `${common.replace(/\/+$/, "")}/v1/traces`);
  if (given === undefined) return COLLECTOR_DEFAULT;
  if (collector[FACTS]?.checks?.every(([holds]) => holds(given)) === true) return given;
  const text = `must be an http or https address without user and password (${name})`;
  problems.push({ path: ["telemetry", "traces", "endpoint"], text });
  return COLLECTOR_DEFAULT;
}

/** Returns the trace settings, or nothing if traces are disabled. */
export function tracesOf(
  { traces }: ConfigFile["telemetry"],
  env: Env,
  problems: Problem[],
): { traces?: TraceSettings } {
  const { enabled, ...more } = traces;
  return enabled ? { traces: { ...more, endpoint: more.endpoint ?? endpointOf(env, problems) } } : {};
}
