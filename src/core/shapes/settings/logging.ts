// The settings of the log: levels, parts, and the syntax of the variable that sets both.

import type { ConfigFile } from "../../../config/schema/schema.ts";
import { fail, ok, type Result } from "../errors.ts";

/** Log levels. Each level includes all levels before it. */
export const LOG_LEVELS = ["silent", "error", "warn", "info", "debug"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Parts of the program (docs/internals/ARCHITECTURE.md) that write log lines. `app` connects them. */
export const LOG_PARTS = [
  "app",
  "gateway",
  "channels",
  "flows",
  "tools",
  "engine",
  "agent",
  "sandbox",
  "store",
  "telemetry",
  "cli",
] as const;
export type LogPart = (typeof LOG_PARTS)[number];

/** Log formats. `auto` writes lines for people if standard error is a terminal, otherwise JSON. */
export const LOG_FORMATS = ["auto", "json", "pretty"] as const;

export type LoggingSettings = ConfigFile["logging"];

const isOneOf = <T extends string>(values: readonly T[], value: string): value is T =>
  (values as readonly string[]).includes(value);

const PART_NAMES = `its parts are ${LOG_PARTS.join(", ")}`;

const WRITTEN = `a level (${LOG_LEVELS.join(", ")}), and levels of single parts, like "info,store=debug"`;

/** `debug`, or `warn,store=debug,channels=info`. */
function readLevels(text: string): Result<Pick<LoggingSettings, "level" | "parts">> {
  let level: LogLevel = "info";
  const parts: Partial<Record<LogPart, LogLevel>> = {};
  for (const item of text.split(",").map((one) => one.trim())) {
    const [first = "", second, ...more] = item.split("=").map((one) => one.trim());
    const [part, wanted] = second === undefined ? [undefined, first] : [first, second];
    if (more.length > 0 || !isOneOf(LOG_LEVELS, wanted)) {
      return fail("invalid_config", `PARLEY_LOG: "${wanted}" is not a valid level; write ${WRITTEN}`);
    }
    if (part === undefined) level = wanted;
    else if (isOneOf(LOG_PARTS, part)) parts[part] = wanted;
    else return fail("invalid_config", `PARLEY_LOG: the log has no part "${part}": ${PART_NAMES}`);
  }
  return ok({ level, parts });
}

/** Defaults. */
export const LOGGING = { level: "info", parts: {}, format: "auto" } as const;

/**
 * Returns the settings of the log. PARLEY_LOG replaces all levels in the file, and PARLEY_LOG_FORMAT replaces
 * the format.
 */
export function loggingFrom(
  file: LoggingSettings,
  env: Readonly<Record<string, string | undefined>>,
): Result<LoggingSettings> {
  const levels = env.PARLEY_LOG ? readLevels(env.PARLEY_LOG) : ok(file);
  if (!levels.ok) return levels;
  const { level, parts } = levels.value;
  const format = env.PARLEY_LOG_FORMAT || file.format;
  if (isOneOf(LOG_FORMATS, format)) return ok({ level, parts, format });
  return fail("invalid_config", `PARLEY_LOG_FORMAT: "${format}" is not one of ${LOG_FORMATS.join(", ")}`);
}
