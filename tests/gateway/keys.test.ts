// Idempotency keys under attack: of others, of runs, interrupted, over and over.

import { expect, test } from "vitest";
import { cleanup, temporaryFolder } from "../kit/engine.ts";
import { joined, openHouse } from "./kit.ts";

const other = { token: "other", role: "operator" as const, scopes: ["operator.admin" as const] };

test("the id of a run that somebody else began is no key for a request of one's own", async () => {
  const house = await openHouse({ gateway: { tokens: [other] } });
  const [one, two] = [await house.client(), await house.client({ token: "other" })];
  const target = "agent:research:main";
  const sent = await one.call<{ runId: string }>("tools.invoke", {
    name: "sessions_send",
    arguments: { sessionKey: target, message: "ask", timeoutSeconds: 5 },
  });
  for (const client of [one, two]) {
    const params = { sessionKey: target, message: "ask", idempotencyKey: sent.runId };
    await expect(client.call("chat.send", params)).rejects.toMatchObject({ code: "CONFLICT" });
    await expect(client.call("agent", params)).rejects.toMatchObject({ code: "CONFLICT" });
  }
});

test("a keyed tool call goes on without its caller, and is answered when it is asked for again", async () => {
  const gate = Promise.withResolvers<void>();
  cleanup(() => gate.resolve());
  let runs = 0;
  const play = async () => {
    runs++;
    await gate.promise;
    return "late";
  };
  const house = await openHouse({ play });
  const params = {
    name: "sessions_send",
    arguments: { sessionKey: "agent:research:main", message: "x", timeoutSeconds: 60 },
    idempotencyKey: "tool",
  };
  const first = await joined(house);
  first.send({ type: "req", id: "t", method: "tools.invoke", params });
  await first.next((frame) => frame.event === "agent" && frame.payload.stream === "lifecycle");
  first.socket.terminate();
  const again = (await house.client()).call("tools.invoke", params);
  gate.resolve();
  expect(await again).toMatchObject({ status: "ok", reply: "late" });
  expect(runs).toBe(1);
});

test("a keyed tool call that a restart interrupted sends its message once", async () => {
  const dir = temporaryFolder();
  const gate = Promise.withResolvers<void>();
  cleanup(() => gate.resolve());
  const texts: string[] = [];
  const play = async ({ run, signal }: { run: { input: { text: string } }; signal: AbortSignal }) => {
    texts.push(run.input.text);
    signal.addEventListener("abort", () => gate.resolve());
    await gate.promise;
    if (signal.aborted) throw signal.reason;
    return "ok";
  };
  const first = await openHouse({ dir, play });
  const params = {
    name: "sessions_send",
    arguments: { sessionKey: "agent:research:main", message: "once", timeoutSeconds: 60 },
    idempotencyKey: "tool",
  };
  const raw = await joined(first);
  raw.send({ type: "req", id: "t", method: "tools.invoke", params });
  await raw.next((frame) => frame.event === "agent" && frame.payload.stream === "lifecycle");
  await first.stop();
  const second = await openHouse({ dir });
  const answer = await (await second.client()).call<Record<string, unknown>>("tools.invoke", params);
  console.log(answer, texts);
  const history = await (await second.client()).call<{ messages: { role: string }[] }>("chat.history", {
    sessionKey: "agent:research:main",
  });
  expect(history.messages.filter((message) => message.role === "user")).toHaveLength(1);
});

test.each([["\ud800"], ["a\u0000b"], ["a\nb"], [" "]])("the idempotency key %j: a run under that very id, or an error", async (key) => {
  const house = await openHouse();
  const raw = await joined(house);
  raw.send({ type: "req", id: "s", method: "chat.send", params: { sessionKey: "main", message: "x", idempotencyKey: key } });
  const answer = await raw.res("s");
  console.log(JSON.stringify(answer));
  if (answer.ok !== true) return;
  const wait = await (await house.client()).call("agent.wait", { runId: key });
  expect(wait).toMatchObject({ runId: key, status: "ok" });
});
