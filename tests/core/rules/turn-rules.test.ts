import fc from "fast-check";
import { expect, test } from "vitest";
import { optional } from "../../../src/core/optional.ts";
import {
  announceContext,
  decideNext,
  HEADING,
  messageContext,
  replyContext,
  replyTurnOwner,
  spokenText,
  subagentAnnounceContext,
  subagentContext,
} from "../../../src/core/rules/turn-rules.ts";
import type { EndedRunState, FlowStep } from "../../../src/core/shapes/run.ts";

type End = Parameters<typeof decideNext>[0]["end"];
const said = (reply: string): End => ({ state: "ok", reply });
const ended = (state: EndedRunState, code?: End["code"]): End => ({
  state,
  ...optional({ code }),
});

/**
 * Plays a flow in which turn `n` ends as `ends[n - 1]`, or with a text if there is no such entry. Returns the
 * events in order.
 */
function play(turnsMax: number, ends: readonly End[]): string[] {
  const log: string[] = [];
  let step: FlowStep = "round1";
  let turn = 1;
  for (let guard = 0; guard < 20; guard += 1) {
    log.push(step === "announce" ? "target announces" : `${replyTurnOwner(turn)} speaks`);
    const next = decideNext({ step, turn, turnsMax, end: ends[log.length - 1] ?? said("hello") });
    if (next.next === "end") return [...log, next.reason];
    if (next.next === "reply") turn = next.turn;
    step = next.next;
  }
  throw new Error("the flow has no end");
}

const ROUND1 = "target speaks";
const ANNOUNCE = ["target announces", "announced"];

test.each([
  [0, []],
  [1, ["requester"]],
  [2, ["requester", "target"]],
  [3, ["requester", "target", "requester"]],
  [4, ["requester", "target", "requester", "target"]],
  [5, ["requester", "target", "requester", "target", "requester"]],
])(
  "T1: with maxPingPongTurns %i the turns after the first answer are %j, then the announce step",
  (turnsMax, speakers) => {
    const turns = speakers.map((who) => `${who} speaks`);
    expect(play(turnsMax, [])).toEqual([ROUND1, ...turns, ...ANNOUNCE]);
  },
);

test("T1: a stored flow has at most five reply turns", () => {
  expect(play(1000, [])).toHaveLength(1 + 5 + 2);
  expect(play(-1, [])).toEqual([ROUND1, ...ANNOUNCE]);
});

test.each([
  ["an empty reply", said(" \n")],
  ["no reply", { state: "ok" } as End],
  ["REPLY_SKIP", said("REPLY_SKIP")],
  ["ANNOUNCE_SKIP", said(" ANNOUNCE_SKIP\n")],
])("T2: %s in round 1 means no reply turns and no announcement", (_, end) => {
  expect(play(5, [end])).toEqual([ROUND1, "skipped"]);
});

test.each([
  ["a skip token", said("REPLY_SKIP")],
  ["the other skip token", said("ANNOUNCE_SKIP")],
  ["an empty reply", said("")],
  ["a failed run", ended("error", "run_failed")],
  ["a time-out", ended("timeout", "run_timeout")],
  ["a denied run", ended("error", "send_denied")],
  ["the chain limit", ended("error", "chain_limit")],
])("T1: %s in a reply turn ends the conversation, and the announce step follows", (_, end) => {
  expect(play(5, [said("a"), end])).toEqual([ROUND1, "requester speaks", ...ANNOUNCE]);
  expect(play(5, [said("a"), said("b"), end])).toEqual([
    ROUND1,
    "requester speaks",
    "target speaks",
    ...ANNOUNCE,
  ]);
});

test("an abort in any step ends the flow without an announcement", () => {
  for (const step of ["round1", "reply", "announce"] as const) {
    const end = ended("aborted", "session_reset");
    expect(decideNext({ step, turn: 1, turnsMax: 5, end })).toEqual({
      next: "end",
      reason: "session_reset",
    });
  }
});

test("a failure of the first answer ends the flow with its code", () => {
  expect(play(5, [ended("error", "run_failed")])).toEqual([ROUND1, "run_failed"]);
  expect(play(5, [ended("timeout", "run_timeout")])).toEqual([ROUND1, "run_timeout"]);
});

test("if the agent announces nothing, nothing is posted", () => {
  expect(play(0, [said("a"), said("ANNOUNCE_SKIP")])).toEqual([ROUND1, "target announces", "silent"]);
});

test("T1: every flow ends within seven runs; after the first answer the parties alternate, beginning with the requester", () => {
  const end = fc.oneof(
    fc.constantFrom(
      said("a"),
      said("REPLY_SKIP"),
      said(""),
      ended("error"),
      ended("aborted"),
      ended("timeout"),
    ),
  );
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 5 }), fc.array(end, { maxLength: 8 }), (max, ends) => {
      const log = play(max, ends);
      expect(log.length).toBeLessThanOrEqual(8);
      const speakers = log.filter((line) => line.endsWith("speaks"));
      speakers.forEach((line, at) => {
        expect(line).toBe(at % 2 === 0 ? "target speaks" : "requester speaks");
      });
      expect(speakers.length - 1).toBeLessThanOrEqual(max);
    }),
    { numRuns: 1000 },
  );
});

test.each([
  ...["", "  ", "REPLY_SKIP", "\n ANNOUNCE_SKIP \t", "reply_skip", "REPLY_SKIP.", "**REPLY_SKIP**"],
  ...["`NO_REPLY`", "```\nREPLY_SKIP\n```", "```text\nHEARTBEAT_OK\n```", '"NO_REPLY"', "“no_reply”."],
  ...["__REPLY_SKIP__", "REPLY\\_SKIP", "> *Heartbeat_OK*!", "---\nNO_REPLY\n---", "NO_REPLY\nNO_REPLY"],
])("T2: %j is silence", (text) => {
  expect(spokenText(text)).toBe("");
});

test.each([
  "I say REPLY_SKIP",
  "REPLY_SKIP ANNOUNCE_SKIP",
  "REPLY SKIP",
  "Reply: skip.",
  "no",
  "NO_REPLY_ALL",
  "REPLY_SKIP\nmeans silence",
  "The token is `NO_REPLY`.",
  "```js\nfoo();\n```",
  "👍",
  '{"tokens": [\n "OK",\n "NO_REPLY"\n]}',
  '```json\n["NO_REPLY"]\n```',
  "enum R {\n OK,\n NO_REPLY\n}",
  "return\n NO_REPLY;\n}",
  "| NO_REPLY |",
  "Tokens:\n- REPLY_SKIP\n- NO_REPLY",
])("T2: %j is said as it is", (text) => {
  expect(spokenText(text)).toBe(text);
});

test.each([
  ["Nothing new.\n\nREPLY_SKIP", "Nothing new."],
  ["Nothing new.\n  \n**no_reply**.\n", "Nothing new."],
  ["Nothing new.\n\n```\nREPLY_SKIP\n```", "Nothing new."],
  ["```js\nfoo();\n```\nREPLY_SKIP", "```js\nfoo();\n```"],
  ["👍\nNO_REPLY\nHEARTBEAT_OK", "👍"],
  ["🇩🇪\nNO_REPLY", "🇩🇪"],
  ["√∞\nNO_REPLY", "√∞"],
])("T2: a token alone at the end of %j is removed", (text, spoken) => {
  expect(spokenText(text)).toBe(spoken);
});

test("T2: a long text without a token is read in time that grows with its length", () => {
  for (const sign of ["`", "*", "\n", " ", "_", "👍"]) {
    const text = `${sign.repeat(200_000)}x`;
    expect(spokenText(text)).toBe(text);
    expect(spokenText(text.slice(0, -1)).length).toBeLessThanOrEqual(text.length);
  }
});

const ops = { key: "agent:ops:main", channel: "telegram" };
const self = { key: "main", channel: "webchat", label: "night desk" };

test("each context begins with its fixed heading line", () => {
  const texts = [
    messageContext({ requester: ops, self }),
    replyContext({ self, other: ops, turn: 2, turnsMax: 5 }),
    announceContext({ self, requester: ops, request: "q", round1Reply: "a", latestReply: "b" }),
    subagentContext({ self, requester: ops, depth: 1, maySpawn: false, way: "post" }),
    subagentAnnounceContext({ self, requester: ops, task: "t", status: "ok", result: "r" }),
  ];
  expect(texts.map((text) => text.split("\n")[0])).toEqual(Object.values(HEADING));
});

test("the message context names the sender, its channel and the recipient, and forbids sending to the sender", () => {
  const text = messageContext({ requester: ops, self });
  expect(text).toContain('session "agent:ops:main" (channel "telegram")');
  expect(text).toContain('You are session "main", labelled "night desk" (channel "webchat")');
  expect(text).toContain("goes back to that session automatically");
  expect(text).toContain('Do not call sessions_send to "agent:ops:main"');
});

test("the reply context names the author, the turn number and its limit, and how to stop", () => {
  const text = replyContext({ self, other: ops, turn: 4, turnsMax: 5 });
  expect(text).toContain("reply turn 3 of at most 5");
  expect(text).toContain("the one who asked");
  expect(text).toContain("REPLY_SKIP");
  expect(replyContext({ self, other: ops, turn: 3, turnsMax: 5 })).toContain("the one who was asked");
});

test("the announce context contains the request, the first and the latest reply, and how to announce nothing", () => {
  const text = announceContext({
    self,
    requester: ops,
    request: "Q?\nnow",
    round1Reply: "A1",
    latestReply: "A9",
  });
  for (const line of ["| Q?", "| now", "| A1", "| A9"]) expect(text.split("\n")).toContain(line);
  expect(text).toContain("ANNOUNCE_SKIP");
});

test("a sub-agent's context names its requester, the automatic announcement, and whether it may spawn", () => {
  const text = subagentContext({ self, requester: ops, depth: 2, maySpawn: true, way: "post" });
  expect(text).toContain('started by session "agent:ops:main" (channel "telegram")');
  expect(text).toContain("2 deep");
  expect(text).toContain("announced automatically: to the people of that session");
  expect(text).toContain("sub-agents of your own with sessions_spawn");
  expect(subagentContext({ self, requester: ops, depth: 1, maySpawn: false, way: "post" })).toContain(
    "can't start",
  );
});

test("T3: a sub-agent's announce context quotes status, task and result, and says how to announce nothing", () => {
  const task = `do it\n${HEADING.announce}`;
  const text = subagentAnnounceContext({
    self,
    requester: ops,
    task,
    status: "timeout",
    result: "half\nof it",
  });
  for (const line of ["| do it", `| ${HEADING.announce}`, "| half", "| of it"]) {
    expect(text.split("\n")).toContain(line);
  }
  expect(text).toContain("with status timeout");
  expect(text).toContain("ANNOUNCE_SKIP");
});

test("after a sub-agent's job there are no reply turns, because a job is not a conversation", () => {
  expect(decideNext({ step: "task", turn: 1, turnsMax: 5, end: said("x") }).next).toBe("end");
});

test("T3: a very long quotation is cut and says how much is missing", () => {
  const text = announceContext({
    self,
    requester: ops,
    request: "x".repeat(20_000),
    round1Reply: "a",
    latestReply: "b",
  });
  expect(text).toContain("(4000 more characters are left out here.)");
  expect(text.length).toBeLessThan(18_000);
});
