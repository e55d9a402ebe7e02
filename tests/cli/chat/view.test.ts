// The output of the chat for the events and messages of a gateway.

import fc from "fast-check";
import { expect, test } from "vitest";
import { ChatView, type Op } from "../../../src/cli/chat/view.ts";
import type { ChatEvent, FlowData } from "../../../src/contract/events.ts";
import { type AssistantMessage, type Message, ZERO_USAGE } from "../../../src/core/shapes/message.ts";

const KEY = "agent:main:main";
const OTHER = "agent:research:main";

function makeView() {
  const view = new ChatView(KEY, { style: (_, text) => text });
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

function assistant(id: string, text: string, calls: readonly string[] = []): AssistantMessage {
  return {
    id,
    role: "assistant",
    content: [
      ...(text === "" ? [] : [{ type: "text" as const, text }]),
      ...calls.map((name, at) => ({
        type: "toolCall" as const,
        id: `${id}-call-${at}`,
        name,
        arguments: {},
      })),
    ],
    timestamp: 1,
    api: "test",
    provider: "test",
    model: "test",
    usage: ZERO_USAGE,
    stopReason: calls.length > 0 ? "toolUse" : "stop",
  };
}

function user(id: string, text: string, from?: string): Message {
  const provenance =
    from === undefined
      ? {}
      : {
          provenance: {
            kind: "inter_session" as const,
            sourceSessionKey: from,
            sourceTool: "sessions_send",
            chainId: "c",
            hop: 1,
          },
        };
  return { id, role: "user", content: [{ type: "text", text }], timestamp: 1, ...provenance };
}

function result(of: AssistantMessage, at: number, text: string): Message {
  const content = [{ type: "text" as const, text }];
  const toolCallId = `${of.id}-call-${at}`;
  return {
    id: `${of.id}-result-${at}`,
    role: "toolResult",
    toolCallId,
    toolName: "read",
    content,
    isError: false,
    timestamp: 1,
  };
}

function chat(runId: string, state: ChatEvent["state"], text: string): ChatEvent {
  const message = { role: "assistant" as const, content: [{ type: "text" as const, text }], timestamp: 1 };
  return { runId, sessionKey: KEY, seq: 1, state, ...(text === "" ? {} : { message }) };
}

function flow(data: Partial<FlowData>): FlowData {
  return { flowId: "f", step: "reply", from: OTHER, to: KEY, turn: 2, turnsMax: 5, text: "words", ...data };
}

test("streamed text grows on one line, and is not shown again from the transcript", () => {
  const { view, show, lines } = makeView();
  view.typed("hello");
  for (const text of ["Good", "Good mor", "Good morning."]) show(view.chat(chat("r", "delta", text)));
  show(view.chat(chat("r", "final", "Good morning.")));
  show(view.settle([user("1", "hello"), assistant("2", "Good morning.")]));
  expect(lines()).toEqual(["agent: Good morning."]);
});

test("tool calls and results that were shown live are not shown again; those that were missed are shown from the transcript", () => {
  const { view, show, lines } = makeView();
  const message = assistant("m", "Looking.", ["read", "exec"]);
  show(view.chat(chat("r", "delta", "Looking.")));
  show(view.tool({ phase: "start", toolCallId: "r:m:0", name: "read", args: {} }));
  show(view.tool({ phase: "result", toolCallId: "r:m:0", name: "read", result: "text", isError: false }));
  show(view.settle([message, result(message, 0, "text"), result(message, 1, "out")]));
  expect(lines()).toEqual(["agent: Looking.", "  · read {}", "    → text", "  · exec {}", "    → out"]);
});

test("a result is shown in words, and a file for people with its name and size", () => {
  const { view, show, lines } = makeView();
  const sent = {
    status: "accepted",
    fileId: "file-r:m:0",
    name: "a\u001b[2J.pdf",
    bytes: 3_000_000,
    note: "On the page.",
  };
  const told = (text: string, isError = false) =>
    show(
      view.tool({
        phase: "result",
        toolCallId: `r:${text.length}:0`,
        name: "send_file",
        result: text,
        isError,
      }),
    );
  told(JSON.stringify(sent));
  told('{"status":"error","code":"too_large","error":"the file has 9 MB"}', true);
  told('{"status":"ok","exitCode":0,"output":"","truncated":false,"rows":[1,2]}');
  told("{damaged");
  expect(lines()).toEqual([
    "    → file a\\x1b[2J.pdf (2.9 MB) On the page.",
    "    ✗ too_large: the file has 9 MB",
    "    → status ok, exitCode 0, rows 2",
    "    → {damaged",
  ]);
});

test("CV2: a late tool event of a stopped run does not split the text of the next run", () => {
  const { view, show, lines } = makeView();
  show(view.tool({ phase: "start", toolCallId: "one:message:0", name: "exec", args: {} }));
  show(view.chat(chat("one", "aborted", "")));
  show(view.chat(chat("two", "delta", "still ")));
  show(
    view.tool({ phase: "result", toolCallId: "one:message:0", name: "exec", result: "ended", isError: true }),
  );
  show(view.chat(chat("two", "final", "still here")));
  expect(lines()[2]).toBe("agent: still here");
  expect(lines()[3]).toContain("ended");
});

test("CV2: a late tool result of a stopped run does not split the text of the next run", () => {
  const { view, show, lines } = makeView();
  const stopped = assistant("m", "", ["exec"]);
  show(view.tool({ phase: "start", toolCallId: "one:m:0", name: "exec", args: {} }));
  show(view.chat(chat("one", "aborted", "")));
  show(view.chat(chat("two", "delta", "still ")));
  show(view.settle([stopped, result(stopped, 0, "ended")]));
  show(view.chat(chat("two", "final", "still here")));
  expect(lines().slice(2)).toEqual(["agent: still here", "    → ended"]);
});

test("after a lost connection, the rest of an interrupted text is appended to it", () => {
  const { view, show, lines } = makeView();
  show(view.chat(chat("r", "delta", "The answer is")));
  show(view.settle([assistant("1", "The answer is 42.")]));
  show(view.chat(chat("r", "delta", "The answer is 42.")));
  show(view.chat(chat("r", "final", "The answer is 42.")));
  expect(lines()).toEqual(["agent: The answer is 42."]);
});

test("if a resumed run produces another text, the chat shows that the text was restarted", () => {
  const { view, show, lines } = makeView();
  show(view.chat(chat("r", "delta", "The answer is")));
  show(view.chat(chat("r", "delta", "The")));
  show(view.chat(chat("r", "delta", "There is none.")));
  show(view.chat(chat("r", "final", "There is none.")));
  show(view.settle([assistant("1", "There is none.")]));
  expect(lines()).toEqual(["agent: The answer is", "  (restarted)", "agent: There is none."]);
});

test("if a gateway stop interrupts a text, an equal text that comes later is still shown", () => {
  const { view, show, lines } = makeView();
  show(view.chat(chat("r", "delta", "Yes")));
  show(view.settle([assistant("1", "No.")]));
  show(view.settle([assistant("2", "Yes")]));
  expect(lines()).toEqual(["agent: Yes", "agent: No.", "agent: Yes"]);
});

test("a message of another session is shown once, when the run that answers it starts", () => {
  const { view, show, lines } = makeView();
  show(view.flow("reply-run", flow({ text: "Two risks." })));
  expect(lines()).toEqual([]);
  show(view.started("reply-run"));
  show(view.settle([user("1", "Two risks.", OTHER), assistant("2", "Which one first?")]));
  show(view.flow("next-run", flow({ from: KEY, to: OTHER, turn: 3, text: "Which one first?" })));
  expect(lines()).toEqual([`  « from ${OTHER}: Two risks.`, "agent: Which one first?"]);
});

test("a message that is in the transcript before its run starts keeps its reply turn, and is shown once", () => {
  const { view, show, lines } = makeView();
  show(view.flow("reply-run", flow({ text: "Two risks.", turn: 4, turnsMax: 5 })));
  show(view.settle([user("1", "Two risks.", OTHER)]));
  show(view.started("reply-run"));
  expect(lines()).toEqual([`  « from ${OTHER} (reply turn 2 of 5): Two risks.`]);
  // An equal text in a later turn is another message.
  show(view.flow("later-run", flow({ text: "Two risks.", turn: 6, turnsMax: 5 })));
  show(view.started("later-run"));
  show(view.settle([user("2", "Two risks.", OTHER)]));
  expect(lines()[1]).toBe(`  « from ${OTHER} (reply turn 4 of 5): Two risks.`);
  expect(lines()).toHaveLength(2);
});

test("a message that is in the transcript before its run's start is reported is shown once", () => {
  const { view, show, lines } = makeView();
  show(view.flow("first", flow({ text: "Two risks." })));
  show(view.settle([user("1", "Two risks.", OTHER)]));
  show(view.started("first"));
  show(view.settle([user("2", "Two risks.", OTHER)]));
  show(view.flow("second", flow({ text: "Two risks." })));
  show(view.started("second"));
  show(view.flow("third", flow({ text: "Two risks." })));
  show(view.started("third"));
  show(view.settle([user("3", "Two risks.", OTHER)]));
  expect(lines()).toEqual(Array(3).fill(`  « from ${OTHER}: Two risks.`));
});

test("a message of another person in the session is shown", () => {
  const { view, show, lines } = makeView();
  view.typed("mine");
  show(view.settle([user("1", "theirs"), user("2", "mine")]));
  expect(lines()).toEqual(["you: theirs"]);
});

test("if the agent chooses not to answer, its skip token is not shown", () => {
  const { view, show, lines } = makeView();
  show(view.settle([assistant("1", " REPLY_SKIP\n"), assistant("2", "ANNOUNCE_SKIP")]));
  expect(lines()).toEqual([]);
});

test("a stopped run and a failed run are reported", () => {
  const { view, show, lines } = makeView();
  show(view.chat(chat("r", "delta", "Wait")));
  show(view.chat(chat("r", "aborted", "")));
  show(view.chat({ runId: "s", sessionKey: KEY, seq: 1, state: "error", errorMessage: "no\x1b[31m key" }));
  expect(lines()).toEqual(["agent: Wait", "  (stopped)", "  ✗ the run failed: no\\x1b[31m key"]);
});

test("CV1: every text of a transcript is shown once and in order, no matter which parts were streamed", () => {
  // Each message streams in several pieces, and some are lost. After each piece the transcript may be read.
  const said = fc.record({
    pieces: fc.array(fc.nat({ max: 12 }), { maxLength: 4 }),
    final: fc.boolean(),
    read: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(said, { maxLength: 8 }), (story) => {
      const { view, show, lines } = makeView();
      const texts = story.map((_, at) => `Text no. ${at}!`);
      let settled = 0;
      const read = (until: number): void => {
        const messages = texts.slice(settled, until).map((text, at) => assistant(`${settled + at}`, text));
        settled = until;
        show(view.settle(messages));
      };
      story.forEach(({ pieces, final, read: readNow }, at) => {
        const text = texts[at] ?? "";
        const run = `run-${at}`;
        for (const length of pieces.toSorted((a, b) => a - b)) {
          if (length > 0) show(view.chat(chat(run, "delta", text.slice(0, length))));
        }
        if (final) show(view.chat(chat(run, "final", text)));
        if (readNow || !final) read(at + 1);
      });
      read(texts.length);
      expect(lines()).toEqual(texts.map((text) => `agent: ${text}`));
    }),
  );
});
