// Reads entries from rows: an undamaged entry as it was written, a damaged one as far as possible.

import fc from "fast-check";
import { expect, test } from "vitest";
import { type Entry, HISTORY_PARTS } from "../../src/core/shapes/message.ts";
import { type EntryRow, readEntry, readMessage } from "../../src/store/queries/transcripts/stored-entry.ts";
import { assistantMessage, toolResult, userMessage } from "../core/rows.ts";
import { anyCharacter } from "../fuzz/nasty.ts";

const DAMAGED = { type: "text", text: expect.stringContaining("damaged") };

function row(role: string, json: unknown): EntryRow {
  return {
    id: "row",
    role,
    entry_json: typeof json === "string" ? json : JSON.stringify(json),
    created_at: 7,
  };
}

const text = fc.string({ unit: anyCharacter, maxLength: 20 });
const optional = <T>(value: fc.Arbitrary<T>, name: string) =>
  fc.option(value, { nil: undefined }).map((one) => (one === undefined ? {} : { [name]: one }));
const block = fc
  .tuple(text, optional(text, "textSignature"))
  .map(([one, more]) => ({ type: "text" as const, text: one, ...more }));
const call = fc
  .tuple(fc.dictionary(text, fc.jsonValue({ maxDepth: 3 })), optional(text, "thoughtSignature"))
  .map(([args, more]) => ({ type: "toolCall" as const, id: "c", name: "read", arguments: args, ...more }));
const thinking = optional(fc.boolean(), "redacted").map((more) => ({
  type: "thinking" as const,
  thinking: "t",
  ...more,
}));
const provenance = fc.constantFrom(
  { kind: "notice" as const, runId: "r", hop: 2 },
  { kind: "cron" as const, source: "job" },
  {
    kind: "inter_session" as const,
    sourceSessionKey: "k",
    sourceChannel: "webchat",
    sourceTool: "sessions_send",
    chainId: "c",
    hop: 1,
  },
);
const entries: fc.Arbitrary<Entry> = fc.oneof(
  fc
    .tuple(
      fc.array(block),
      optional(provenance, "provenance"),
      optional(text, "senderName"),
      optional(fc.constant(true), "steered"),
    )
    .map(([content, from, name, steered]) => ({
      ...userMessage("row", ""),
      content,
      ...from,
      ...name,
      ...steered,
    })),
  fc
    .tuple(
      fc.array(fc.oneof(block, call, thinking)),
      optional(text, "errorMessage"),
      optional(fc.constant("answer_too_large"), "errorCode"),
      optional(fc.constantFrom(...HISTORY_PARTS), "omits"),
    )
    .map(([content, ...more]) => Object.assign(assistantMessage("row", content), ...more)),
  fc
    .tuple(text, optional(fc.jsonValue({ maxDepth: 3 }), "details"), fc.boolean())
    .map(([one, more, isError]) => ({ ...toolResult("row", one), ...more, isError })),
  text.map((summary) => ({
    id: "row",
    type: "compaction" as const,
    summary,
    firstKeptId: "x",
    timestamp: 3,
  })),
);

test("RE2: an undamaged entry is returned as it was written", () => {
  fc.assert(
    fc.property(entries, (entry) => {
      const role = "role" in entry ? entry.role : "compaction";
      expect(readEntry(row(role, entry))).toEqual(JSON.parse(JSON.stringify(entry)));
    }),
    { numRuns: 1_000 },
  );
});

test.each<[string, string, unknown]>([
  ["nothing", "user", ""],
  ["half of an entry", "user", '{"id":"row","role":"us'],
  ["a list", "assistant", []],
  ["null", "toolResult", "null"],
  ["another role than its row", "toolResult", userMessage("row", "hello")],
  ["content that is not a list", "user", { ...userMessage("row", ""), content: "hello" }],
])("RE1: a row with %s is read as a message that says that it is damaged", (_, role, json) => {
  const message = readMessage(row(role, json));
  expect(message).toMatchObject({ id: "row", role, content: [DAMAGED] });
  if (role === "user") expect(message).toMatchObject({ provenance: { kind: "notice" } });
  if (role === "assistant")
    expect(message).toMatchObject({ stopReason: "injected", usage: { totalTokens: 0 } });
});

test("RE1: a placeholder replaces an unreadable part, and the other parts are kept", () => {
  const good = { type: "text", text: "good" };
  const content = [good, null, { type: "toolCall", id: "c", name: "exec", arguments: [] }, { type: "text" }];
  const message = readMessage(row("assistant", { ...assistantMessage("row", []), content }));
  expect(message).toMatchObject({ content: [good, DAMAGED, DAMAGED, DAMAGED], stopReason: "injected" });
});

test("RE1: an entry gets the id of its row and, if its own time is invalid, the time of its row", () => {
  const entry = { ...userMessage("other", "hello"), timestamp: "late" };
  expect(readMessage(row("user", entry))).toMatchObject({
    id: "row",
    timestamp: 7,
    content: [{ text: "hello" }],
  });
});

test("RE3: invalid provenance counts as a notice, and tool calls of an unknown role are ignored", () => {
  const from = (provenance: unknown) => readMessage(row("user", { ...userMessage("row", "x"), provenance }));
  for (const wrong of [null, 7, {}, { kind: "human" }, { kind: "inter_session", hop: 1 }]) {
    expect(from(wrong)).toMatchObject({ provenance: { kind: "notice" } });
  }
  const calls = [{ type: "toolCall", id: "c", name: "exec", arguments: {} }];
  const odd = { ...assistantMessage("row", []), role: "oracle", content: calls };
  expect(readMessage(row("oracle", odd))).toMatchObject({ role: "assistant", content: [DAMAGED] });
});

test("RE1: values that are nested too deeply are omitted", () => {
  const deep = "[".repeat(50_000) + "]".repeat(50_000);
  const json = JSON.stringify({ ...toolResult("row", "x"), details: "@" }).replace('"@"', deep);
  const read = readMessage(row("toolResult", json));
  expect(read).toMatchObject({ role: "toolResult", id: "row" });
  expect(JSON.stringify(read).length).toBeLessThan(1_000);
});

test("after an unreadable compaction, the later messages are kept and its summary is reported as lost", () => {
  expect(readEntry(row("compaction", "{"))).toMatchObject({ type: "compaction", firstKeptId: "", id: "row" });
});
