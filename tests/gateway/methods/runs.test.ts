// Runs as clients see them: accepted, streamed, ended, and requested again.

import { expect, test } from "vitest";
import { whole } from "../../kit/live-text.ts";
import { type Frame, joined, openHouse, type Play, type Raw } from "../kit.ts";

const chatOf = (raw: Raw, runId: string): Frame[] =>
  raw.frames.filter((frame) => frame.event === "chat" && frame.payload.runId === runId);

const ended = (runId: string) => (frame: Frame) =>
  frame.event === "chat" && frame.payload.runId === runId && frame.payload.state !== "delta";

test("chat.send is answered with the key as run id, and the last event contains the answer", async () => {
  const play: Play = (handle) => {
    handle.text(whole("Hello"));
    return "Hello world";
  };
  const house = await openHouse({ play });
  const raw = await joined(house);
  const params = { sessionKey: "main", message: "hi", idempotencyKey: "run-1" };
  raw.send({ type: "req", id: "s", method: "chat.send", params });
  expect((await raw.res("s")).payload).toEqual({ runId: "run-1", status: "started" });
  const final = await raw.next(ended("run-1"));
  expect(final.payload).toMatchObject({
    sessionKey: "agent:main:main",
    state: "final",
    stopReason: "stop",
    message: { role: "assistant", content: [{ type: "text", text: "Hello world" }] },
    usage: { totalTokens: 5 },
  });
  const [delta] = chatOf(raw, "run-1");
  expect(delta?.payload).toMatchObject({ state: "delta", message: { content: [{ text: "Hello" }] } });
  const lifecycle = raw.frames
    .filter((f) => f.event === "agent" && f.payload.stream === "lifecycle")
    .map((f) => f.payload);
  expect(lifecycle.map((event) => event.data.phase)).toEqual(["start", "end"]);
  expect(lifecycle[1].data).toMatchObject({
    state: "ok",
    startedAt: expect.any(Number),
    endedAt: expect.any(Number),
  });
});

test("seq increases by one with each event of a connection, and with each event of a run", async () => {
  const play: Play = (handle) => {
    handle.text(whole("a"));
    return "ab";
  };
  const house = await openHouse({ play });
  const raw = await joined(house);
  for (let index = 0; index < 20; index++) {
    const params = { sessionKey: "main", message: "x", idempotencyKey: `run-${index}` };
    raw.send({ type: "req", id: `${index}`, method: "chat.send", params });
  }
  await raw.next(ended("run-19"));
  const numbers = raw.frames.filter((frame) => frame.seq !== undefined).map((frame) => frame.seq);
  expect(numbers).toEqual(numbers.map((_, index) => index + 1));
  const ofRun = raw.frames
    .filter((frame) => frame.payload?.runId === "run-7")
    .map((frame) => frame.payload.seq);
  expect(ofRun.filter(Boolean)).toEqual(ofRun.filter(Boolean).toSorted((a, b) => a - b));
});

test("I3: messages that a client sends without waiting run in the order of sending", async () => {
  const seen: string[] = [];
  const house = await openHouse({
    play: ({ run }) => {
      seen.push(run.input.text);
      return "ok";
    },
  });
  const raw = await joined(house);
  for (let index = 0; index < 30; index++) {
    // The first request has a picture and therefore takes longer to read.
    const attachments = index === 0 ? [{ mimeType: "image/png", content: "A".repeat(400_000) }] : [];
    const params = { sessionKey: "main", message: `${index}`, attachments, idempotencyKey: `run-${index}` };
    raw.send({ type: "req", id: `${index}`, method: "chat.send", params });
  }
  await raw.next(ended("run-29"));
  expect(seen).toEqual(Array.from({ length: 30 }, (_, index) => `${index}`));
});

test("a failed run ends with an error event, an aborted run with an aborted event", async () => {
  const play: Play = async ({ run, signal }) => {
    if (run.input.text === "fail")
      throw new Error("the model said no, key sk-abcdefghijklmnopqrstuvwxyz123456");
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    return "late";
  };
  const house = await openHouse({ play });
  const raw = await joined(house);
  const send = (message: string, idempotencyKey: string): void =>
    raw.send({
      type: "req",
      id: idempotencyKey,
      method: "chat.send",
      params: { sessionKey: "main", message, idempotencyKey },
    });
  send("fail", "f");
  const error = (await raw.next(ended("f"))).payload;
  expect(error).toMatchObject({ state: "error", stopReason: "error", code: "run_failed" });
  expect(error.errorMessage).toContain("the model said no");
  expect(error.errorMessage).not.toContain("sk-abcdefghijklmnopqrstuvwxyz123456");
  send("wait", "w");
  await raw.next((frame) => frame.event === "agent" && frame.payload.runId === "w");
  raw.send({ type: "req", id: "abort", method: "chat.abort", params: { sessionKey: "main", runId: "w" } });
  expect((await raw.res("abort")).payload).toEqual({ ok: true, aborted: true, runIds: ["w"] });
  expect((await raw.next(ended("w"))).payload).toMatchObject({ state: "aborted", stopReason: "aborted" });
  raw.send({ type: "req", id: "again", method: "chat.abort", params: { sessionKey: "main", runId: "w" } });
  expect((await raw.res("again")).payload).toEqual({ ok: true, aborted: false, runIds: [] });
});

test("a request `agent` gets two answers: accepted, then the result of the run", async () => {
  const house = await openHouse({ play: ({ run }) => `did ${run.input.text}` });
  const client = await house.client();
  const call = client.agent({ message: "it", agentId: "research", idempotencyKey: "a-1", timeout: 60 });
  expect(await call.accepted).toMatchObject({
    runId: "a-1",
    status: "accepted",
    acceptedAt: expect.any(Number),
  });
  expect(await call.done).toMatchObject({
    runId: "a-1",
    status: "ok",
    summary: "completed",
    result: {
      text: "did it",
      payloads: [{ text: "did it" }],
      meta: { agentMeta: { usage: { totalTokens: 5 } } },
    },
  });
  const again = client.agent({ message: "it", agentId: "research", idempotencyKey: "a-1", timeout: 60 });
  expect(await again.accepted).toEqual(await call.accepted);
  expect(await again.done).toEqual(await call.done);
  const failing = client.agent({ message: "x", agentId: "nobody", idempotencyKey: "a-2" });
  await expect(failing.accepted).rejects.toMatchObject({ code: "NOT_FOUND" });
  await expect(failing.done).rejects.toMatchObject({ details: { code: "agent_not_found" } });
});

test("agent.wait returns each kind of end: before, during and after the run, on any connection", async () => {
  const gates = new Map<string, PromiseWithResolvers<void>>();
  const play: Play = async ({ run, signal }) => {
    if (run.input.text === "fail") throw new Error("no");
    if (run.input.text === "quick") return "done";
    const gate = Promise.withResolvers<void>();
    gates.set(run.runId, gate);
    signal.addEventListener("abort", () => gate.resolve());
    await gate.promise;
    return "done";
  };
  const house = await openHouse({ play });
  const [one, two] = [await house.client(), await house.client()];
  const send = (message: string, idempotencyKey: string, more: object = {}) =>
    one.call("chat.send", { sessionKey: "main", message, idempotencyKey, ...more });
  const wait = (runId: string, timeoutMs = 10_000) => two.request("agent.wait", { runId, timeoutMs });
  await send("quick", "ok");
  expect(await wait("ok")).toMatchObject({
    runId: "ok",
    status: "ok",
    runStatus: "ok",
    startedAt: expect.any(Number),
    endedAt: expect.any(Number),
  });
  expect(await wait("ok", 0)).toMatchObject({ status: "ok" });
  await send("fail", "bad");
  expect(await wait("bad")).toMatchObject({
    status: "error",
    runStatus: "error",
    code: "run_failed",
    error: "no",
  });
  await send("hold", "held");
  expect(await wait("held", 20)).toMatchObject({
    status: "timeout",
    runStatus: expect.stringMatching(/queued|running/),
  });
  await one.call("chat.abort", { sessionKey: "main" });
  expect(await wait("held")).toMatchObject({ status: "error", runStatus: "aborted", code: "run_aborted" });
  await send("hold", "slow", { timeoutMs: 30 });
  expect(await wait("slow")).toMatchObject({ status: "error", runStatus: "timeout", code: "run_timeout" });
  await expect(wait("nothing")).rejects.toMatchObject({ code: "NOT_FOUND" });
});

test("if the connection of a waiting caller is lost, the run continues", async () => {
  const gate = Promise.withResolvers<void>();
  const house = await openHouse({ play: () => gate.promise.then(() => "late") });
  const raw = await joined(house);
  raw.send({ type: "req", id: "a", method: "agent", params: { message: "x", idempotencyKey: "r" } });
  await raw.res("a");
  raw.socket.terminate();
  const client = await house.client();
  gate.resolve();
  expect(await client.call("agent.wait", { runId: "r" })).toMatchObject({ status: "ok" });
});

test("a refused request can be retried with its key", async () => {
  const house = await openHouse();
  const client = await house.client();
  const params = { sessionKey: "main", message: "x", idempotencyKey: "again" };
  await client.call("sessions.patch", { key: "main", sendPolicy: "deny" });
  const refused = client.call("chat.send", params);
  await expect(refused).rejects.toMatchObject({
    code: "SEND_DENIED",
    message: expect.stringContaining("send blocked by session policy"),
  });
  await client.call("sessions.patch", { key: "main", sendPolicy: null });
  expect(await client.call("chat.send", params)).toEqual({ runId: "again", status: "started" });
});
