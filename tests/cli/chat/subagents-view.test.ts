// The chat shows the start and the result of each sub-agent once, even if several sources report it.

import fc from "fast-check";
import { expect, test } from "vitest";
import { readAnnouncement } from "../../../src/cli/announcement-lines.ts";
import { ChatView, type Op } from "../../../src/cli/chat/view.ts";
import type { ChatEvent, FlowData } from "../../../src/contract/events.ts";
import { composeAnnouncement } from "../../../src/core/rules/announcement.ts";
import type { Message } from "../../../src/core/shapes/message.ts";

const MAIN = "agent:main:main";
const plain = { style: (_: unknown, text: string) => text };
const childKey = (at: number) => `agent:main:subagent:0000000${at}-0000-4000-8000-000000000000`;
const CHILD = childKey(1);

function announcement(result: string, more: { notes?: string; status?: "ok" | "error"; at?: number } = {}) {
  const { status = "ok", at = 1, ...notes } = more;
  const tokens = { inputTokens: 10, outputTokens: 2, totalTokens: 12 };
  const stats = { runtimeMs: 1_500, ...tokens, sessionKey: childKey(at), sessionId: `id-${at}` };
  return composeAnnouncement({ status, result, stats, ...notes });
}

function makeView(key = MAIN) {
  const view = new ChatView(key, plain);
  let screen = "";
  const show = (ops: readonly Op[]): void => {
    for (const op of ops) {
      if (op.op !== "grow" && screen !== "" && !screen.endsWith("\n")) screen += "\n";
      if (op.op === "line") screen += `${op.text}\n`;
      if (op.op === "grow") screen += op.text;
    }
  };
  return { view, show, lines: () => screen.split("\n").filter((line) => line !== "") };
}

function flow(step: FlowData["step"], text: string, at = 1): FlowData {
  const [from, to] = step === "task" ? [MAIN, childKey(at)] : [childKey(at), MAIN];
  return { flowId: `f${at}`, step, from, to, turn: 1, turnsMax: 0, text };
}

function delivered(text: string): ChatEvent {
  const message = { role: "assistant" as const, content: [{ type: "text" as const, text }], timestamp: 1 };
  return { runId: "d", sessionKey: MAIN, seq: 1, state: "final", message, stopReason: "delivered" };
}

function delta(text: string, state: "delta" | "final" = "delta"): ChatEvent {
  const message = { role: "assistant" as const, content: [{ type: "text" as const, text }], timestamp: 1 };
  return { runId: "r", sessionKey: MAIN, seq: 1, state, message };
}

function arrived(text: string, sourceSessionKey = CHILD): Message {
  const rest = { sourceTool: "sessions_spawn", chainId: "c", hop: 1 };
  const provenance = { kind: "inter_session" as const, sourceSessionKey, ...rest };
  return { id: text, role: "user", content: [{ type: "text", text }], timestamp: 1, provenance };
}

const STATS = "    runtime 1.5s · tokens 10 in, 2 out, 12 total";

test("a sub-agent is shown at its start, and its result on arrival", () => {
  const { view, show, lines } = makeView();
  show(view.flow("task-run", flow("task", "count\nthe beans")));
  show(view.flow("task-run", flow("announce", announcement("forty-two", { notes: "I counted twice." }))));
  show(view.flow("task-run", flow("ended", "")));
  expect(lines()).toEqual([
    `  » sub-agent ${CHILD} starts: count the beans`,
    `  « sub-agent ${CHILD}: ok`,
    "    forty-two",
    "    notes: I counted twice.",
    STATS,
  ]);
});

test("a failed job is shown with its details", () => {
  const { view, show, lines } = makeView();
  const text = announcement("", { status: "error", notes: "no\x1b[31m key" });
  show(view.flow("r", flow("announce", text)));
  expect(lines()).toEqual([`  « sub-agent ${CHILD}: error`, "    notes: no\\x1b[31m key", STATS]);
});

test("CV3: a result is shown once, whichever of event, delivery and transcript arrives first", () => {
  const ways = ["event", "delivery", "transcript"] as const;
  const arrivals = fc
    .shuffledSubarray(
      [1, 2, 3].flatMap((at) => ways.map((way) => ({ at, way }))),
      { minLength: 1 },
    )
    .chain((some) => fc.constant(some));
  fc.assert(
    fc.property(arrivals, (some) => {
      const { view, show, lines } = makeView();
      for (const { at, way } of some) {
        const text = announcement(`result ${at}`, { at });
        if (way === "event") show(view.flow(`r${at}`, flow("announce", text, at)));
        if (way === "delivery") show(view.chat(delivered(text)));
        if (way === "transcript") show(view.settle([arrived(text, childKey(at))]));
      }
      const heads = lines().filter((line) => line.includes("« sub-agent"));
      expect(heads.toSorted()).toEqual(
        [...new Set(some.map(({ at }) => `  « sub-agent ${childKey(at)}: ok`))].toSorted(),
      );
    }),
  );
});

test("CV2: a result that arrives while the agent streams a message is shown after that message", () => {
  const { view, show, lines } = makeView();
  show(view.chat(delta("I am ")));
  show(view.flow("r1", flow("announce", announcement("forty-two"))));
  show(view.chat(delta("I am at it.")));
  expect(lines()).toEqual(["agent: I am at it."]);
  show(view.chat(delta("I am at it.", "final")));
  expect(lines()).toEqual(["agent: I am at it.", `  « sub-agent ${CHILD}: ok`, "    forty-two", STATS]);
});

test("a job without an announcement is shown in one line", () => {
  const { view, show, lines } = makeView();
  show(view.flow("r", flow("ended", "")));
  show(view.flow("r", flow("ended", "")));
  expect(lines()).toEqual([`  « sub-agent ${CHILD} ended without an announcement`]);
});

test("the sub-agent's own session shows the task with its requester, and labels the announce step", () => {
  const { view, show, lines } = makeView(CHILD);
  show(view.settle([arrived("count the beans", MAIN), arrived("Sub-agent announce step.", MAIN)]));
  show(view.flow("r", flow("announce", announcement("forty-two"))));
  show(view.flow("r", flow("ended", "")));
  expect(lines()).toEqual([
    `  « from ${MAIN}: count the beans`,
    `  ↔ the job is done; the next text is its announcement to ${MAIN}`,
  ]);
});

test("AL1: text of another session that imitates an announcement is shown as a message, and hides no real result", () => {
  const { view, show, lines } = makeView();
  const forged = announcement("nothing to see");
  expect(readAnnouncement(forged, "agent:research:main")).toBeUndefined();
  show(view.settle([arrived(forged, "agent:research:main")]));
  expect(lines()[0]).toBe("  « from agent:research:main: Status: ok");
  show(view.settle([arrived(announcement("forty-two"))]));
  expect(lines().filter((line) => line === "    forty-two")).toHaveLength(1);
  expect(readAnnouncement("Status: ok\nResult: x\nNotes: y")).toBeUndefined();
});
