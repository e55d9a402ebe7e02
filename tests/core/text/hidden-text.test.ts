import { describe, expect, test } from "vitest";
import { HiddenText, splitHidden, withoutHidden } from "../../../src/core/text/hidden-text.ts";

/** Each row: the model's answer, its visible text, its hidden text. */
const SPLIT: readonly (readonly [string, string, string])[] = [
  ["<think>a</think>Hi", "Hi", "a"],
  ["<thinking>\na\n</thinking>\n\nHi", "Hi", "a"],
  ["<think></think>\n\nHi", "Hi", ""],
  ["<THINK >a</Think>Hi", "Hi", "a"],
  ["<thinking>a</thinking>Hi", "Hi", "a"],
  ["[THINK]a[/THINK]Hi", "Hi", "a"],
  ["One <think>a</think>two <think>b</think>three", "One two three", "a\n\nb"],
  ["<think>never closed", "", "never closed"],
  ["Hi <think>never closed", "Hi ", "never closed"],
  ["opened by the template\n</think>\n\nHi", "Hi", "opened by the template"],
  ["<think>a <think> b</think>c</think>Hi", "Hi", "a <think> b\n\nc"],
  ["<think>it says `</think>` there</think>Hi", "Hi", "it says `\n\n` there"],
  ["<think>a</think>REPLY_SKIP", "REPLY_SKIP", "a"],
  ['<tool_call>\n{"name": "x"}\n</tool_call>\nDone', "Done", '<tool_call>\n{"name": "x"}\n</tool_call>'],
  ['<tool_call>{"name": "x"}', "", '<tool_call>{"name": "x"}'],
  [
    '<function_calls><invoke name="x"><parameter name="y">1</parameter></invoke></function_calls>Done',
    "Done",
    '<function_calls><invoke name="x"><parameter name="y">1</parameter></invoke></function_calls>',
  ],
  ['Now.\n<invoke name="x">1</invoke>\nDone', "Now.\n\nDone", '<invoke name="x">1</invoke>'],
  [
    '[Tool Call: read (ID: 1)]\nArguments: {"a": "}"}\nDone',
    "Done",
    '[Tool Call: read (ID: 1)]\nArguments: {"a": "}"}',
  ],
  ["[Tool Call: read]\nDone", "Done", "[Tool Call: read]"],
  ["[Tool Result for ID 1]\na\nb\n\nDone", "Done", "[Tool Result for ID 1]\na\nb"],
  ['[TOOL_CALLS][{"name": "x"}] Done', "Done", '[TOOL_CALLS][{"name": "x"}]'],
  ["a stray `mark <think>a</think>Hi", "a stray `mark Hi", "a"],
];

const KEPT: readonly string[] = [
  "Write `<think>` before it and `</think>` behind.",
  "``a ` <think>`` and ` </think>`",
  "```xml\n<think>a</think>\n<invoke>\n```\nDone",
  "~~~\n</think>\n```\n[Tool Call: x]\n~~~\nDone",
  "> ```\n> <think>\n> ```\nDone",
  "- a list\n  ```\n  <tool_call>\n  ```",
  "```\n<think>the fence is open",
  'The tags "<think>" and "</think>", or “<think>”, or \'<invoke>\'.',
  'It writes "<think>words</think>" first.',
  "Escaped: \\<think> and \\</think>.",
  "a < b, a <b>c</b>, <thinker>, <rethink>, [a link](b), [Tool calls](c), List<Thought",
  "half a tag: <thin",
  "  blanks at both ends\n",
  "",
];

describe("hides thinking inside text", () => {
  test.each(SPLIT)("splits %j", (text, visible, hidden) => {
    expect(splitHidden(text)).toEqual({ visible, hidden });
  });

  test.each(KEPT)("HT2: text in code and quotations stays unchanged: %j", (text) => {
    expect(splitHidden(text)).toEqual({ visible: text, hidden: "" });
  });

  test("HT4: if a closing tag has no opening tag, the text that was shown before it is withdrawn", () => {
    const split = new HiddenText();
    expect(split.push("first I ")).toEqual({ text: "first I ", restarted: false });
    expect(split.push("look</thi")).toEqual({ text: "look", restarted: false });
    expect(split.push("nk>Hi")).toEqual({ text: "Hi", restarted: true });
  });

  test("a message keeps its other blocks, and its text becomes one block after the thinking", () => {
    const call = { type: "toolCall", id: "1", name: "t", arguments: {} } as const;
    const content = withoutHidden([
      { type: "text", text: "<think>a" },
      { type: "text", text: "b</think>Hi" },
      call,
    ]);
    expect(content).toEqual([{ type: "thinking", thinking: "a\nb" }, { type: "text", text: "Hi" }, call]);
    expect(withoutHidden([{ type: "text", text: "<think></think>" }])).toEqual([]);
  });
});
