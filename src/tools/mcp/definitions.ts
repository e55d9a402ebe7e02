// Reads the tool list of an MCP server. The list is untrusted: every entry is checked and bounded; an invalid
// entry is left out with a reason, and the others stay.

import { fieldsOf, isObject } from "../../core/json.ts";
import type { McpServerSettings } from "../../core/shapes/settings/settings.ts";
import type { JsonSchema } from "../../core/shapes/tool.ts";
import { matchesAny } from "../../core/text/pattern.ts";
import { headerProblem } from "./headers.ts";
import { outsideName } from "./names.ts";
import { plainLine, plainWords } from "./plain-text.ts";
import type { AddedMethod, AddedTool } from "./resources.ts";
import { type Budget, LIST_STEPS_MAX, plainSchema } from "./schema.ts";

/** Maximum number of tools of one server; more would not help a model. */
const TOOLS_MAX = 100;
const OWN_NAME_MAX_CHARS = 256;
const NAME_SHOWN_MAX_CHARS = 80;
const DESCRIPTION_MAX_CHARS = 2_000;
const HEADER_MAX_CHARS = 120;

export interface Definition {
  /** The tool's name for the model. */
  readonly name: string;
  /** The tool's name on the server. */
  readonly ownName: string;
  readonly description: string;
  readonly parameters: JsonSchema;
  /** The server's own names of arguments that models see under another name. */
  readonly renamed: ReadonlyMap<string, string>;
  /** The server's original schema. The library reads from it which arguments are sent as headers. */
  readonly inputSchema: Readonly<Record<string, unknown>>;
  /** Whether the server says that a call may be repeated. */
  readonly repeatable: boolean;
  /** Absent: the server has this tool itself. */
  readonly method?: AddedMethod;
}

export interface LeftOut {
  /** The tool's name, safe to show. */
  readonly tool: string;
  readonly why: string;
}

export interface Definitions {
  readonly tools: readonly Definition[];
  readonly leftOut: readonly LeftOut[];
}

/** Reads one entry of the list. Returns the reason as a text if the entry is left out. */
function definitionOf(
  server: string,
  raw: unknown,
  budget: Budget,
  sendsHeaders: boolean,
): Definition | string {
  if (!isObject(raw)) return "it is not an object";
  const { name, description, title, inputSchema, annotations, execution } = raw;
  if (typeof name !== "string" || name === "") return "it has no name";
  if (name.length > OWN_NAME_MAX_CHARS) return `its name has more than ${OWN_NAME_MAX_CHARS} characters`;
  if (isObject(execution) && execution.taskSupport === "required") return "it can only be called as a task";
  const plain = plainSchema(inputSchema, budget);
  if (!plain.ok) return plain.error;
  const problem = sendsHeaders ? headerProblem(inputSchema) : undefined;
  if (problem !== undefined) return `its x-mcp-header is invalid: ${plainLine(problem, HEADER_MAX_CHARS)}`;
  const words = [description, title].find((text) => typeof text === "string" && text.trim() !== "");
  const told = plainWords(String(words ?? `The tool ${name}.`), DESCRIPTION_MAX_CHARS);
  return {
    name: outsideName(server, name),
    ownName: name,
    description: `[from the MCP server "${server}"] ${told}`,
    ...plain.value,
    inputSchema: fieldsOf(inputSchema),
    repeatable:
      isObject(annotations) && (annotations.readOnlyHint === true || annotations.idempotentHint === true),
  };
}

/**
 * Returns the usable tools of a server's list, in its order. `sendsHeaders`: whether arguments are sent as
 * headers, too. `added`: tools that the server does not list, which come last.
 */
export function readDefinitions(
  settings: McpServerSettings,
  list: readonly unknown[],
  sendsHeaders = false,
  added: readonly AddedTool[] = [],
): Definitions {
  const { name: server, tools: patterns } = settings;
  const leftOut: LeftOut[] = [];
  const found: Definition[] = [];
  const budget = { steps: LIST_STEPS_MAX };
  for (const [index, raw] of list.entries()) {
    const own = isObject(raw) && typeof raw.name === "string" ? raw.name : "";
    const tool = own === "" ? `number ${index + 1}` : plainLine(own, NAME_SHOWN_MAX_CHARS);
    if (patterns.length > 0 && !matchesAny(patterns, own)) continue;
    const made = definitionOf(server, raw, budget, sendsHeaders);
    if (typeof made === "string") leftOut.push({ tool, why: made });
    else if (found.some(({ ownName }) => ownName === own))
      leftOut.push({ tool, why: "the server lists it twice" });
    else found.push(made);
  }
  for (const one of added) {
    const isNamed = patterns.length === 0 || matchesAny(patterns, one.name);
    const made = definitionOf(server, one, { steps: LIST_STEPS_MAX }, false);
    // A tool of the server's own with this name wins, also if it is left out.
    if (!isNamed || typeof made === "string" || list.some((raw) => fieldsOf(raw).name === one.name)) continue;
    found.push({ ...made, method: one.method });
  }
  // A tool with a valid name keeps this name, wherever the tool is in the list. Another tool whose generated
  // name is the same is left out.
  const plainFirst = found.toSorted((a, b) => Number(isMade(a)) - Number(isMade(b)));
  const owner = new Map<string, Definition>();
  for (const one of plainFirst) if (!owner.has(one.name)) owner.set(one.name, one);
  const unique = found.filter((one) => owner.get(one.name) === one);
  for (const { ownName } of found.filter((one) => !unique.includes(one))) {
    leftOut.push({ tool: plainLine(ownName, NAME_SHOWN_MAX_CHARS), why: "another tool has this name" });
  }
  for (const { ownName } of unique.slice(TOOLS_MAX)) {
    const why = `more than ${TOOLS_MAX} tools: name the wanted ones in tools.mcp.servers.${server}.tools`;
    leftOut.push({ tool: plainLine(ownName, NAME_SHOWN_MAX_CHARS), why });
  }
  return { tools: unique.slice(0, TOOLS_MAX), leftOut };
}

const isMade = ({ name, ownName }: Definition): boolean => !name.endsWith(`__${ownName}`);
