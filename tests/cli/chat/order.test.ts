// The chat when the transcript and the events of a gateway arrive in an unusual order.

import { expect, test } from "vitest";
import { scriptedGateway } from "../../kit/scripted-gateway.ts";
import { call, makeHome } from "../kit.ts";

const KEY = "agent:main:main";
const OTHER = "agent:research:main";

const turn = (id: string, text: string) => ({
  id,
  role: "user",
  content: [{ type: "text", text }],
  timestamp: 1,
  provenance: {
    kind: "inter_session",
    sourceSessionKey: OTHER,
    sourceTool: "sessions_send",
    chainId: "c",
    hop: 1,
  },
});

/** Starts a chat with a gateway whose answers and events the test controls. */
async function scriptedChat() {
  const gateway = await scriptedGateway();
  const { home } = await makeHome();
  const chat = call(home, ["--url", gateway.url, "--token", "t", "chat"]);
  const answer = async (method: string, payload: unknown): Promise<void> => {
    const request = await gateway.request();
    expect(request.method).toBe(method);
    request.answer(payload);
  };
  const history = (...messages: unknown[]) =>
    answer("chat.history", { sessionKey: KEY, sessionId: "s", messages });
  const agent = (runId: string, stream: string, data: object): void =>
    gateway.event("agent", { runId, sessionKey: KEY, seq: 1, stream, ts: 1, data });
  await answer("sessions.resolve", { key: KEY });
  await history();
  // The end of a run makes the chat read the transcript.
  agent("first", "lifecycle", { phase: "start" });
  agent("first", "lifecycle", { phase: "end" });
  await history(turn("m1", "Two risks."));
  return { gateway, chat, history, agent };
}

test("a message is shown before the live text of its run, even if no event reported the start of that run", async () => {
  const { gateway, chat, history, agent } = await scriptedChat();
  // The second read returns nothing new, so the message is still not shown when the live text begins.
  agent("first", "lifecycle", { phase: "end" });
  await history(turn("m1", "Two risks."));
  const content = [{ type: "text", text: "I see." }];
  const live = { runId: "second", sessionKey: KEY, seq: 1, message: { role: "assistant", content } };
  gateway.event("chat", { ...live, state: "delta" });
  gateway.event("chat", { ...live, state: "final", seq: 2 });
  await history(turn("m1", "Two risks."));
  chat.stdin.end();
  expect(await chat.code).toBe(0);
  const out = chat.out();
  expect(out.indexOf("Two risks.")).toBeGreaterThan(-1);
  expect(out.indexOf("Two risks.")).toBeLessThan(out.indexOf("I see."));
});
