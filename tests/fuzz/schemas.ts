// Generates values that are close to one of our JSON Schemas: with its types, and with meaningful words.

import fc, { type Arbitrary } from "fast-check";
import type { JsonSchema } from "../../src/core/shapes/tool.ts";
import { nastyNumber, nastyText, nastyValue } from "./nasty.ts";

/** Meaningful values: by property name, and for all other names. */
export interface Vocabulary {
  readonly names: Readonly<Record<string, readonly unknown[]>>;
  readonly words: readonly string[];
}

/**
 * Generates a value with the type of the schema, so that it passes the first check and reaches later code.
 */
export function typed(schema: JsonSchema, known: Vocabulary): Arbitrary<unknown> {
  if (Array.isArray(schema.enum)) return fc.constantFrom(...(schema.enum as unknown[]));
  const [type] = [schema.type].flat();
  switch (type) {
    case "string":
      return fc.oneof(
        { weight: 3, arbitrary: fc.constantFrom(...known.words) },
        { weight: 2, arbitrary: nastyText(300_000) },
      );
    case "integer":
      return fc.oneof(fc.nat(300), nastyNumber);
    case "number":
      return nastyNumber;
    case "boolean":
      return fc.boolean();
    case "array":
      return fc.array(typed((schema.items ?? {}) as JsonSchema, known), { maxLength: 6 });
    case "object":
      return object(schema, known);
    default:
      return nastyValue();
  }
}

function object(schema: JsonSchema, known: Vocabulary): Arbitrary<unknown> {
  const { properties, required = [] } = schema as {
    properties?: Record<string, JsonSchema>;
    required?: string[];
  };
  if (properties === undefined) return nastyValue();
  const fields = Object.entries(properties).map(([name, inner]) => {
    const values = Object.hasOwn(known.names, name) ? known.names[name] : undefined;
    const any = typed(inner, known);
    const arbitrary =
      values === undefined
        ? any
        : fc.oneof({ weight: 6, arbitrary: fc.constantFrom(...values) }, { weight: 1, arbitrary: any });
    return [name, arbitrary] as const;
  });
  return fc.record(Object.fromEntries(fields), { requiredKeys: [...required] });
}
