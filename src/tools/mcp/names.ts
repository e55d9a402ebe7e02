// Owns what the tools of outside servers are called towards the model.
// N1: a name is `mcp__<server>__<tool>`: at most 64 of a-z, A-Z, 0-9, _ and -, as every model API wants it.
// N2: a name depends on the tool's own name alone, not on the order of the list or on its neighbours: the
//     same tool has the same name in every run, on every machine.
// N3: no two tools of a run have the same name.

import { createHash } from "node:crypto";
import { outsidePrefix } from "../../core/tool-policy.ts";

const NAME_MAX_CHARS = 64;
const DIGEST_CHARS = 8;

/** The name of a tool: its own where that can be, else what is left of it and a digest of the whole. */
export function outsideName(server: string, tool: string): string {
  const prefix = outsidePrefix(server);
  const plain = tool.replaceAll(/[^a-zA-Z0-9_-]/g, "_");
  if (plain === tool && tool !== "" && prefix.length + tool.length <= NAME_MAX_CHARS) return prefix + tool;
  const digest = createHash("sha256").update(tool).digest("hex").slice(0, DIGEST_CHARS);
  const room = NAME_MAX_CHARS - prefix.length - digest.length - 1;
  return `${prefix}${plain.slice(0, room)}_${digest}`;
}

/** Whether a name can only be that of an outside tool. */
export function isOutsideName(name: string): boolean {
  return name.startsWith("mcp__");
}
