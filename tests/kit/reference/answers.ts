// Writes the schemas of payloads as TypeScript declarations, as the protocol page shows them.

import type { Schema } from "../../../src/config/schema/setting.ts";
import { BODIES } from "../../../src/contract/bodies.ts";
import { EVENTS } from "../../../src/contract/events.ts";
import { EVENT_FRAME, HELLO_OK, REQUEST_FRAME, RESPONSE_FRAME } from "../../../src/contract/frames.ts";
import { METHODS } from "../../../src/contract/methods.ts";
import { TOOLS } from "../../../src/contract/tools.ts";
import type { Declaration } from "./declarations.ts";

type Titled = Schema & {
  readonly title?: string;
  /** The sentence that describes a schema which has a title. */
  readonly $comment?: string;
};

const INDENT = "  ";

function indented(text: string): string {
  return text.replaceAll(/\n/g, `\n${INDENT}`);
}

function listOf(type: string): string {
  return /[|&]/.test(type.replaceAll(/\{[\s\S]*\}/g, "")) ? `(${type})[]` : `${type}[]`;
}

/** Returns the fields of an object as lines of a declaration, each with its description above it. */
function fieldLines(schema: Titled): string[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, inner]) => {
    const mark = schema.required?.includes(name) === true ? "" : "?";
    const shown = /^\w+$/.test(name) ? name : JSON.stringify(name);
    const doc = inner.description === undefined ? [] : [`/** ${inner.description} */`];
    return [...doc, `${shown}${mark}: ${typeText(inner)};`].map((line) => INDENT + indented(line));
  });
}

/** Returns the type of a schema's values as TypeScript. A schema with a title is shown by its title. */
export function typeText(schema: Titled, isRoot = false): string {
  if (schema.title !== undefined && !isRoot) return schema.title;
  if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (schema.anyOf !== undefined) return schema.anyOf.map((inner) => typeText(inner)).join(" | ");
  if (schema.properties !== undefined) {
    const text = `{\n${fieldLines(schema).join("\n")}\n}`;
    return [schema.type].flat().includes("null") ? `${text} | null` : text;
  }
  if (typeof schema.additionalProperties === "object")
    return `Record<string, ${typeText(schema.additionalProperties)}>`;
  const names = [schema.type ?? "unknown"].flat().map((type) => {
    if (type === "array") return listOf(typeText(schema.items ?? {}));
    return type === "integer" ? "number" : type;
  });
  return names.join(" | ");
}

/** Returns the schemas of a schema's alternatives, items and values. */
function inside({ anyOf = [], items, additionalProperties }: Titled): readonly Titled[] {
  const values = typeof additionalProperties === "object" ? [additionalProperties] : [];
  return [...anyOf, ...(items === undefined ? [] : [items]), ...values];
}

/** Returns the fields of an object, including those of inner objects without a title. */
function fieldsOf(schema: Titled): Declaration["fields"] {
  const fields: [string, Titled][] = Object.entries(schema.properties ?? {});
  return fields.flatMap(([name, inner]) => [
    { name, type: typeText(inner), doc: inner.description ?? inner.$comment ?? "" },
    ...[inner, ...inside(inner)].filter((one: Titled) => one.title === undefined).flatMap(fieldsOf),
  ]);
}

function declarationOf(name: string, schema: Titled): Declaration {
  const isInterface = schema.properties !== undefined;
  const body = typeText(schema, true);
  return {
    name,
    path: "contract",
    doc: schema.$comment ?? schema.description ?? "",
    text: isInterface ? `interface ${name} ${body}` : `type ${name} = ${body};`,
    fields: [schema, ...inside(schema)].flatMap(fieldsOf),
  };
}

/** Collects the schemas with a title inside this one. A title without fields names a type of `src/core`. */
function collect(schema: Titled, into: Map<string, Titled>): void {
  if (schema.title !== undefined && isDescribed(schema)) {
    if (into.has(schema.title)) return;
    into.set(schema.title, schema);
  }
  for (const one of [...Object.values(schema.properties ?? {}), ...inside(schema)]) collect(one, into);
}

function isDescribed({ type, enum: values, anyOf }: Titled): boolean {
  return type !== undefined || values !== undefined || anyOf !== undefined;
}

/**
 * Returns every schema of a payload: events, the greeting, and answers of methods, HTTP requests and
 * tools.
 */
function roots(): [string, Titled][] {
  const events = Object.entries(EVENTS).map(([name, { payload }]): [string, object] => [
    `event ${name}`,
    payload,
  ]);
  const results = [METHODS, BODIES, TOOLS].flatMap((table) =>
    Object.entries(table).map(([name, { result }]): [string, object] => [name, result]),
  );
  const frames = Object.entries({ HELLO_OK, REQUEST_FRAME, RESPONSE_FRAME, EVENT_FRAME });
  return [...frames, ...events, ...results] as [string, Titled][];
}

/** Returns the payloads by name, and the declarations of the types that they use. */
export function schemaPayloads(): {
  readonly payloads: ReadonlyMap<string, { readonly type: string; readonly doc: string }>;
  readonly types: ReadonlyMap<string, Declaration>;
  /** Payloads that are objects and have no title. */
  readonly untitled: readonly Declaration[];
} {
  const titled = new Map<string, Titled>();
  const payloads = new Map<string, { type: string; doc: string }>();
  const untitled: Declaration[] = [];
  for (const [name, schema] of roots()) {
    collect(schema, titled);
    if (schema.title === undefined) untitled.push(declarationOf(name, schema));
    const doc = schema.title === undefined ? (schema.description ?? "") : "";
    payloads.set(name, { type: typeText(schema), doc });
  }
  const types = new Map([...titled].map(([name, one]) => [name, declarationOf(name, one)]));
  return { payloads, types, untitled };
}
