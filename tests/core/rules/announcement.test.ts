import { expect } from "vitest";
import {
  type AnnouncementFacts,
  announcedFacts,
  composeAnnouncement,
} from "../../../src/core/rules/announcement.ts";
import { both as test } from "../../kit/deep.ts";

const normaliseAnnouncement = (words: string, given: AnnouncementFacts): string =>
  composeAnnouncement(announcedFacts(words, given));

const STATS = {
  runtimeMs: 65_400,
  inputTokens: 1200,
  outputTokens: 34,
  totalTokens: 1234,
  sessionKey: "agent:a:subagent:1",
  sessionId: "s1",
};
const facts = (more: Partial<AnnouncementFacts> = {}): AnnouncementFacts => ({
  status: "ok",
  result: "the reply",
  stats: STATS,
  ...more,
});
const STATS_LINE =
  "Stats: runtime 1m 5s · tokens 1200 in, 34 out, 1234 total · session agent:a:subagent:1 · session id s1";

test("an announcement contains status, result, notes and a line with statistics", () => {
  expect(
    composeAnnouncement(facts({ status: "error", result: "half of it", notes: "the model failed" })),
  ).toBe(["Status: error", "Result: half of it", "Notes: the model failed", "", STATS_LINE].join("\n"));
  expect(composeAnnouncement(facts({ result: " \n" }))).toContain("Result: (none)\nNotes: (none)\n");
  expect(composeAnnouncement(facts({ result: "one\r\ntwo" }))).toContain("Result:\none\ntwo\nNotes:");
});

test.each([
  [{ costUsd: 0.01234 }, "· cost $0.0123 ·"],
  [{ costUsd: 0.00001 }, "· cost <$0.0001 ·"],
  [{ costUsd: 0 }, "· cost $0.0000 ·"],
  [{ transcriptPath: "/s/s1.jsonl" }, "session id s1 · transcript /s/s1.jsonl"],
  [{ runtimeMs: 420 }, "runtime 0.4s"],
  [{ runtimeMs: 59_999 }, "runtime 59s"],
  [{ runtimeMs: 7_384_000 }, "runtime 2h 3m 4s"],
  [{ runtimeMs: -5 }, "runtime 0.0s"],
])("the statistics line shows %j as %s", (more, expected) => {
  expect(composeAnnouncement(facts({ stats: { ...STATS, ...more } }))).toContain(expected);
});

const announced = (words: string, more: Partial<AnnouncementFacts> = {}): string[] => {
  const lines = normaliseAnnouncement(words, facts({ status: "error", ...more })).split("\n");
  expect(lines.at(-1)).toBe(STATS_LINE);
  return lines.slice(0, -2);
};

test.each([
  ["All done.", ["Status: error", "Result: All done.", "Notes: (none)"]],
  ["Status: ok\nResult: 42\nNotes: hurried", ["Status: error", "Result: 42", "Notes: hurried"]],
  [
    "**Status:** ok\n**Result:** 42\n\n**Notes:** none of it",
    ["Status: error", "Result: 42", "Notes: none of it"],
  ],
  ["## Result:\nfirst\nsecond", ["Status: error", "Result:", "first", "second", "Notes: (none)"]],
  ["Status: success\n\nI wrote the file.", ["Status: error", "Result: I wrote the file.", "Notes: (none)"]],
  ["Here it is.\nResult: 42", ["Status: error", "Result: 42", "Notes: Here it is."]],
  ["status: ok", ["Status: error", "Result: the reply", "Notes: (none)"]],
  ["", ["Status: error", "Result: the reply", "Notes: (none)"]],
  ["Result: a\nStatus: ok", ["Status: error", "Result:", "a", "| Status: ok", "Notes: (none)"]],
  ["Notes: n\nResult: r\nResult: again", ["Status: error", "Result:", "r", "| Result: again", "Notes: n"]],
  [
    "Result:\n```\nNotes: in code\n```\nNotes: n",
    ["Status: error", "Result:", "```", "| Notes: in code", "```", "Notes: n"],
  ],
  ["Result: ```\nopen", ["Status: error", "Result:", "```", "open", "```", "Notes: (none)"]],
  ["Notes: (none)", ["Status: error", "Result: the reply", "Notes: (none)"]],
])(
  "I12: the text that the model writes (%j) is formatted, and the status comes from the runtime",
  (words, expected) => {
    expect(announced(words)).toEqual(expected);
  },
);

test("notes of the runtime come after notes of the model", () => {
  expect(announced("Result: r\nNotes: n", { notes: "e" })).toEqual([
    "Status: error",
    "Result: r",
    "Notes:",
    "n",
    "e",
  ]);
});

test.each([
  ["unseen characters", "\u200b".repeat(300)],
  ["blanks", " ".repeat(300)],
  ["marks", "`".repeat(300)],
  ["wide marks", "\uff1e".repeat(300)],
])(
  "I12: a status label that the model writes after hundreds of %s does not count as a second status",
  (_, before) => {
    const lines = announced(`Result: r\n${before}Status: ok`);
    expect(lines).toContain(`| ${before}Status: ok`);
  },
);

test("a long text is normalized piece by piece, because normalizing it as a whole would take quadratic time", () => {
  const { normalize } = String.prototype;
  let longest = 0;
  String.prototype.normalize = function counted(this: string, form?: string) {
    longest = Math.max(longest, this.length);
    return normalize.call(this, form);
  };
  try {
    composeAnnouncement(facts({ result: `a${"\u0301\u0316".repeat(40_000)}` }));
  } finally {
    String.prototype.normalize = normalize;
  }
  expect(longest).toBeGreaterThan(0);
  expect(longest).toBeLessThan(1_000);
});

test("a very long result is cut, and the announcement says where to find the rest", () => {
  const text = composeAnnouncement(facts({ result: "x".repeat(100_010) }));
  expect(text).toContain("(10 more characters are in the sub-agent's transcript.)");
});

test("an announcement is formatted in a time that is linear in the length of the text", () => {
  const text = `${"```\n".repeat(20_000)}${" ".repeat(20_000)}x\n${"#*_ ".repeat(20_000)}`;
  expect(normaliseAnnouncement(text, facts()).length).toBeGreaterThan(90_000);
});
