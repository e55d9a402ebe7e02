// The limit of foreign JSON: texts that would hold the event loop are refused before they are parsed.

import { expect, test } from "vitest";
import { jsonOf, readJson } from "../../src/core/json.ts";
import { JSON_MARKS_MAX, JsonMeter, type MessageEnd, meteredBody } from "../../src/core/meter.ts";

const MB = 1024 * 1024;
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const HEAVY = { ok: false, code: "too_large", error: expect.stringMatching(/250000 values: send less/) };

test.each([
  ["empty objects", `[${"{},".repeat(JSON_MARKS_MAX / 2)}0]`],
  ["nested lists", "[".repeat(JSON_MARKS_MAX + 1)],
  ["numbers", `[${"1,".repeat(JSON_MARKS_MAX)}1]`],
  ["fields", `{${'"a":1,'.repeat(JSON_MARKS_MAX / 2)}"b":1}`],
  ["empty texts after an escape", `["\\\\",${'"",'.repeat(JSON_MARKS_MAX)}1]`],
])("too many %s are refused before they are parsed", (_, text) => {
  expect(readJson(text)).toMatchObject(HEAVY);
  expect(readJson(bytes(text))).toMatchObject(HEAVY);
  expect(jsonOf(text)).toBeUndefined();
});

test("a long text is one value, whatever it contains", () => {
  const value = {
    url: `data:image/png;base64,${"A".repeat(8 * MB)}`,
    text: '[{,:"\\'.repeat(JSON_MARKS_MAX),
  };
  expect(readJson(JSON.stringify(value))).toEqual({ ok: true, value });
});

test("invalid JSON is undefined, and as many values as allowed are read", () => {
  expect(readJson("{nope")).toEqual({ ok: true, value: undefined });
  const list = Array.from({ length: JSON_MARKS_MAX }, () => 1234);
  expect(readJson(JSON.stringify(list))).toEqual({ ok: true, value: list });
});

const read = (chunks: readonly string[], end: MessageEnd, bytesMax?: number) => {
  const source = ReadableStream.from(chunks.map(bytes)) as ReadableStream<Uint8Array>;
  return new Response(meteredBody(source, new JsonMeter(end, bytesMax))).text();
};

test("limits apply to each event or line of a stream, and otherwise to the whole body", async () => {
  const events = ["data: one\n", "\n", "data: two\r\n\r\n", "data: three\n\n"];
  expect(await read(events, "event", 20)).toBe(events.join(""));
  await expect(read(events, "body", 20)).rejects.toThrow("more than 20 bytes");
  await expect(read(events, "line", 11)).rejects.toThrow("more than 11 bytes");
  await expect(read(["data: 1\ndata: 2\nda", "ta: 3\n\n"], "event", 20)).rejects.toThrow(
    "more than 20 bytes",
  );
  const half = `${"{},".repeat(JSON_MARKS_MAX / 3)}\n`;
  expect(await read([half, half, half], "line")).toHaveLength(3 * half.length);
  expect(await read([half, "\n", half], "event")).toHaveLength(2 * half.length + 1);
  await expect(read([half, half], "event")).rejects.toThrow("values");
  await expect(read([half, "\n", half], "body")).rejects.toThrow("values");
});

test("a quote outside of JSON hides no values, and a text may be split anywhere", async () => {
  const heavy = `data: ${"{},".repeat(JSON_MARKS_MAX / 2 + 1)}\n\n`;
  for (const line of [': "', ": \\", ': "\\', ': "\r'])
    await expect(read([`${line}\n`, heavy], "event")).rejects.toThrow("values");
  const text = JSON.stringify({ text: '[{,:"\\'.repeat(JSON_MARKS_MAX / 4) });
  const pieces = text.match(/.{1,65521}/gs) ?? [];
  expect(await read(pieces, "body")).toBe(text);
});
