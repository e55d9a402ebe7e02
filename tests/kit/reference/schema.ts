// Lists the fields of a JSON Schema for the generated pages.

import type { Schema } from "../../../src/config/schema/setting.ts";

export interface Field {
  /** Names joined by dots. `[]` stands for the items of a list. */
  readonly path: string;
  readonly schema: Schema;
  readonly required: boolean;
}

/** Returns the fields of an object, including those of inner objects. */
export function fieldsOf(schema: Schema, prefix = ""): Field[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, inner]) => {
    const path = `${prefix}${name}`;
    const field = { path, schema: inner, required: schema.required?.includes(name) === true };
    return [field, ...fieldsOf(inner, `${path}.`), ...fieldsOf(inner.items ?? {}, `${path}[].`)];
  });
}
