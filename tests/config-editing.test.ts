// The configuration file's text as a remote editor gets it: secrets are hidden there, and restored when it is
// saved.

import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { hideSecrets, revealSecrets, type Sealing } from "../src/config/editing/hidden.ts";
import { json5Places, pathAt } from "../src/core/text/json5-places.ts";
import { Redactor } from "../src/core/text/redact/redact.ts";

const KEY = "sk-proj-abcdefghij0123456789ABCDEF";
const redactor = new Redactor([]);
const SEALING: Sealing = {
  seal: (text) => createHash("sha256").update(text).digest("hex"),
  mask: (text) => redactor.mask(text),
};

function hidden(text: string): string {
  const found = hideSecrets(text, SEALING);
  return found.ok ? found.value.text : `refused: ${found.error}`;
}

const FRAGMENTS = [
  ...["{", "}", "[", "]", ":", ",", "\n", " ", "//", "/*", "*/", '"', "'", "\\", "\u2028"],
  ...["apiKey", '"token"', "headers", "env", "url", "outgoing", "args", "${KEY}", "$${", "null", "17"],
  ...[
    "https://u:pw-of-u@host/x?key=abcdefgh",
    "--password",
    "hunter2-hunter2",
    "[redacted]",
    "-----BEGIN PRIVATE KEY-----",
  ],
];
const anyText = fc
  .array(fc.oneof(fc.constantFrom(...FRAGMENTS), fc.string({ maxLength: 4 })), { maxLength: 40 })
  .map((parts) => parts.join(""));

test("HS1: if the secrets of any text are hidden and then revealed, the result is the same text", () => {
  fc.assert(
    fc.property(anyText, (text) => {
      const found = hideSecrets(text, SEALING);
      if (found.ok) expect(revealSecrets(found.value.text, found.value)).toEqual({ ok: true, value: text });
    }),
    { numRuns: 2_000 },
  );
});

test("HS3: a value in the format of a secret key is never shown, wherever it is in any text", () => {
  fc.assert(
    fc.property(anyText, anyText, (before, after) => {
      expect(hidden(`${before} ${KEY} ${after}`)).not.toContain(KEY);
    }),
    { numRuns: 2_000 },
  );
});

test.each([
  ['{ apiKey: "short" }', '{ apiKey: "[hidden ]" }'],
  ['{ apiKey: "" }', '{ apiKey: "" }'],
  ['{ token: { value: "plain words" } }', '{ token: { value: "[hidden ]" } }'],
  ['{ auth: { tokens: ["plain words"] } }', '{ auth: { tokens: ["[hidden ]"] } }'],
  ['{ args: ["--api-key", // c\n"blue-elephant-42"] }', '{ args: ["--api-key", // c\n"[hidden ]"] }'],
  ['{ env: { // OLD: "plain words",\nA: "b" } }', '{ env: { //[hidden ]\nA: "[hidden ]" } }'],
  ['// env: {\n//   OLD: "plain words",\n// }\n{}', "//[hidden ]\n//[hidden ]\n//[hidden ]\n{}"],
  ['{ url: "https://0123456789abcdef0123456789abcdef@host/v1" }', '{ url: "[hidden ]" }'],
  ['{ url: "https://host/v1#0123456789abcdef0123456789abcdef" }', '{ url: "[hidden ]" }'],
  ["{ apiKey: '${KEY}' }", "{ apiKey: '${KEY}' }"],
  ['{ apiKey: "${KEY:-fallback}" }', '{ apiKey: "[hidden ]" }'],
  [
    '{ headers: { "X-A": "Bearer ${KEY}", "X-B": "Bearer it" } }',
    '{ headers: { "X-A": "Bearer ${KEY}", "X-B": "[hidden ]" } }',
  ],
  ["{ token: 123456 }", "{ token: [hidden ] }"],
  ["{ token: null }", "{ token: null }"],
  ['{ store: { postgresUrl: "postgres://u:pw@h/d" } }', '{ store: { postgresUrl: "[hidden ]" } }'],
  ['{ baseUrl: "http://user:word@host/v1" }', '{ baseUrl: "[hidden ]" }'],
  ['{ baseUrl: "http://127.0.0.1:11434/v1" }', '{ baseUrl: "http://127.0.0.1:11434/v1" }'],
  ['{ outgoing: [{ url: "https://h/secret/path" }] }', '{ outgoing: [{ url: "https://h/[hidden ]" }] }'],
  ['{ outgoing: [{ url: "https://u:password1@h/p" }] }', '{ outgoing: [{ url: "[hidden ]" }] }'],
  [
    '{ args: ["--api-key", "letters-only", "--port", "80"] }',
    '{ args: ["--api-key", "[hidden ]", "--port", "80"] }',
  ],
  ["{ session: {} } // password: correcthorse", "{ session: {} } //[hidden ]"],
  ['{ passwrd: "x", apiKey "y" }', '{ passwrd: "x", apiKey "[hidden ]" }'],
  ['{ a: "open\n apiKey: "short", b: 1 }', '{ a: "open\n apiKey: "[hidden ]", b: 1 }'],
])("the editor shows %s as %s", (text, shown) => {
  expect(hidden(text).replaceAll(/\[hidden \w+\]/g, "[hidden ]")).toBe(shown);
});

test("the editor can show every configuration in the documents", () => {
  const docs = new URL("../docs/", import.meta.url);
  const texts = readdirSync(docs)
    .filter((name) => name.endsWith(".md"))
    .flatMap((name) => [...readFileSync(new URL(name, docs), "utf8").matchAll(/```json5\n([\s\S]*?)```/g)])
    .map(([, text = ""]) => text);
  expect(texts.length).toBeGreaterThan(20);
  expect(texts.filter((text) => hidden(text).startsWith("refused"))).toEqual([]);
});

test.each([
  ["{ session: { queueMax: 2|00 } }", "session.queueMax"],
  ["{ session: { queueMax: | } }", "session.queueMax"],
  ["{ session: {\n  queueMax: 200,\n  |\n} }", "session"],
  ["{ agents: { list: [{ id: 'a' }, { mod|el: 'x' }] } }", "agents.list.1.model"],
  ["{ session: { queueMax: 200 },\n | }", ""],
  ["// com|ment\n{ session: {} }", ""],
  ["{ session: { queueMax: 7 dmScope: 'ma|in'", "session.dmScope"],
])("the setting at the caret of %j is %j", (marked, path) => {
  const text = marked.replace("|", "");
  expect(pathAt(text, json5Places(text), marked.indexOf("|")).join(".")).toBe(path);
});

test("JP1: a text that contains only brackets or only quotes is parsed in linear time", () => {
  const shapes = ["[", "{a:", '"', "'\\", "/*", "/", "{a:[{b:1}]},\n"];
  for (const shape of shapes) expect(json5Places(shape.repeat(20_000)).length).toBeLessThanOrEqual(120_000);
});
