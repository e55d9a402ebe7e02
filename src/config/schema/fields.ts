// Defines value types for keys of the configuration file.

import { z } from "zod";
import { nearestNames } from "../../core/text/nearest.ts";

export const text = z.string().min(1);
export const texts = z.array(text);
/**
 * A secret or an address. May be empty, if it comes from an unset variable; an empty text counts as absent.
 */
export const optionalText = z.string().nullish();
const namesUser = (address: string): boolean => /^\w+:\/\/[^/?#]*@/.test(address);
/**
 * Returns the schema of an HTTP address. `instead`: the key that must hold the password, because the address
 * must not.
 */
export const httpAddress = (instead?: string) =>
  z
    .url({ protocol: /^https?$/ })
    .refine(
      (address) => !namesUser(address),
      `must not contain user and password${instead === undefined ? "" : `: use ${instead}`}`,
    );
export const path = text.refine((value) => !/^~[^/]/.test(value), "only ~ and ~/… are expanded, not ~user");
export const limit = (min: number, max: number) => z.int().min(min).max(max);
export const MAX = Number.MAX_SAFE_INTEGER;
export const DAY_SECONDS = 86_400;

export const toolFilter = z
  .strictObject({
    allow: texts.default([]).describe("Names of tools, `*` as a wildcard. An empty list means every tool."),
    deny: texts
      .default([])
      .describe("Names of tools, `*` as a wildcard. A tool in deny is denied even if allow has it."),
  })
  .prefault({});

/** Returns an error message if no agent has this name, else undefined. */
export function agentProblem(name: string, ids: readonly string[]): string | undefined {
  if (ids.includes(name.toLowerCase())) return undefined;
  const [nearest] = nearestNames(name, ids, 1);
  return `there is no agent ${JSON.stringify(name)}; the nearest is ${nearest}`;
}

export const modelName = text.describe("`<provider>/<model>`.");
