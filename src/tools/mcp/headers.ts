// Checks which arguments of a tool are sent as HTTP headers (`x-mcp-header` of protocol revision 2026-07-28).
// The library sends the headers, and a client must not offer a tool with an invalid declaration.

import { type Fields, fieldsOf, isObject } from "../../core/json.ts";

const KEY = "x-mcp-header";
/** A token of RFC 9110. */
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const TYPES = ["string", "integer", "boolean"];
/** Keywords whose values are data, not schemas. */
const DATA = ["default", "const", "enum", "examples"];

/** An argument, and the whole schema, can be reached through names of arguments alone. */
type Place = "schema" | "argument" | "elsewhere";

/** Returns why one declaration is invalid. Adds its name to `names`. */
function faultOf(declared: Fields, place: Place, names: Set<string>): string | undefined {
  const name = declared[KEY];
  if (place !== "argument") return "only an argument, not a part of a choice or list, can be a header";
  if (typeof name !== "string" || !NAME.test(name)) return "the name of a header is not valid";
  if (!TYPES.includes(String(declared.type))) return `the argument for header ${name} is not of a plain type`;
  if (names.has(name.toLowerCase())) return `two arguments have the header ${name}`;
  names.add(name.toLowerCase());
  return undefined;
}

/** Returns why the declarations of a schema are invalid, or undefined. The caller has limited its depth. */
export function headerProblem(
  schema: unknown,
  place: Place = "schema",
  names = new Set<string>(),
): string | undefined {
  const one = fieldsOf(schema);
  const fault = Object.hasOwn(one, KEY) ? faultOf(one, place, names) : undefined;
  if (fault !== undefined) return fault;
  const parts = Object.entries(Array.isArray(schema) ? { ...schema } : one);
  for (const [key, part] of parts.filter(([name]) => !DATA.includes(name))) {
    const isNames = key === "properties" && isObject(part);
    const next = isNames && place !== "elsewhere" ? "argument" : "elsewhere";
    for (const inner of isNames ? Object.values(part) : [part]) {
      const problem = headerProblem(inner, next, names);
      if (problem !== undefined) return problem;
    }
  }
  return undefined;
}
