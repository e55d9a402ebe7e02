// Damages valid texts, bytes and JSON trees slightly, so that they pass the first checks.

import fc, { type Arbitrary } from "fast-check";
import { nastyName, nastyNumber, nastyText, nastyValue, objectOf } from "./nasty.ts";

/** A position as a fraction of the length, so that it is valid for any length. */
const place = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

type TextEdit =
  | { readonly kind: "cut" | "double" | "drop"; readonly at: number; readonly length: number }
  | { readonly kind: "insert" | "replace"; readonly at: number; readonly text: string }
  | { readonly kind: "flip"; readonly at: number; readonly bit: number }
  | { readonly kind: "number"; readonly at: number; readonly value: number };

const length = fc.oneof(fc.nat(8), fc.nat(400));
const textEdit: Arbitrary<TextEdit> = fc.oneof(
  fc.record({ kind: fc.constantFrom("cut" as const, "double" as const, "drop" as const), at: place, length }),
  fc.record({
    kind: fc.constantFrom("insert" as const, "replace" as const),
    at: place,
    text: nastyText(4_000),
  }),
  fc.record({ kind: fc.constant("flip" as const), at: place, bit: fc.nat(15) }),
  fc.record({ kind: fc.constant("number" as const), at: place, value: nastyNumber }),
);

function editText(text: string, edit: TextEdit): string {
  const at = Math.floor(edit.at * (text.length + 1));
  switch (edit.kind) {
    case "cut":
      return text.slice(0, at);
    case "drop":
      return text.slice(0, at) + text.slice(at + edit.length);
    case "double":
      return text.slice(0, at) + text.slice(at, at + edit.length).repeat(2) + text.slice(at + edit.length);
    case "insert":
      return text.slice(0, at) + edit.text + text.slice(at);
    case "replace":
      return text.slice(0, at) + edit.text + text.slice(at + edit.text.length);
    case "flip":
      return (
        text.slice(0, at) + String.fromCharCode(text.charCodeAt(at) ^ (1 << edit.bit)) + text.slice(at + 1)
      );
    case "number": {
      const numbers = [...text.matchAll(/\d+/g)];
      const chosen = numbers[Math.floor(edit.at * numbers.length)];
      if (chosen === undefined) return text;
      return text.slice(0, chosen.index) + String(edit.value) + text.slice(chosen.index + chosen[0].length);
    }
  }
}

/** Generates the unchanged text, or the text with a few edits. */
export function damagedText(valid: Arbitrary<string>, editsMax = 3): Arbitrary<string> {
  return fc
    .tuple(valid, fc.array(textEdit, { maxLength: editsMax }))
    .map(([text, edits]) => edits.reduce(editText, text));
}

/** An edit of bytes. `at`: the position as a fraction of the length. */
export type BytesEdit =
  | { readonly kind: "cut"; readonly at: number }
  | { readonly kind: "flip"; readonly at: number; readonly bit: number }
  | { readonly kind: "fill"; readonly at: number; readonly length: number; readonly value: number }
  | { readonly kind: "insert"; readonly at: number; readonly length: number };

export const bytesEdit: Arbitrary<BytesEdit> = fc.oneof(
  fc.record({ kind: fc.constant("cut" as const), at: place }),
  fc.record({ kind: fc.constant("flip" as const), at: place, bit: fc.nat(7) }),
  fc.record({
    kind: fc.constant("fill" as const),
    at: place,
    length: fc.oneof(fc.nat(16), fc.nat(9_000)),
    value: fc.constantFrom(0, 0xff, 0x41),
  }),
  fc.record({ kind: fc.constant("insert" as const), at: place, length: fc.nat(5_000) }),
);

export function editBytes(bytes: Buffer, edit: BytesEdit): Buffer {
  const at = Math.floor(edit.at * bytes.length);
  switch (edit.kind) {
    case "cut":
      return bytes.subarray(0, at);
    case "flip": {
      const copy = Buffer.from(bytes);
      if (at < copy.length) copy[at] = (copy[at] ?? 0) ^ (1 << edit.bit);
      return copy;
    }
    case "fill":
      return Buffer.from(bytes).fill(edit.value, at, Math.min(bytes.length, at + edit.length));
    case "insert":
      return Buffer.concat([bytes.subarray(0, at), Buffer.alloc(edit.length, 0x20), bytes.subarray(at)]);
  }
}

type TreeEdit =
  | { readonly kind: "set"; readonly at: number; readonly value: unknown }
  | { readonly kind: "remove" | "wrap" | "wrapNamed" | "asText" | "double"; readonly at: number }
  | { readonly kind: "rename"; readonly at: number; readonly name: string }
  | { readonly kind: "add"; readonly at: number; readonly name: string; readonly value: unknown };

function treeEdit(names: readonly string[]): Arbitrary<TreeEdit> {
  const known = names.length === 0 ? nastyName : fc.oneof(fc.constantFrom(...names), nastyName);
  return fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({ kind: fc.constant("set" as const), at: place, value: nastyValue() }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constantFrom(
          "remove" as const,
          "wrap" as const,
          "wrapNamed" as const,
          "asText" as const,
          "double" as const,
        ),
        at: place,
      }),
    },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant("rename" as const), at: place, name: known }) },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constant("add" as const),
        at: place,
        name: known,
        value: nastyValue(),
      }),
    },
  );
}

type Path = readonly string[];
const DEPTH_MAX = 12;

function isParent(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

/** Returns the paths of all nodes of a tree, the root first, up to the depth of the edits. */
function pathsIn(value: unknown, above: Path = []): Path[] {
  if (!isParent(value) || above.length >= DEPTH_MAX) return [above];
  const inner = Object.entries(value).flatMap(([name, child]) => pathsIn(child, [...above, name]));
  return [above, ...inner];
}

/**
 * Copies the tree and replaces the value at `path` by the result of `change`. The result `[]` removes the
 * entry.
 */
function changed(
  value: unknown,
  path: Path,
  change: (name: string, value: unknown) => readonly (readonly [string, unknown])[],
): unknown {
  const [step, ...rest] = path;
  if (step === undefined || !isParent(value)) return change("", value)[0]?.[1] ?? null;
  const entries = Object.entries(value).flatMap(([name, child]): (readonly [string, unknown])[] => {
    if (name !== step) return [[name, child]];
    return rest.length === 0 ? [...change(name, child)] : [[name, changed(child, rest, change)]];
  });
  return Array.isArray(value) ? entries.map(([, child]) => child) : objectOf(entries);
}

function editTree(tree: unknown, edit: TreeEdit): unknown {
  const paths = pathsIn(tree);
  const path = paths[Math.floor(edit.at * paths.length)] ?? [];
  return changed(tree, path, (name, value) => {
    switch (edit.kind) {
      case "set":
        return [[name, edit.value]];
      case "remove":
        return [];
      case "wrap":
        return [[name, [value]]];
      case "wrapNamed":
        return [[name, objectOf([[name, value]])]];
      case "asText":
        return [[name, typeof value === "string" ? Number(value) || 0 : JSON.stringify(value)]];
      case "double":
        return [
          [name, value],
          [`${name}2`, value],
        ];
      case "rename":
        return [[edit.name, value]];
      case "add":
        return [[name, isParent(value) ? added(value, edit.name, edit.value) : edit.value]];
    }
  });
}

function added(parent: object, name: string, value: unknown): unknown {
  return Array.isArray(parent) ? [...parent, value] : objectOf([...Object.entries(parent), [name, value]]);
}

/**
 * Generates the unchanged tree, or the tree with a few edits. `names`: keys that may be inserted. Input
 * and output are JSON.
 */
export function damagedTree(
  valid: Arbitrary<unknown>,
  names: readonly string[] = [],
  editsMax = 3,
): Arbitrary<unknown> {
  return fc
    .tuple(valid, fc.array(treeEdit(names), { maxLength: editsMax }))
    .map(([tree, edits]) => edits.reduce(editTree, tree));
}
