// Names the tools of MCP servers for the model: `mcp__<server>__<tool>`, at most 64 of a-z, A-Z, 0-9, _ and
// -, as every model API requires. A name depends only on the tool's own name, not on the order of the list: a
// tool has the same name in every run and on every host. No two tools of a run have the same name. Arguments
// whose names model APIs refuse are renamed in the same way, and get their own names back in a call.

import { createHash } from "node:crypto";
import { isObject } from "../../core/json.ts";
import { outsidePrefix } from "../../core/rules/tool-policy.ts";

const NAME_MAX_CHARS = 64;
const DIGEST_CHARS = 8;
/** Argument names that model APIs accept. */
const ARGUMENT_NAME = /^[a-zA-Z0-9_.-]{1,64}$/;

const digestOf = (name: string): string =>
  createHash("sha256").update(name).digest("hex").slice(0, DIGEST_CHARS);

/**
 * Returns the name of a tool: its own name if that is valid, otherwise the valid characters of the name and a
 * digest.
 */
export function outsideName(server: string, tool: string): string {
  const prefix = outsidePrefix(server);
  const plain = tool.replaceAll(/[^a-zA-Z0-9_-]/g, "_");
  if (plain === tool && tool !== "" && prefix.length + tool.length <= NAME_MAX_CHARS) return prefix + tool;
  const digest = digestOf(tool);
  const room = NAME_MAX_CHARS - prefix.length - digest.length - 1;
  return `${prefix}${plain.slice(0, room)}_${digest}`;
}

/** Returns the name of an argument for models: its own name if model APIs accept it. */
export function argumentName(own: string): string {
  if (ARGUMENT_NAME.test(own)) return own;
  const digest = digestOf(own);
  const plain = own.replaceAll(/[^a-zA-Z0-9_.-]/g, "_");
  return `${plain.slice(0, NAME_MAX_CHARS - digest.length - 1)}_${digest}`;
}

/** Returns arguments with the server's own names, at any depth. */
export function ownNames(value: unknown, renamed: ReadonlyMap<string, string>): unknown {
  if (renamed.size === 0) return value;
  if (Array.isArray(value)) return value.map((item) => ownNames(item, renamed));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [renamed.get(name) ?? name, ownNames(inner, renamed)]),
  );
}

/** Returns whether a name has the form of an MCP tool's name. */
export function isOutsideName(name: string): boolean {
  return name.startsWith("mcp__");
}
