// Forms of MCP servers: which are taken, and which answers fit.

import { expect, test } from "vitest";
import { completeAnswer, readForm, readTyped, schemaOfForm } from "../../../src/core/rules/approval/form.ts";

const plain = (text: string): string => text;
const formOf = (properties: object, required: readonly string[] = []) =>
  readForm({ type: "object", properties, required }, plain);

test.each<[string, unknown, string]>([
  ["no object", "text", "no flat object"],
  ["a list", { type: "array" }, "no flat object"],
  [
    "a nested object",
    { type: "object", properties: { a: { type: "object" } } },
    'has the type "\\"object\\""',
  ],
  [
    "a list of texts",
    { type: "object", properties: { a: { type: "array", items: { type: "string" } } } },
    "to choose from",
  ],
  [
    "options of numbers",
    { type: "object", properties: { a: { type: "number", enum: [1, 2] } } },
    "no short, different texts",
  ],
  ["no options", { type: "object", properties: { a: { type: "string", enum: [] } } }, "no options"],
  ["a field that is no object", { type: "object", properties: { a: true } }, 'a wrong field "a"'],
  [
    "too many fields",
    {
      type: "object",
      properties: Object.fromEntries(Array.from({ length: 21 }, (_, at) => [at, { type: "string" }])),
    },
    "over 20 fields",
  ],
])("%s is not taken as a form", (_, schema, words) => {
  const form = readForm(schema, plain);
  expect(form.ok ? "" : form.error).toContain(words);
});

test.each<[object, unknown, string]>([
  [{ type: "string", minLength: 2, maxLength: 3 }, "a", "have 2 to 3 characters"],
  [{ type: "string", maxLength: 2 }, "👋👋👋", "have at most 2 characters"],
  [{ type: "string", maxLength: 3 }, "👋👋👋", ""],
  [{ type: "string" }, 1, "be a text"],
  [{ type: "string", format: "email" }, "ann", "be an address such as ann@example.com"],
  [{ type: "string", format: "uri" }, "https://a.example", ""],
  [{ type: "string", format: "date" }, "tomorrow", "be a date such as 2026-07-28"],
  [{ type: "string", format: "date-time" }, "2026-07-28T12:00:00Z", ""],
  [{ type: "string", format: "colour" }, "any", ""],
  [{ type: "integer" }, 1.5, "be a whole number"],
  [{ type: "number", minimum: -2, maximum: 2 }, -3, "be -2 to 2"],
  [{ type: "number" }, Number.NaN, "be a number"],
  [{ type: "number" }, -3, ""],
  [{ type: "boolean" }, "yes", "be true or false"],
  [{ type: "string", enum: ["a", "b"] }, "c", "be one of: a, b"],
  [{ type: "string", oneOf: [{ const: "a", title: "A" }] }, "a", ""],
  [{ type: "array", items: { enum: ["a", "b"] } }, ["a", "c"], "be a list of: a, b"],
  [{ type: "array", items: { enum: ["a", "b"] }, minItems: 1 }, [], "have at least 1 different options"],
  [{ type: "array", items: { anyOf: [{ const: "a" }] } }, ["a", "a"], "different options"],
  [{ type: "array", items: { enum: ["a", "b"] } }, ["b"], ""],
])("the field %j of a form and the value %j: %s", (property, value, problem) => {
  const form = formOf({ it: property });
  if (!form.ok) throw new Error(form.error);
  const answer = completeAnswer(form.value, { it: value });
  expect(answer).toMatchObject(problem === "" ? { ok: true, value: { it: value } } : { ok: false });
  if (!answer.ok) expect(answer.error).toContain(problem);
});

test("a missing field gets its default, a wrong default counts as none, and null stands for no value", () => {
  const form = formOf(
    { a: { type: "string", default: "x" }, b: { type: "integer", default: "two" }, c: { type: "boolean" } },
    ["a"],
  );
  if (!form.ok) throw new Error(form.error);
  expect(completeAnswer(form.value, {})).toEqual({ ok: true, value: { a: "x" } });
  expect(completeAnswer(form.value, { a: null })).toMatchObject({ error: 'the field "a" is required' });
  expect(completeAnswer(form.value, { a: "y", b: null, c: false })).toEqual({
    ok: true,
    value: { a: "y", c: false },
  });
  expect(completeAnswer(form.value, { toString: 1 })).toMatchObject({
    error: 'the field "toString" is not in the form',
  });
});

test("typed words become values of the field's kind", () => {
  const form = formOf({
    n: { type: "number" },
    b: { type: "boolean" },
    c: { type: "string", enum: ["a1", "b1"], enumNames: ["Apple", "Bear"] },
    d: { type: "array", items: { enum: ["a", "b"] } },
    s: { type: "string" },
  });
  if (!form.ok) throw new Error(form.error);
  const typed = ["1.5", "Yes", "Bear", "a, b", " text "];
  expect(form.value.map((field, at) => readTyped(field, typed[at] ?? ""))).toEqual([
    1.5,
    true,
    "b1",
    ["a", "b"],
    " text ",
  ]);
  expect(form.value.map((field) => readTyped(field, " "))).toEqual(Array(5).fill(undefined));
  expect(form.value.map((field) => readTyped(field, "zzz"))).toEqual(["zzz", "zzz", "zzz", ["zzz"], "zzz"]);
});

test("titles come before values, and two equal ones are refused; a default that cannot be read is dropped", () => {
  const form = (property: object) =>
    readForm({ type: "object", properties: { size: property } }, (text) => text);
  const options = [
    { const: "1", title: "2" },
    { const: "2", title: "3" },
  ];
  const read = form({ type: "string", oneOf: options });
  const [field] = read.ok ? read.value : [];
  expect(field && [readTyped(field, "2"), readTyped(field, "3"), readTyped(field, "1")]).toEqual([
    "1",
    "2",
    "1",
  ]);
  const equal = form({ type: "string", oneOf: options.map((one) => ({ ...one, title: "Yes" })) });
  expect(equal).toMatchObject({ ok: false, error: expect.stringContaining("different") });
  const hidden = form({ type: "string", default: "a\u202eb" });
  expect(hidden.ok && hidden.value[0]).not.toHaveProperty("default");
});

test("a form is passed on as its server wrote it: titles, limits, defaults and all kinds of choices", () => {
  const properties = {
    name: { type: "string", title: "Your name", description: "As on the card.", minLength: 1, maxLength: 9 },
    mail: { type: "string", format: "email", default: "ann@example.com" },
    age: { type: "integer", minimum: 1, maximum: 99, default: 30 },
    score: { type: "number", default: 95.5 },
    sure: { type: "boolean", default: true },
    one: { type: "string", enum: ["a", "b"], default: "a" },
    titled: { type: "string", oneOf: [{ const: "a", title: "First" }] },
    older: { type: "string", enum: ["a", "b"], enumNames: ["First", "Second"] },
    some: { type: "array", items: { type: "string", enum: ["a", "b"] }, minItems: 1, maxItems: 2 },
    named: { type: "array", items: { anyOf: [{ const: "a", title: "First" }] }, default: ["a"] },
  };
  const schema = { type: "object", properties, required: ["name", "older"] };
  const form = readForm(schema, plain);
  expect(schemaOfForm(form.ok ? form.value : [])).toEqual(schema);
});
