// Encoding long texts as JSON in steps.

import { expect, test } from "vitest";
import { jsonInSteps } from "../../src/core/json-steps.ts";

const LONG = '\n"quoted" and \\ escaped, ünïcödé, \u{1f600} and \ud83d alone'.repeat(20_000);

test.each([
  ["a value without a long text", { a: [1, "two", null, { b: true }], c: undefined }],
  ["a long text that occurs twice", { payloads: [{ text: LONG }], text: LONG, none: undefined, n: 0 }],
  ["two long texts in lists", [[LONG, undefined, 1], { "a key": [`${LONG}.`] }]],
])("encodes %s as JSON.stringify does", async (_, value) => {
  const json = await jsonInSteps(value, () => undefined);
  expect(JSON.parse(json)).toEqual(JSON.parse(JSON.stringify(value)));
});

test("lets other work run while it encodes a long text, and encodes a repeated text only once", async () => {
  const count = async (value: object): Promise<number> => {
    let rests = 0;
    await jsonInSteps(value, () => {
      rests += 1;
      return Promise.resolve();
    });
    return rests;
  };
  expect(await count({ text: "short" })).toBe(0);
  const once = await count({ text: LONG });
  expect(once).toBeGreaterThan(10);
  expect(await count({ text: LONG, payloads: [{ text: LONG }] })).toBe(once);
});
