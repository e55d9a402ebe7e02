// Describes the results of tools to MCP clients, in short: the fields of a result with their types.
// OS1: a result that is no error fits the description of its tool. Inner objects are not described, because
//      the list of tools would become three times as large; docs/reference/TOOLS.md describes them.

import { TOOLS, type ToolName } from "../../contract/tools.ts";
import { type Fields, fieldsOf, isObject, listOf } from "../../core/json.ts";

type OutputSchema = { readonly type: "object"; readonly [field: string]: unknown };

/** Returns the types that a schema names, or undefined if it allows other types, too. */
function typesIn(schema: Fields): readonly unknown[] | undefined {
  const { type, enum: values, anyOf } = schema;
  if (type !== undefined) return Array.isArray(type) ? type : [type];
  if (Array.isArray(anyOf)) {
    const all = anyOf.map((one) => typesIn(fieldsOf(one)));
    return all.includes(undefined) ? undefined : all.flatMap((one) => one ?? []);
  }
  if (!Array.isArray(values)) return undefined;
  return values.every((one) => typeof one === "string") ? ["string"] : undefined;
}

function shortField(forms: readonly Fields[]): Fields {
  const all = forms.map(typesIn);
  const types = all.includes(undefined) ? [] : [...new Set(all.flatMap((one) => one ?? []))];
  const values = forms.every((one) => Array.isArray(one.enum)) ? forms.flatMap((one) => one.enum) : [];
  return {
    ...(types.length === 0 ? {} : { type: types.length === 1 ? types[0] : types }),
    ...(values.length === 0 ? {} : { enum: [...new Set(values)] }),
  };
}

function shortSchema(result: Fields): OutputSchema {
  const forms = Array.isArray(result.anyOf) ? result.anyOf.filter(isObject) : [result];
  const names = new Set(forms.flatMap((one) => Object.keys(fieldsOf(one.properties))));
  const properties = [...names].map((name) => {
    const found = forms.flatMap((one) => fieldsOf(one.properties)[name] ?? []);
    return [name, shortField(found.map(fieldsOf))] as const;
  });
  const required = [...names].filter((name) => forms.every((one) => listOf(one.required).includes(name)));
  return { type: "object", properties: Object.fromEntries(properties), required };
}

const SCHEMAS = new Map<string, OutputSchema>();

/** Returns the description of the results of a built-in tool, or undefined for another tool. */
export function outputSchemaOf(name: string): OutputSchema | undefined {
  if (!Object.hasOwn(TOOLS, name)) return undefined;
  const known = SCHEMAS.get(name) ?? shortSchema(fieldsOf(TOOLS[name as ToolName].result));
  SCHEMAS.set(name, known);
  return known;
}
