// How an answer passes on its text while it streams in.

import { expect, test } from "vitest";
import { Answer } from "../../src/agent/model/answer.ts";
import { LongText } from "../../src/core/text/text-delta.ts";

const LIMITS = { maxAnswerBytes: 1_000_000, maxAnswerToolCalls: 1 };

test("a long text is passed on in parts before it is shown, behind the thinking that came before it", () => {
  const heard: string[] = [];
  const note = (kind: string) => (delta: { offset: number; text: string }) =>
    void heard.push(`${kind} ${delta.offset} ${delta.text.length}`);
  const answer = new Answer(LIMITS, note("text"), note("thinking"));
  const thinking = answer.open({ type: "thinking", thinking: new LongText() });
  answer.addThinking(thinking, "hm");
  const text = answer.open({ type: "text", text: new LongText() });
  for (let at = 0; at < 10; at += 1) answer.addText(text, "x".repeat(10_000));
  expect(heard).toEqual(["thinking 0 2", "text 0 40000", "text 40000 40000"]);
  answer.show();
  expect(heard.at(-1)).toBe("text 80000 20000");
  expect(text.text.text).toBe("x".repeat(100_000));
});
