// Names of sessions that follow from their rows and keys alone. Pure.

import { forkOrigin } from "../../../src/core/fork-key.ts";

/** Matches a UUID and captures its first part, which is enough to tell sessions apart. */
const UUID = /\b([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g;

/** Matches characters that a key contains in an encoded form. */
const ENCODED = /(?:%[0-9a-f]{2})+/gi;

/** Returns a short form of a key: `research` for `agent:research:main`, `research · subagent 1a2b3c4d`. */
export function shortKey(key: string): string {
  const main = /^agent:([^:]+):main$/.exec(key)?.[1];
  if (main !== undefined) return main;
  const [, agent, rest] = /^agent:([^:]+):(.+)$/.exec(key) ?? [];
  // Escapes that are not UTF-8 stay.
  const plain = (rest ?? key)
    .replace(UUID, "$1")
    .replaceAll(":", " ")
    .replace(ENCODED, (run) => {
      try {
        return decodeURIComponent(run);
      } catch {
        return run;
      }
    });
  return agent === undefined ? plain : `${agent} · ${plain}`;
}

/** Returns whether a key is that of a program that joined over MCP. No model of the gateway runs there. */
export const isProgram = (key: string): boolean => /^agent:[^:]+:mcp:[^:]+$/.test(key);

export interface Named {
  readonly key: string;
  readonly label?: string | undefined;
  readonly displayName?: string | undefined;
  readonly derivedTitle?: string | undefined;
}

/** Returns whether a key names a session by an id alone. */
export const isNameless = (key: string): boolean => key.search(UUID) >= 0;

/** Returns the name of a session, or undefined for a fork that is named after its origin. */
export function ownName({ key, label, displayName, derivedTitle }: Named): string | undefined {
  const given = label || displayName;
  if (given || forkOrigin(key) !== undefined) return given;
  return (isNameless(key) && derivedTitle) || shortKey(key);
}

/** Returns the name of a session, as far as its row alone tells it. */
export function rowName(row: Named): string {
  return ownName(row) ?? `${shortKey(forkOrigin(row.key) ?? "")} (fork)`;
}
