// Inserting keys into a configuration file does not change the rest of its text.

import JSON5 from "json5";
import { expect, test } from "vitest";
import { insertAt } from "../src/config/editing/text.ts";

const BOT = { botToken: "1:x", groups: { "-100": { requireMention: false } } };

function added(
  text: string,
  path: readonly string[] = ["channels", "telegram"],
  value: unknown = BOT,
): string {
  const done = insertAt(text, path, value);
  if (!done.ok) throw new Error(done.error);
  return done.value;
}

test.each([
  ["", {}],
  ["  \n// nothing yet\n", {}],
  ["{}", {}],
  ["{ }", {}],
  ["// head\n{\n  // why\n  gateway: { port: 1 }, // tail\n}\n// end\n", { gateway: { port: 1 } }],
  ["{channels:{}}", { channels: {} }],
  ['{"channels": {discord: {token: "}{,"}}}', { channels: { discord: { token: "}{," } } }],
  ["{a: ['x', {b: \"channels: {\"}], channels: { /* } */ discord: { token: 'it\\'s' } } }", undefined],
  ["\uFEFF{ 'gateway': {port: +1.5e3,}, }", undefined],
])("IN1: %j gets the new key, and the rest of the text is kept", (text, before) => {
  const changed = added(text);
  const old = (before ?? JSON5.parse(text.replace("\uFEFF", ""))) as { channels?: object };
  expect(JSON5.parse(changed.replace("\uFEFF", ""))).toEqual({
    ...old,
    channels: { ...old.channels, telegram: BOT },
  });
  for (const comment of text.match(/\/\/.*|\/\*.*?\*\//g) ?? []) expect(changed).toContain(comment);
});

test("an inserted key is indented like its neighbours", () => {
  expect(
    added("{\n  channels: {\n    discord: { token: 'x' },\n  },\n}\n", ["channels", "telegram"], {
      botToken: "t",
    }),
  ).toBe(
    "{\n  channels: {\n    telegram: {\n      botToken: \"t\",\n    },\n    discord: { token: 'x' },\n  },\n}\n",
  );
  expect(added("", ["channels", "telegram"], { botToken: "t" })).toBe(
    '{\n  channels: {\n    telegram: {\n      botToken: "t",\n    },\n  },\n}\n',
  );
});

test("IN2: a key that already exists is refused", () => {
  expect(insertAt("{channels: {telegram: {}}}", ["channels", "telegram"], BOT)).toMatchObject({ ok: false });
  expect(insertAt("{channels: 3}", ["channels", "telegram"], BOT)).toMatchObject({
    ok: false,
    error: "channels is not an object",
  });
  expect(insertAt("{channels: ", ["channels", "telegram"], BOT).ok).toBe(false);
});
