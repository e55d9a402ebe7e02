// Turns whose requests a provider refuses: crashes, fallbacks, results of tools.

import { expect, test } from "vitest";
import { modelView } from "../../../src/agent/loop/view.ts";
import { type Entry, type ImageBlock, type Message, ZERO_USAGE } from "../../../src/core/shapes/message.ts";
import { scriptedModel } from "../../kit/scripted-model.ts";
import { Crash, OFFLINE, smallModel, startTurn, toolSpec, userSays } from "../turn-kit.ts";

const PICTURE: ImageBlock = { type: "image", data: "AAAA", mimeType: "image/png" };
const withPicture = (): Entry[] => [{ ...userSays("look"), content: [PICTURE] }];
const notesIn = (entries: readonly Entry[]) =>
  entries.flatMap((entry) => ("role" in entry && entry.role === "assistant" ? (entry.omits ?? []) : []));
const hasPicture = (entries: readonly Entry[]): boolean =>
  modelView(entries, OFFLINE).some(({ content }) => content.some(({ type }) => type === "image"));
const textsOf = (entries: readonly Entry[]): string[] =>
  modelView(entries, OFFLINE).flatMap((one: Message) =>
    one.content.flatMap((block) => (block.type === "text" ? [block.text] : [])),
  );

test("L2: after a crash behind the note the picture is not sent again", async () => {
  const entries = withPicture();
  const first = startTurn({ port: scriptedModel(() => ({ refused: "pictures" })), entries, appendsMax: 0 });
  await expect(first.end).rejects.toBeInstanceOf(Crash);
  const second = startTurn({
    port: scriptedModel((_, call) => (call === 0 ? { refused: "pictures" } : "never stored")),
    entries,
    appendsMax: 1,
  });
  await expect(second.end).rejects.toBeInstanceOf(Crash);
  expect(notesIn(entries)).toEqual(["pictures"]);
  const port = scriptedModel(() => "answered");
  expect(await startTurn({ port, entries, more: { attempt: 2 } }).end).toMatchObject({ text: "answered" });
  expect(port.requests.map((request) => hasPicture(request.entries))).toEqual([false]);
});

test("a picture in the result of a tool is replaced, and the turn continues", async () => {
  const port = scriptedModel((request, call) => {
    if (call === 0) return { toolCalls: [{ name: "camera" }] };
    return hasPicture(request.entries) ? { refused: "pictures" } : "answered";
  });
  const turn = startTurn({
    port,
    tools: [toolSpec("camera")],
    callTool: async () => ({ text: "taken", isError: false, images: [PICTURE] }),
  });
  expect(await turn.end).toMatchObject({ kind: "ok", text: "answered" });
  expect(textsOf(port.requests.at(-1)?.entries ?? []).join()).toContain("a picture was here");
});

test("results of tools that are longer than the window are cut, and the turn is answered", async () => {
  const calls = [1, 2, 3].map((n) => ({ name: "t", arguments: { n } }));
  const port = scriptedModel((request, call) => {
    if (call === 0) return { toolCalls: calls };
    if (request.system.startsWith("You condense")) return "summary";
    return textsOf(request.entries).join("").length > 15_000 ? { overflow: "too long" } : "answered";
  });
  const turn = startTurn({
    port,
    tools: [toolSpec("t")],
    callTool: async () => ({ text: "x".repeat(40_000), isError: false }),
    more: { model: smallModel(100_000) },
  });
  expect(await turn.end).toMatchObject({ kind: "ok", text: "answered" });
  expect(notesIn(turn.entries)).toEqual(["long texts"]);
  expect(textsOf(port.requests.at(-1)?.entries ?? []).join()).toContain("characters left out");
});

test("a model that refuses the repeat, too, is followed by its fallback model", async () => {
  const other = { ...OFFLINE, ref: "offline/other" };
  const port = scriptedModel(({ model }) =>
    model.ref === other.ref ? "from the other" : { refused: "pictures" },
  );
  const turn = startTurn({ port, entries: withPicture(), more: { fallbackModels: [other] } });
  expect(await turn.end).toMatchObject({ kind: "ok", text: "from the other" });
  expect(port.requests.map(({ model }) => model.ref)).toEqual([OFFLINE.ref, OFFLINE.ref, other.ref]);
});

test("O2: a refusal that blames a part which the request does not have is a failure at once", async () => {
  for (const part of ["pictures", "thinking", "tool pairs"] as const) {
    const port = scriptedModel(() => ({ refused: part }));
    const turn = startTurn({ port });
    expect(await turn.end).toMatchObject({ kind: "error", error: `refused: ${part}` });
    expect({ requests: port.requests.length, notes: notesIn(turn.entries) }).toEqual({
      requests: 1,
      notes: [],
    });
  }
});

test("L4: an abort during a refusal appends no note", async () => {
  const port = scriptedModel(() => ({ refused: "pictures" }));
  const turn = startTurn({
    port: {
      async call(...request) {
        const outcome = await port.call(...request);
        turn.abort.abort();
        return outcome;
      },
    },
    entries: withPicture(),
  });
  expect(await turn.end).toMatchObject({ kind: "aborted" });
  expect(turn.entries).toHaveLength(1);
});

test("O2: a run that begins with results and misses its thinking is repeated once, without thinking", async () => {
  const result: Message = {
    ...{ id: "asked:0", role: "toolResult", toolCallId: "c", toolName: "t", isError: false, timestamp: 3 },
    content: [{ type: "text", text: "rain" }],
  };
  const asked: Message = {
    ...{ id: "asked", role: "assistant", timestamp: 2, api: "x", provider: "x", model: "x" },
    ...{ content: [{ type: "toolCall", id: "c", name: "t", arguments: {} }], usage: ZERO_USAGE },
    stopReason: "toolUse",
  };
  for (const refusals of [1, 20]) {
    const port = scriptedModel((_, call) => (call < refusals ? { refused: "thinking" } : "answered"));
    const entries: Entry[] = [userSays("go"), asked, result];
    const turn = startTurn({ port, entries, more: { startsAfter: result.id, thinking: "high" } });
    const end = refusals === 1 ? { kind: "ok", text: "answered" } : { kind: "error" };
    expect(await turn.end).toMatchObject(end);
    expect(port.requests.map(({ thinking }) => thinking)).toEqual(["high", "off"]);
    expect(notesIn(turn.entries)).toEqual(["thinking"]);
  }
});
