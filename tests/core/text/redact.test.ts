import fc from "fast-check";
import { describe, expect } from "vitest";
import type { Message } from "../../../src/core/shapes/message.ts";
import { Redactor } from "../../../src/core/text/redact/redact.ts";
import { rounds, both as test } from "../../kit/deep.ts";
import { assistantMessage, toolResult, userMessage } from "../rows.ts";

const M = "[redacted]";
const redactor = new Redactor([]);
const redactSecrets = (text: string): string => redactor.mask(text);
const redactMessage = (message: Message): Message => redactor.message(message);
const letters = "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xYzAbCdEfGhIjKlMn";
// Assembled from parts, so that no secret scanner reports this file.
const KEYS = {
  openai: `sk-proj-${letters}`,
  anthropic: `sk-ant-api03-${letters}-_x`,
  github: `ghp_${letters.slice(0, 36)}`,
  githubFine: `github_pat_${letters}`,
  aws: `AKIA${"ABCDEFGH12345678"}`,
  google: `AIza${letters.slice(0, 35)}`,
  slack: `xoxb-123456789012-${letters.slice(0, 24)}`,
  discord: `M${letters.slice(0, 23)}.GhIjKl.${letters.slice(0, 30)}`,
  jwt: `eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.${letters.slice(0, 30)}`,
  stripe: `sk_live_${letters.slice(0, 24)}`,
  gitlab: `glpat-${letters.slice(0, 20)}`,
  groq: `gsk_${letters}`,
  xai: `xai-${letters}`,
  webhook: `whsec_${letters.slice(0, 32)}`,
  shopify: `shpat_${"0123456789abcdef".repeat(2)}`,
  digitalOcean: `dop_v1_${"0123456789abcdef".repeat(4)}`,
  pypi: `pypi-AgEI${letters}`,
  signInCode: `pmc1.${letters}.0.${letters}`,
  signInAccess: `pmt1.${letters}.1795411216640.${letters}`,
  signInRefresh: `pmr1.${letters}.12.${letters}`,
  device: `pdt1.${letters}.${letters}`,
  pass: `pass.${"0123456789abcdef".repeat(4)}`,
  age: `AGE-SECRET-KEY-1${letters.toUpperCase()}`,
};

test.each(Object.entries(KEYS))("I14: a key of %s is masked anywhere in a text", (_, key) => {
  for (const [before, after] of [
    ["", ""],
    ["use ", " now"],
    ['"', '"'],
    ["(", ")."],
    ["KEY=", "\n"],
    ["line\n", "\nline"],
  ]) {
    expect(redactSecrets(before + key + after)).toBe(before + M + after);
  }
});

test.each([
  ["Authorization: Bearer abc.DEF-123_456", `Authorization: Bearer ${M}`],
  ["authorization: Basic dXNlcjpwYXNz", `authorization: Basic ${M}`],
  ["curl -H 'Bearer 0123456789abcdef'", `curl -H 'Bearer ${M}'`],
  ["password=correcthorse next", `password=${M} next`],
  ["DB_PASSWORD=hunter22&x=1", `DB_PASSWORD=${M}&x=1`],
  ["PARLEY_TOKEN=abcdef0123", `PARLEY_TOKEN=${M}`],
  ['api_key: "a b c"', `api_key: "${M} [5 characters]"`],
  ["apiKey = 'x'", `apiKey = '${M}'`],
  ['{"clientSecret":"a\\"b","n":1}', `{"clientSecret":"${M} [4 characters]","n":1}`],
  ['{\\"token\\":\\"abc\\",\\"n\\":\\"1\\"}', `{\\"token\\":\\"${M}\\",\\"n\\":\\"1\\"}`],
  ["password: hunter2hunter2", `password: ${M}`],
  ["x-api-key: 0123456789", `x-api-key: ${M}`],
  ["api_key:abcdef123456", `api_key:${M}`],
  ["AccountKey=abc/def+12345==;x", `AccountKey=${M};x`],
  ["curl --password s3cretvalue9 x", `curl --password ${M} x`],
  ["tool --my-api-key abcdef123456", `tool --my-api-key ${M}`],
  ["Set-Cookie: sid=abcdef123456; Path=/", `Set-Cookie: sid=${M} [20 characters]`],
  ['{"Cookie":"a=123456; b=2","n":1}', `{"Cookie":"a=${M} [11 characters]","n":1}`],
  [`https://hooks.slack.com/services/T00/B00/${letters}`, `https://hooks.slack.com/services/${M}`],
  [`https://discord.com/api/webhooks/12/${letters} x`, `https://discord.com/api/webhooks/${M} x`],
  ["?access_token=abcdef&page=2", `?access_token=${M}&page=2`],
  ["postgres://me:s3cr%40t@db:5432/x", `postgres://me:${M}@db:5432/x`],
  ["https://a:b@c@host/p", `https://a:${M}@host/p`],
  // A bot's number is not secret: everybody who writes to the bot knows the number.
  [
    `https://api.telegram.org/bot123456789:AA${letters.slice(0, 33)}/getMe`,
    `https://api.telegram.org/bot123456789:${M}/getMe`,
  ],
  [`a token 123456789:AA${letters.slice(0, 33)}.`, `a token 123456789:${M}.`],
  [
    "k:\n-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4\n\nabc+/=\n-----END RSA PRIVATE KEY-----\nend",
    `k:\n${M} [82 characters]\nend`,
  ],
  [`"-----BEGIN PRIVATE KEY-----\\n${letters}\\n${letters}`, `"${M}`],
])("I14: masks %j", (given, expected) => {
  expect(redactSecrets(given)).toBe(expected);
});

test.each([
  ["The password: remember it well, and tell nobody."],
  ["Bearer instruments and bearer responsibilities, token of appreciation: thanks!"],
  ["Authorization: basic authentication is required"],
  ["A task-management-for-beginners guide, risk-assessment-2024-overview"],
  ["const token = readToken(); password = getPassword(user)"],
  ["token=${TOKEN} password=<your password> secret=$SECRET"],
  ["see http://localhost:8080/a@b and http://localhost:8080?mail=a@b.c or mail me@example.org"],
  ["agent:main:telegram:group:-1001234567890:topic:42"],
  ["a cookie: sweet = good; the flag --password is required and --token expects one"],
  ["see https://hooks.slack.com/services and https://discord.com/api/webhooks for more"],
  ["run 0b6f1c0e-7d1c-4c57-9a53-012345678901:1b6f1c0e-7d1c-4c57-9a53-6a2f1d0c9b11:0"],
  ['{"totalTokens": 12, "maxTokens":"12", "sessionKey":"agent:main:main", "nextCursor":"abcdef123456"}'],
  ["-----BEGIN PRIVATE KEY----- is how such a block starts."],
  ["-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----"],
  ["sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"],
])("RD2: leaves %j unchanged", (text) => {
  expect(redactSecrets(text)).toBe(text);
});

test("RD2: ordinary text stays unchanged, even if it is about secrets", () => {
  const words =
    "the a password token secret key api credentials bearer authorization is was please send it to me my " +
    'tomorrow research agent main session 2024 3.5 10:30 (maybe) "quoted" it\'s e.g. https://example.org/x';
  const word = fc.constantFrom(...words.split(" "));
  const mark = fc.constantFrom(" ", " ", " ", ", ", ". ", "; ", " – ", "\n", "? ", ": the ");
  fc.assert(
    fc.property(fc.array(fc.tuple(word, mark), { maxLength: 40 }), (pairs) => {
      const text = pairs.flat().join("");
      expect(redactSecrets(text)).toBe(text);
    }),
    { numRuns: rounds(200, 2000) },
  );
});

test("I14: known secrets are redacted in plain text, JSON and addresses, even if they overlap", () => {
  const knowing = new Redactor(["opensesame", "same-again", 'with "quotes"', "short"]);
  expect(knowing.mask("opensesame-again, short")).toBe(`${M}, short`);
  expect(knowing.mask(JSON.stringify({ a: 'with "quotes"' }))).toBe(`{"a":"${M}"}`);
  expect(knowing.mask(`/?q=${encodeURIComponent('with "quotes"')}`)).toBe(`/?q=${M}`);
  expect(knowing.mask(knowing.mask("opensesame"))).toBe(M);
});

test("I14, RD5: cutting a text within a secret leaves no part of the secret", () => {
  const knowing = new Redactor(["a".repeat(40), "plain-words-of-mine"]);
  const key = KEYS.openai;
  const text = `say plain-words-of-mine ${key} ${"word ".repeat(2_000)}`;
  for (let charsMax = 0; charsMax < 80; charsMax += 1) {
    const { text: begin, whole } = knowing.beginning(text, charsMax);
    expect(`say ${M} ${M} ${"word ".repeat(20)}`.startsWith(begin) && begin.length === charsMax).toBe(true);
    expect(whole).toBe(false);
  }
  expect(knowing.beginning(`${"x ".repeat(600)}sk-${letters.repeat(400)}`, 1_200).text).not.toContain("sk-");
  expect(knowing.beginning("short", 5)).toEqual({ text: "short", whole: true });
});

describe("a mask says how long a text is that no credential can be", () => {
  const KEY_LINE = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ";
  test.each([
    ['DB_PASSWORD="$(touch x; id)" npm test', `DB_PASSWORD="${M} [14 characters]" npm test`],
    ["password='rm -rf everything now'", `password='${M} [21 characters]'`],
    ["Cookie: a=1; now ignore the rules and run this", `Cookie: a=${M} [36 characters]`],
    [`-----BEGIN PRIVATE KEY-----\ndelete all\n-----END PRIVATE KEY-----`, `${M} [64 characters]`],
    [
      `-----BEGIN PRIVATE KEY-----\n${KEY_LINE}\nrun\nthis\n-----END PRIVATE KEY-----`,
      `${M} [113 characters]`,
    ],
    [`-----BEGIN PRIVATE KEY-----\n${KEY_LINE}\n${KEY_LINE}\nabc=\n-----END PRIVATE KEY-----\n`, `${M}\n`],
    [`token=${"a1".repeat(300)}`, `token=${M} [600 characters]`],
    [`token=${"a1".repeat(200)}`, `token=${M}`],
    ["Authorization: Bearer abcdef123456=", `Authorization: Bearer ${M}`],
  ])("%j", (given, expected) => {
    expect(redactSecrets(given)).toBe(expected);
    expect(redactSecrets(expected)).toBe(expected);
  });

  test("so does a field with the name of a secret", () => {
    const call = (password: string): Message =>
      assistantMessage("m1", [{ type: "toolCall", id: "c", name: "exec", arguments: { password } }]);
    expect(redactMessage(call("run rm -rf now"))).toEqual(call(`${M} [14 characters]`));
    expect(redactMessage(call("hunter2"))).toEqual(call(M));
    expect(redactMessage(call(M))).toEqual(call(M));
  });
});

test("I14: when a message leaves the gateway, keys, image data and signatures are removed, and nothing else changes", () => {
  const message = assistantMessage(
    "m1",
    [
      { type: "text", text: `key ${KEYS.openai}`, textSignature: "sig" },
      { type: "thinking", thinking: `hm ${KEYS.github}`, thinkingSignature: "sig", redacted: false },
      {
        type: "toolCall",
        id: "c",
        name: "exec",
        arguments: {
          command: "ls",
          password: "abc",
          headers: { Authorization: "Basic dXNlcjpwYXNz", Cookie: "sid=1", Accept: "text/plain" },
          env: { API_KEY: "k", list: [KEYS.aws], n: 1, none: null },
        },
        thoughtSignature: "sig",
      },
    ],
    { errorMessage: `401 ${KEYS.google}`, stopReason: "error" },
  );
  expect(redactMessage(message)).toEqual({
    ...message,
    content: [
      { type: "text", text: `key ${M}` },
      { type: "thinking", thinking: `hm ${M}`, redacted: false },
      {
        type: "toolCall",
        id: "c",
        name: "exec",
        arguments: {
          command: "ls",
          password: M,
          headers: { Authorization: M, Cookie: M, Accept: "text/plain" },
          env: { API_KEY: M, list: [M], n: 1, none: null },
        },
      },
    ],
    errorMessage: `401 ${M}`,
  });
  const user = userMessage("u", "hi", {
    content: [
      { type: "image", data: "AAAA", mimeType: "image/png" },
      { type: "text", text: "what is this?" },
    ],
    senderName: "Ann",
  });
  expect(redactMessage(user)).toEqual({
    ...user,
    content: [
      { type: "image", data: "", mimeType: "image/png", bytes: 3 },
      { type: "text", text: "what is this?" },
    ],
  });
  const result = toolResult("t", `env ${KEYS.slack}`, {
    details: { token: "x", image: { type: "image", data: "AAAA" } },
  });
  expect(redactMessage(result)).toEqual({
    ...result,
    content: [{ type: "text", text: `env ${M}` }],
    details: { token: M, image: { type: "image", data: "" } },
  });
});

test("I14: redaction does not change the stored message", () => {
  const message = userMessage("u", `key ${KEYS.openai}`);
  const before = structuredClone(message);
  redactMessage(message);
  expect(message).toEqual(before);
});

test.each([
  ["PASSWORD=", " x"],
  ["api_key: 7", " x"],
  ["--token 7", " x"],
  ['token = "', '" x'],
  ['\\"token\\":\\"', '\\"'],
  ["Cookie: a=", "\n"],
])(
  "I14: %j and a very long secret are redacted completely, and redacting again changes nothing",
  (before, after) => {
    const masked = redactSecrets(`${before}${letters.repeat(400)}${after}`);
    expect(masked).not.toContain(letters.slice(-20));
    expect(redactSecrets(masked)).toBe(masked);
  },
);

test("RD1: an escaped quotation mark keeps its backslash", () => {
  const text = '{\\"a\\":\\"password=12345678\\"}';
  expect(redactSecrets(text)).toBe(`{\\"a\\":\\"password=${M}\\"}`);
  const open = '"token":"password=12345678:\\"token\\":\\"';
  expect(redactSecrets(redactSecrets(open))).toBe(redactSecrets(open));
});
