// Hostile and broken frames: each gets a clear answer or close code, and other connections are unaffected.

import { expect, test } from "vitest";
import { NODE } from "../../../src/contract/methods/parts.ts";
import { METHODS, type MethodName, methodOf } from "../../../src/contract/methods.ts";
import { forFile } from "../../kit/cleanup.ts";
import { joinedNode, NODE_TOKENS, pairedDevice } from "../clients/devices.ts";
import { type House, joined, openHouse, openRaw, type Raw } from "../kit.ts";

async function stillWorks(raw: Raw): Promise<void> {
  raw.send({ type: "req", id: "alive", method: "health" });
  expect((await raw.res("alive")).ok).toBe(true);
}

const DEEP = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
const BROKEN: [string, string, string, RegExp][] = [
  ["no JSON", "{nope", "invalid", /not valid JSON/],
  ["nothing", "", "invalid", /not valid JSON/],
  ["a list", "[]", "invalid", /one JSON object/],
  ["a list of requests", '[{"type":"req","id":"1","method":"health"}]', "invalid", /one JSON object/],
  ["null", "null", "invalid", /one JSON object/],
  ["a number", "7", "invalid", /one JSON object/],
  ["a frame without a type", '{"id":"x","method":"health"}', "x", /"req" only/],
  ["an event from a client", '{"type":"event","event":"tick"}', "invalid", /"req" only/],
  ["a response from a client", '{"type":"res","id":"x","ok":true}', "x", /"req" only/],
  ["no id", '{"type":"req","method":"health"}', "invalid", /id must be/],
  ["a number as id", '{"type":"req","id":5,"method":"health"}', "invalid", /id must be/],
  ["a huge id", `{"type":"req","id":"${"x".repeat(500)}","method":"health"}`, "invalid", /id must be/],
  ["no method", '{"type":"req","id":"x"}', "x", /method must be/],
  ["an object as method", '{"type":"req","id":"x","method":{}}', "x", /method must be/],
  [
    "an unknown method",
    '{"type":"req","id":"x","method":"session.list"}',
    "x",
    /unknown method "session.list"; did you mean "sessions.list"/,
  ],
  [
    "a method named like a prototype's field",
    '{"type":"req","id":"x","method":"__proto__"}',
    "x",
    /unknown method/,
  ],
  ["a method of every object", '{"type":"req","id":"x","method":"constructor"}', "x", /unknown method/],
  [
    "a type that is inherited",
    '{"__proto__":{"type":"req","id":"x","method":"health"}}',
    "invalid",
    /"req" only/,
  ],
  [
    "params as a list",
    '{"type":"req","id":"x","method":"health","params":[]}',
    "x",
    /params must be an object, got an array/,
  ],
  [
    "params as text",
    '{"type":"req","id":"x","method":"health","params":"{}"}',
    "x",
    /params must be an object/,
  ],
  [
    "a prototype as a param",
    '{"type":"req","id":"x","method":"health","params":{"__proto__":{"a":1}}}',
    "x",
    /unknown param "__proto__"/,
  ],
  [
    "deep nesting as params",
    `{"type":"req","id":"x","method":"tools.invoke","params":{"name":"x","arguments":{"a":${DEEP}}}}`,
    "x",
    /at most 64 levels/,
  ],
  ["deep nesting as a frame", DEEP, "invalid", /not valid JSON|one JSON object/],
];
test.each(BROKEN)("%s gets an error, and the connection stays open", async (_, text, id, words) => {
  const house = await openHouse();
  const raw = await joined(house);
  raw.text(text);
  const answer = await raw.res(id);
  expect(answer.error?.code).toBe("INVALID_REQUEST");
  expect(answer.error?.message).toMatch(words);
  await stillWorks(raw);
});

test.each(BROKEN.slice(0, 13))("before connect, %s ends the connection", async (_, text) => {
  const house = await openHouse();
  const raw = await openRaw(house.url);
  raw.text(text);
  expect((await raw.closed()).code).toBe(1008);
  await stillWorks(await joined(house));
});

test("binary messages are refused with 1003, before and after connect", async () => {
  const house = await openHouse();
  for (const raw of [await openRaw(house.url), await joined(house)]) {
    raw.socket.send(Buffer.from('{"type":"req","id":"x","method":"health"}'));
    expect(await raw.closed()).toMatchObject({ code: 1003, reason: expect.stringContaining("binary") });
  }
});

test("a message of 30 MB is refused with 1009, and other connections continue", async () => {
  const house = await openHouse();
  const [big, other] = [await joined(house), await joined(house)];
  big.socket.send("x".repeat(30 * 1024 * 1024), () => {});
  expect((await big.closed()).code).toBe(1009);
  await stillWorks(other);
});

test("a message with too many values is refused, and its connection continues", async () => {
  const house = await openHouse();
  const raw = await joined(house);
  raw.text(`{"type":"req","id":"x","method":"health","params":{"list":[${"{},".repeat(2_000_000)}0]}}`);
  const { error } = await raw.res("invalid");
  expect(error?.message).toContain("more than 250000 values: send less at once");
  await stillWorks(raw);
});

test("fragments of a message are joined, and refused beyond the limit", async () => {
  const house = await openHouse();
  const raw = await joined(house);
  raw.socket.send('{"type":"req","id":"f",', { fin: false });
  raw.socket.send('"method":"health"}', { fin: true });
  expect((await raw.res("f")).ok).toBe(true);
  const piece = "x".repeat(5 * 1024 * 1024);
  for (let index = 0; index < 6; index++) raw.socket.send(piece, { fin: false }, () => {});
  expect((await raw.closed()).code).toBe(1009);
});

test("text that is not UTF-8 ends only its own connection", async () => {
  const house = await openHouse();
  const [raw, other] = [await joined(house), await joined(house)];
  raw.socket.send(Buffer.from([0xff, 0xfe, 0xfd]), { binary: false });
  expect((await raw.closed()).code).toBe(1007);
  await stillWorks(other);
});

test("of a thousand simultaneous requests, 512 are executed and the others refused", async () => {
  const house = await openHouse({ play: () => new Promise(() => {}) });
  const raw = await joined(house);
  raw.send({
    type: "req",
    id: "run",
    method: "chat.send",
    params: { sessionKey: "main", message: "x", idempotencyKey: "r" },
  });
  await raw.res("run");
  for (let index = 0; index < 1_000; index++) {
    raw.send({
      type: "req",
      id: `w${index}`,
      method: "agent.wait",
      params: { runId: "r", timeoutMs: 3_600_000 },
    });
  }
  const refused = await raw.res("w999");
  expect(refused.error?.code).toBe("RATE_LIMITED");
  expect(raw.frames.filter((frame) => frame.error?.code === "RATE_LIMITED").length).toBe(1_000 - 512);
});

// For every field of every method, sends each kind of value that the field's schema excludes.

type Schema = {
  type?: string | string[];
  enum?: unknown[];
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  items?: Schema;
  minItems?: number;
  maxItems?: number;
  properties?: Record<string, Schema>;
  required?: string[];
};

const NODE_MESSAGE_BYTES = 4 * 1024 * 1024;

function wrongValues(schema: Schema): [unknown, RegExp][] {
  const types = [schema.type ?? []].flat();
  // A schema without type and enum accepts any value.
  if (types.length === 0 && schema.enum === undefined) return [];
  const wrong: [unknown, RegExp][] = [];
  if (schema.enum !== undefined)
    return [
      ["nonsense", /must be one of/],
      [7, /must be one of/],
    ];
  if (!types.includes("null")) wrong.push([null, /must be/]);
  if (!types.includes("string")) wrong.push(["text", /must be/]);
  if (!types.includes("number") && !types.includes("integer")) wrong.push([1.5, /must be/]);
  if (!types.includes("boolean")) wrong.push([true, /must be/]);
  if (!types.includes("array")) wrong.push([[], /must be/]);
  if (!types.includes("object")) wrong.push([{}, /must be/]);
  if (types.includes("integer")) wrong.push([1.5, /a whole number/], [-1, /must be at least/]);
  if (schema.maximum !== undefined) wrong.push([schema.maximum + 1, /must be at most/]);
  if (schema.minLength !== undefined) wrong.push(["", /must be not empty/]);
  // A longer message would end the connection of a node.
  if (schema.maxLength !== undefined && schema.maxLength < NODE_MESSAGE_BYTES)
    wrong.push(
      ["x".repeat(schema.maxLength + 1), /at most \d+ characters/],
      // One visible character with more code points than the limit.
      [`e${"\u0301".repeat(schema.maxLength)}`, /at most \d+ characters/],
    );
  if (schema.minItems !== undefined) wrong.push([[], /a list of at least one item/]);
  if (schema.maxItems !== undefined)
    wrong.push([Array(schema.maxItems + 1).fill(rightValue(schema.items ?? {})), /must be/]);
  if (schema.items !== undefined) wrong.push([[schema.items.type === "object" ? "x" : {}], /must be/]);
  return wrong;
}

/** Returns a value that the schema accepts. */
function rightValue({ type, enum: one, items, properties = {}, required = [] }: Schema): unknown {
  if (type === "array") return [rightValue(items ?? {})];
  if (type === "boolean") return true;
  if (type === "integer") return 1;
  return type === "object" ? rightFields(properties, required) : (one?.[0] ?? "x");
}

let everyones: Promise<House> | undefined;

/**
 * Connects a caller who may use the method: for node methods a paired device. All use one gateway, because
 * it refuses their requests.
 */
async function asker(method: MethodName): Promise<Raw> {
  everyones ??= forFile(() => openHouse({ gateway: { tokens: NODE_TOKENS } }));
  const house = await everyones;
  return METHODS[method].scope === NODE ? joinedNode(house, await pairedDevice(house)) : joined(house);
}

function rightFields(properties: Record<string, Schema>, required: readonly string[]) {
  return Object.fromEntries(required.map((name) => [name, rightValue(properties[name] ?? {})]));
}

test.each(Object.keys(METHODS) as MethodName[])(
  "%s: an error names each invalid param, for every kind of wrong value",
  async (method) => {
    const raw = await asker(method);
    const { properties, required = [] } = METHODS[method].params as unknown as {
      properties: Record<string, Schema>;
      required?: string[];
    };
    const good = rightFields(properties, required);
    let count = 0;
    const ask = async (params: object): Promise<string> => {
      const id = `${++count}`;
      raw.send({ type: "req", id, method, params });
      const { error } = await raw.res(id);
      expect(error?.code, JSON.stringify(params).slice(0, 200)).toBe("INVALID_REQUEST");
      return error?.message ?? "";
    };
    for (const name of required) {
      const { [name]: _, ...rest } = good;
      expect(await ask(rest)).toContain(`${name} is required`);
    }
    for (const [name, schema] of Object.entries(properties)) {
      for (const [value, words] of wrongValues(schema)) {
        const message = await ask({ ...good, [name]: value });
        expect(message).toMatch(words);
        expect(message).toContain(name);
      }
    }
    const [first] = Object.keys(properties);
    if (properties.keys !== undefined) {
      expect(await ask({ ...good, keys: ["x", `e${"\u0301".repeat(600)}`] })).toMatch(
        /keys\.1 must be at most/,
      );
    }
    if (first !== undefined) {
      expect(await ask({ ...good, [`${first}x`]: 1 })).toContain(`did you mean "${first}"`);
    }
    expect(await ask({ ...good, zzzzzzzz: 1 })).toContain('unknown param "zzzzzzzz"');
  },
);

test.each(Object.keys(METHODS) as MethodName[])(
  "%s ignores params that are known only in other implementations of the protocol",
  async (method) => {
    const raw = await asker(method);
    const ignored = Object.fromEntries(
      (methodOf(method).ignored ?? []).map((name) => [name, { any: "thing" }]),
    );
    raw.send({ type: "req", id: "x", method, params: { ...ignored, idempotencyKey: "k", nonsense: 1 } });
    const { error } = await raw.res("x");
    expect(error?.details?.problems).toEqual([expect.stringContaining('"nonsense"')]);
  },
);
