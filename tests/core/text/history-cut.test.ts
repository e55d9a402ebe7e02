import { expect } from "vitest";
import { cutHistory } from "../../../src/core/text/history-cut.ts";
import { Redactor } from "../../../src/core/text/redact/redact.ts";
import { both as test } from "../../kit/deep.ts";
import { plainRedactor } from "../../kit/redactor.ts";
import { assistantMessage, toolResult, userMessage } from "../rows.ts";

const LIMITS = { maxTextChars: 4000, maxBytes: 80 * 1024 };

test("a page keeps its oldest or its newest messages, as the caller requires, so that no message is missed", async () => {
  const messages = ["1", "2", "3", "4"].map((id) => userMessage(id, "x".repeat(100)));
  const limits = { maxTextChars: 4000, maxBytes: 400 };
  const ids = async (keep: "newest" | "oldest") =>
    (await cutHistory(messages, { ...limits, keep }, plainRedactor)).messages.map((m) => m.id);
  expect([await ids("newest"), await ids("oldest")]).toEqual([
    ["3", "4"],
    ["1", "2"],
  ]);
});

test("H2: a long text is cut to its limit and reports its full length", async () => {
  const cut = await cutHistory([userMessage("1", "x".repeat(10_000))], LIMITS, plainRedactor);
  const block = cut.messages[0]?.content[0];
  if (block?.type !== "text") throw new Error("no text");
  expect(block.text).toHaveLength(4000);
  expect(block.text).toContain("[cut: 10000 characters in all]");
  expect(cut).toMatchObject({ truncated: true, droppedMessages: 0 });
});

test("H1: a text is never cut within a character", async () => {
  for (let length = 60; length < 70; length += 1) {
    const cut = await cutHistory(
      [userMessage("1", "😀".repeat(100))],
      { maxTextChars: length, maxBytes: 10_000 },
      plainRedactor,
    );
    expect(JSON.stringify(cut.messages)).not.toMatch(/\\ud[89ab]/);
  }
});

test("H2: a single message that exceeds the limit is shortened, not dropped", async () => {
  const big = toolResult("t", "begin ".repeat(700), {
    details: { rows: ["x".repeat(3000), "y".repeat(3000)] },
  });
  const cut = await cutHistory(
    [userMessage("u", "before"), big],
    { maxTextChars: 4000, maxBytes: 2000 },
    plainRedactor,
  );
  expect(cut).toMatchObject({ truncated: true, droppedMessages: 1 });
  expect(cut.messages[0]).toMatchObject({ id: "t", role: "toolResult", toolCallId: "c1" });
  expect(JSON.stringify(cut.messages)).toMatch(/message of \d+ bytes cut to fit\] begin/);
});

test("I11: a shortened message keeps its provenance, so that it cannot pass for a person's message", async () => {
  const provenance = {
    kind: "inter_session",
    sourceSessionKey: "agent:b:main",
    sourceTool: "sessions_send",
    chainId: "c",
    hop: 1,
  } as const;
  const cut = await cutHistory(
    [userMessage("u", "x".repeat(5_000), { provenance })],
    {
      maxTextChars: 4_000,
      maxBytes: 600,
    },
    plainRedactor,
  );
  expect(cut.messages).toMatchObject([{ id: "u", provenance }]);
});

test("H4: other work can run between the texts of a message, and within a long text", async () => {
  const redactor = new Redactor([]);
  let turns = 0;
  redactor.pacedBy(() => async () => {
    turns += 1;
  });
  const call = (at: number) => ({
    ...{ type: "toolCall" as const, id: `c${at}`, name: "write" },
    arguments: { text: `${at} token=abcdefgh12345678 `.repeat(400) },
  });
  const many = assistantMessage(
    "many",
    Array.from({ length: 20 }, (_, at) => call(at)),
  );
  const long = userMessage("long", "token=abcdefgh12345678 and ".repeat(10_000));
  const limits = { maxTextChars: 1_000_000, maxBytes: 10_000_000 };
  const cut = await cutHistory([many, long], limits, redactor);
  expect(turns).toBeGreaterThan(20);
  expect(cut.messages).toEqual([many, long].map((message) => redactor.message(message)));
});

test("H1: a tool name that fills the page is cut, and the result is kept", async () => {
  const long = toolResult("t", "text", { toolName: "x".repeat(100_000), toolCallId: "y".repeat(100_000) });
  const cut = await cutHistory([long], LIMITS, plainRedactor);
  expect(cut).toMatchObject({ truncated: true, droppedMessages: 0 });
  expect(cut.messages[0]?.id).toBe("t");
});

test("the texts of a message together are cut to the limit of one text", async () => {
  const content = Array.from({ length: 30 }, () => ({ type: "text" as const, text: "word ".repeat(700) }));
  const { messages } = await cutHistory([assistantMessage("a", content)], LIMITS, plainRedactor);
  const [block] = messages[0]?.content ?? [];
  expect(block).toMatchObject({ type: "text", text: expect.stringContaining("cut to fit") });
  expect(block?.type === "text" ? block.text.length : 0).toBeLessThanOrEqual(LIMITS.maxTextChars);
});
