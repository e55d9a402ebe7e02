// Compares the settings with those of version 0.1, so that `parley upgrade --check` names each difference.

import { expect, test } from "vitest";
import { configSchema } from "../../src/config/schema/schema.ts";
import type { Schema } from "../../src/config/schema/setting.ts";
import { CHANGED_DEFAULTS } from "../../src/config/source.ts";
import { showPath } from "../../src/core/text/value-path.ts";
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
  expect(changed.sort()).toEqual(CHANGED_DEFAULTS.map(({ path }) => showPath(path)).sort());
});
