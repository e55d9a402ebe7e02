// Names the tools of MCP servers for the model: `mcp__<server>__<tool>`, at most 64 of a-z, A-Z, 0-9, _ and
// -, as every model API requires. A name depends only on the tool's own name, not on the order of the list: a
// tool has the same name in every run and on every host. No two tools of a run have the same name.

import { createHash } from "node:crypto";
import { outsidePrefix } from "../../core/rules/tool-policy.ts";

const NAME_MAX_CHARS = 64;
const DIGEST_CHARS = 8;

/**
 * Returns the name of a tool: its own name if that is valid, otherwise the valid characters of the name and a
 * digest.
 */
export function outsideName(server: string, tool: string): string {
  const prefix = outsidePrefix(server);
  const plain = tool.replaceAll(/[^a-zA-Z0-9_-]/g, "_");
  if (plain === tool && tool !== "" && prefix.length + tool.length <= NAME_MAX_CHARS) return prefix + tool;
  const digest = createHash("sha256").update(tool).digest("hex").slice(0, DIGEST_CHARS);
  const room = NAME_MAX_CHARS - prefix.length - digest.length - 1;
  return `${prefix}${plain.slice(0, room)}_${digest}`;
}

/** Returns whether a name has the form of an MCP tool's name. */
export function isOutsideName(name: string): boolean {
  return name.startsWith("mcp__");
}
