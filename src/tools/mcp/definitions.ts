// Owns the list of tools that an outside server offers: which of them are taken, and what is told of them.
// D1: the list is somebody else's: everything in it is checked and bounded, and what does not fit is left out
//     with a reason; it never takes the rest along.

import { isObject } from "../../core/json.ts";
import { matchesAny } from "../../core/pattern.ts";
import type { McpServerSettings } from "../../core/settings.ts";
import type { JsonSchema } from "../../core/tool.ts";
import { outsideName } from "./names.ts";
import { plainSchema } from "./schema.ts";
import { plainLine, plainWords } from "./words.ts";

/** More than this of one server help no model. */
const TOOLS_MAX = 100;
const OWN_NAME_MAX_CHARS = 256;
const NAME_SHOWN_MAX_CHARS = 80;
const DESCRIPTION_MAX_CHARS = 2_000;

export interface Definition {
  /** As the model knows it. */
  readonly name: string;
  /** As the server knows it. */
  readonly ownName: string;
  readonly description: string;
  readonly parameters: JsonSchema;
  /** As the server gave it: the library reads from it what belongs into headers. */
  readonly inputSchema: Readonly<Record<string, unknown>>;
  /** The server says that a call may be made twice. */
  readonly repeatable: boolean;
}

export interface LeftOut {
  /** Fit to be shown. */
  readonly tool: string;
  readonly why: string;
}

export interface Definitions {
  readonly tools: readonly Definition[];
  readonly leftOut: readonly LeftOut[];
}

function repeatableBy(annotations: unknown): boolean {
  return isObject(annotations) && (annotations.readOnlyHint === true || annotations.idempotentHint === true);
}

/** One entry of the list, or why it is left out. */
function definitionOf(server: string, raw: unknown): Definition | string {
  if (!isObject(raw)) return "it is no object";
  const { name, description, title, inputSchema, annotations, execution } = raw;
  if (typeof name !== "string" || name === "") return "it has no name";
  if (name.length > OWN_NAME_MAX_CHARS) return `its name has more than ${OWN_NAME_MAX_CHARS} characters`;
  if (isObject(execution) && execution.taskSupport === "required") return "it can be called as a task only";
  const parameters = plainSchema(inputSchema);
  if (!parameters.ok) return parameters.error;
  const words = [description, title].find((text) => typeof text === "string" && text.trim() !== "");
  const told = plainWords(String(words ?? `The tool ${name}.`), DESCRIPTION_MAX_CHARS);
  return {
    name: outsideName(server, name),
    ownName: name,
    description: `[from the MCP server "${server}"] ${told}`,
    parameters: parameters.value,
    inputSchema: inputSchema as Definition["inputSchema"],
    repeatable: repeatableBy(annotations),
  };
}

/** What of a server's list can be used, in the server's order. */
export function readDefinitions(settings: McpServerSettings, list: readonly unknown[]): Definitions {
  const { name: server, tools: patterns } = settings;
  const leftOut: LeftOut[] = [];
  const found: Definition[] = [];
  for (const [index, raw] of list.entries()) {
    const own = isObject(raw) && typeof raw.name === "string" ? raw.name : "";
    const tool = own === "" ? `number ${index + 1}` : plainLine(own, NAME_SHOWN_MAX_CHARS);
    if (patterns.length > 0 && !matchesAny(patterns, own)) continue;
    const made = definitionOf(server, raw);
    if (typeof made === "string") leftOut.push({ tool, why: made });
    else if (found.some(({ ownName }) => ownName === own)) leftOut.push({ tool, why: "it is there twice" });
    else found.push(made);
  }
  // A tool that has its own name keeps it, wherever it stands: a made-up name that equals it gives way.
  const plainFirst = found.toSorted((a, b) => Number(isMade(a)) - Number(isMade(b)));
  const owner = new Map<string, Definition>();
  for (const one of plainFirst) if (!owner.has(one.name)) owner.set(one.name, one);
  const unique = found.filter((one) => owner.get(one.name) === one);
  for (const { ownName } of found.filter((one) => !unique.includes(one))) {
    leftOut.push({ tool: plainLine(ownName, NAME_SHOWN_MAX_CHARS), why: "another tool has its name" });
  }
  for (const { ownName } of unique.slice(TOOLS_MAX)) {
    const why = `more than ${TOOLS_MAX} tools: name the wanted ones in tools.mcp.servers.${server}.tools`;
    leftOut.push({ tool: plainLine(ownName, NAME_SHOWN_MAX_CHARS), why });
  }
  return { tools: unique.slice(0, TOOLS_MAX), leftOut };
}

const isMade = ({ name, ownName }: Definition): boolean => !name.endsWith(`__${ownName}`);
