// Defines the schema of `logging` in the configuration file.

import { z } from "zod";
import {
  LOG_FORMATS,
  LOG_LEVELS,
  LOG_PARTS,
  LOGGING,
  type LoggingSettings,
  loggingFrom,
} from "../core/shapes/settings/logging.ts";
import type { Env, Problem } from "./source.ts";

const level = z.enum(LOG_LEVELS);
const part = z.enum(LOG_PARTS);

export const logging = z
  .strictObject({
    level: level
      .default(LOGGING.level)
      .describe("Least severe level that is written. PARLEY_LOG overrides it."),
    parts: z
      .partialRecord(part, level)
      .default({})
      .describe("Levels of single parts of the program. They override `level`."),
    format: z
      .enum(LOG_FORMATS)
      .default(LOGGING.format)
      .describe("auto: lines for people in a terminal, else JSON. PARLEY_LOG_FORMAT overrides it."),
  })
  .prefault({});

/** Returns the effective log settings, from the file and the environment. */
export function loggingOf(file: z.output<typeof logging>, env: Env, problems: Problem[]): LoggingSettings {
  const wanted = loggingFrom(file, env);
  if (wanted.ok) return wanted.value;
  problems.push({ path: ["logging"], text: wanted.error });
  return LOGGING;
}
