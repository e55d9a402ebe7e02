// Derives the ids of imported rows only from the source's data, so that a repeated import creates the same
// ids.

import { createHash } from "node:crypto";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

function digest(parts: readonly string[]): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex");
}

export function entryId(sessionId: string, ...source: readonly string[]): string {
  return `import-${digest(["entry", sessionId, ...source]).slice(0, 32)}`;
}

/** Returns a UUID that is derived from texts of the source. */
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

/**
 * Returns a transcript's id. Keeps the source's id if it is a UUID, because a UUID can't be mistaken for a
 * path or a session key. Otherwise derives a UUID from it.
 */
export function sessionIdOf(source: string, agentId: string): string {
  const id = source.toLowerCase();
  return UUID.test(id) ? id : derivedUuid("session", agentId, source);
}
