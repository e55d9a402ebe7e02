// How methods treat an idempotency key, as their names say it to clients, and as their params say it.

import { expect, test } from "vitest";
import { idempotencyOf } from "../../src/contract/idempotency.ts";
import { METHODS } from "../../src/contract/methods.ts";

test("the names and the params of all methods agree about idempotency keys", () => {
  const inParams = Object.entries(METHODS).map(([name, { params }]) => {
    if (!("idempotencyKey" in params.properties)) return [name, "none"];
    const required: readonly string[] = params.required ?? [];
    return [name, required.includes("idempotencyKey") ? "required" : "optional"];
  });
  const inNames = Object.keys(METHODS).map((name) => [name, idempotencyOf(name).replace("run", "required")]);
  expect(inNames).toEqual(inParams);
});
