// Chat commands of an operator, through a real gateway.

import { expect, test } from "vitest";
import { textOf } from "../../../src/core/shapes/message.ts";
import { listRuns } from "../../../src/store/queries/runs/runs.ts";
import { getSession } from "../../../src/store/queries/sessions/sessions.ts";
import { PATIENCE_MS } from "../../kit/until.ts";
import { type Frame, type House, joined, openHouse, type Play, type Raw } from "../kit.ts";

const MAIN = "agent:main:main";
const WRITER = "a-token-that-may-write";
const NARROW = "a-token-for-some-sessions";

const finalOf = (runId: string) => (frame: Frame) =>
  frame.event === "chat" && frame.payload.runId === runId && frame.payload.state === "final";

const textIn = (frame: Frame): string => frame.payload.message.content[0].text;

let requests = 0;
async function say(
  raw: Raw,
  message: string,
  runId: string,
  more: Record<string, unknown> = {},
): Promise<Frame> {
  requests += 1;
  const id = `say-${requests}`;
  const params = { sessionKey: "main", message, idempotencyKey: runId, ...more };
  raw.send({ type: "req", id, method: "chat.send", params });
  return raw.res(id);
}

async function transcript(house: House): Promise<string[]> {
  const client = await house.client();
  const page = await client.request("chat.history", { sessionKey: "main" });
  return page.messages.map((message) => `${message.role}: ${textOf(message)}`);
}

/** A play that continues until its run is stopped. */
const held: Play = ({ signal }) =>
  new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(new Error("stopped")), { once: true });
  });

test("CD2: the answer to a command is a note in the transcript and the outcome of its run; no model is called", async () => {
  let asked = 0;
  const house = await openHouse({
    play: () => {
      asked += 1;
      return "hello";
    },
  });
  const raw = await joined(house);
  expect((await say(raw, "/think high", "c1")).payload).toEqual({
    ...{ runId: "c1", status: "started" },
    reply: "[/think high]\n\nThinking is `high` from the next message on.",
  });
  const told = textIn(await raw.next(finalOf("c1")));
  expect(told).toBe("[/think high]\n\nThinking is `high` from the next message on.");
  expect((await getSession(house.store.db, MAIN))?.thinkingLevel).toBe("high");
  expect(await transcript(house)).toEqual([`assistant: ${told}`]);
  expect(asked).toBe(0);
  const client = await house.client();
  expect(await client.call("agent.wait", { runId: "c1", timeoutMs: PATIENCE_MS })).toMatchObject({
    status: "ok",
  });
});

test("CD2: while another run holds the session's lane, a command's answer is sent live, and stored after that run", async () => {
  const gate = Promise.withResolvers<string>();
  const house = await openHouse({ play: () => gate.promise });
  const raw = await joined(house);
  await say(raw, "long work", "r1");
  await raw.next((frame) => frame.event === "agent" && frame.payload.runId === "r1");
  await say(raw, "/status", "c1");
  const live = await raw.next((frame) => frame.event === "chat" && frame.payload.runId === "c1");
  expect(live.payload.state).toBe("delta");
  expect(textIn(live)).toContain("`main` is running");
  gate.resolve("done");
  expect(textIn(await raw.next(finalOf("c1")))).toBe(textIn(live));
  expect((await transcript(house)).map((line) => line.slice(0, 22))).toEqual([
    "user: long work",
    "assistant: done",
    "assistant: [/status]\n\n",
  ]);
});

test("/stop cancels the current work, even if the lane is full", async () => {
  const house = await openHouse({ play: held, choices: { session: { queueMax: 1 } } });
  const raw = await joined(house);
  await say(raw, "one", "r1");
  await raw.next((frame) => frame.event === "agent" && frame.payload.runId === "r1");
  await say(raw, "two", "r2");
  expect((await say(raw, "three", "r3")).error?.code).toBe("UNAVAILABLE");
  expect((await say(raw, "/stop", "c1")).ok).toBe(true);
  expect(textIn(await raw.next(finalOf("c1")))).toBe("[/stop]\n\nStopped: 2 runs.");
  const runs = await listRuns(house.store.db, { sessionKey: MAIN, limit: 10 });
  expect(runs.map(({ runId, state }) => `${runId} ${state}`)).toEqual(["c1 ok", "r2 aborted", "r1 aborted"]);
});

test("a command inside a longer text goes to the agent, and so does any text with a picture", async () => {
  const house = await openHouse();
  const raw = await joined(house);
  for (const [runId, message] of [
    ["r1", "please /stop"],
    ["r2", "/stop\nnow"],
    ["r3", "/frobnicate"],
    ["r4", "/stop@parley"],
  ] as const) {
    await say(raw, message, runId);
    expect(textIn(await raw.next(finalOf(runId)))).toBe(`echo ${message}`);
  }
  const png = Buffer.from("89504e470d0a1a0a", "hex").toString("base64");
  const attachments = [{ type: "image", mimeType: "image/png", content: png }];
  const sent = await say(raw, "/stop", "r5", { attachments });
  expect(sent.ok).toBe(true);
  expect(textIn(await raw.next(finalOf("r5")))).toBe("echo /stop");
});

test("CO2: owners' commands need operator.admin, and a command shows only sessions that the token covers", async () => {
  const tokens = [
    { token: WRITER, role: "operator", scopes: ["operator.write"], sessions: ["agent:main:*"] },
  ] as const;
  const house = await openHouse({ gateway: { tokens } });
  const raw = await joined(house, { auth: { token: WRITER } });
  const refused = await say(raw, "/send off", "c1");
  expect(refused.error).toMatchObject({
    code: "FORBIDDEN",
    message: expect.stringContaining("operator.admin"),
  });
  expect((await getSession(house.store.db, MAIN))?.sendPolicy).toBeUndefined();
  await say(raw, "/sessions", "c2");
  const seen = textIn(await raw.next(finalOf("c2")));
  expect(seen).toContain("`main`");
  expect(seen).not.toContain("research");
  // Reads the same conversation with all rights.
  const admin = await joined(house);
  await say(admin, "/sessions", "c3");
  expect(textIn(await admin.next(finalOf("c3")))).toContain("agent:research:main");
  await say(admin, "/send off", "c4");
  await admin.next(finalOf("c4"));
  expect((await getSession(house.store.db, MAIN))?.sendPolicy).toBe("deny");
  // Commands are executed before the send policy is checked.
  expect((await say(admin, "hi", "r1")).error?.code).toBe("SEND_DENIED");
  await say(admin, "/send inherit", "c5");
  expect(textIn(await admin.next(finalOf("c5")))).toContain("rules in the settings decide");
});

test("CD4: a command needs the rights of the method with the same effect", async () => {
  const tokens = [
    { token: WRITER, role: "operator", scopes: ["operator.write"] },
    { token: NARROW, role: "operator", scopes: ["operator.admin"], sessions: ["agent:main:*"] },
  ] as const;
  const house = await openHouse({ gateway: { tokens } });
  const before = await getSession(house.store.db, MAIN);
  const writer = await joined(house, { auth: { token: WRITER } });
  for (const [at, line] of ["/new", "/reset"].entries()) {
    expect((await say(writer, line, `w${at}`)).error?.code).toBe("FORBIDDEN");
  }
  expect((await getSession(house.store.db, MAIN))?.sessionId).toBe(before?.sessionId);
  // Admitting and removing people needs a token that covers every session.
  const narrow = await joined(house, { auth: { token: NARROW } });
  expect((await say(narrow, "/pair approve ABCDEFGH", "n1")).error?.code).toBe("FORBIDDEN");
  expect((await say(narrow, "/reset", "n2")).payload).toMatchObject({ runId: "n2", status: "started" });
  expect((await getSession(house.store.db, MAIN))?.sessionId).not.toBe(before?.sessionId);
});
