// Compares the settings with those of version 0.1, so that `parley upgrade --check` names each difference.

import { expect, test } from "vitest";
import { configSchema } from "../../src/config/schema/schema.ts";
import type { Schema } from "../../src/config/schema/setting.ts";
import { CHANGED_DEFAULTS } from "../../src/config/source.ts";
import { fixture } from "./old-stores.ts";

/** Adds the default of each setting, by its path. */
function defaultsIn(schema: Schema, path = "", found: Record<string, unknown> = {}): Record<string, unknown> {
  const { properties = {}, items, additionalProperties: named } = schema;
  if (path !== "") found[path] = schema.default ?? null;
  for (const [key, inner] of Object.entries(properties))
    defaultsIn(inner, path === "" ? key : `${path}.${key}`, found);
  if (items !== undefined) defaultsIn(items, `${path}[]`, found);
  if (typeof named === "object") defaultsIn(named, `${path}.*`, found);
  return found;
}

test("each setting that a release removed, and each default that it changed, is listed with its value before", () => {
  const before = JSON.parse(fixture("settings-0.1.json.gz").toString()) as Record<string, unknown>;
  const now = defaultsIn(configSchema);
  expect(Object.keys(before).length).toBeGreaterThan(500);
  // A section without a default and one with an empty one are the same.
  const text = (value: unknown) => JSON.stringify(value ?? {});
  const changed = Object.keys(before).filter(
    (path) => !(path in now) || text(before[path]) !== text(now[path]),
  );
  // The list has more: the file is of the last program of 0.1, and users may have had an earlier one.
  const listed = new Map(CHANGED_DEFAULTS.map((one) => [one.path.join("."), one]));
  expect(changed.filter((path) => !listed.has(path))).toEqual([]);
  const stale = [...listed].filter(([path, one]) => text(now[path]) !== text(one.now));
  // The schema has no default for this one, because it depends on the sandbox.
  expect(stale.map(([path]) => path)).toEqual(["tools.exec.approval"]);
});
