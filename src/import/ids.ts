// Owns the ids that an import makes: from what the source says and from nothing else, so that a second import
// of the same thing makes the same ones.

import { createHash } from "node:crypto";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

function digest(parts: readonly string[]): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex");
}

/** The id of a transcript entry. */
export function entryId(sessionId: string, ...source: readonly string[]): string {
  return `import-${digest(["entry", sessionId, ...source]).slice(0, 32)}`;
}

/** Something in the form of a UUID. */
export function derivedUuid(...source: readonly string[]): string {
  const hex = digest(["uuid", ...source]);
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    `8${hex.slice(17, 20)}`,
    hex.slice(20, 32),
  ].join("-");
}

/** A transcript's id: the source's own, if it is one that can be no path and no session key. */
export function sessionIdOf(source: string, agentId: string): string {
  const id = source.toLowerCase();
  return UUID.test(id) ? id : derivedUuid("session", agentId, source);
}
