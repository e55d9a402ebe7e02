// The tool `sessions_fork`: only for clients of an operator, within the rights of the token.

import { expect, test } from "vitest";
import { textOf } from "../../../src/core/shapes/message.ts";
import { type Answer, openPeer, type Peer, type PeerOptions, SPEAKERS } from "../../gateway/clients/mcp.ts";
import { openHouse, operatorToken } from "../../gateway/kit.ts";
import { talkingModel } from "../../kit/talking-model.ts";

const RESEARCH = "agent:research:main";
const READER = "a-token-that-only-reads";
const ANNA = "the-token-of-anna-alone";
const TOKENS = [
  { token: READER, role: "operator" as const, scopes: ["operator.read" as const] },
  operatorToken(ANNA, "operator.write", ["agent:main:mcp:anna*", RESEARCH]),
];

/** Opens a gateway in which a person has talked with two agents. `at`: the id of the first answer of each. */
async function talkedHouse() {
  const house = await openHouse({ gateway: { tokens: TOKENS }, model: talkingModel() });
  const client = await house.client();
  const at: Record<string, string> = {};
  for (const sessionKey of ["agent:main:main", RESEARCH]) {
    for (const message of ["one", "two"]) {
      const { runId } = await client.request("chat.send", { sessionKey, message });
      await client.request("agent.wait", { runId });
    }
    const { messages } = await client.request("chat.history", { sessionKey });
    at[sessionKey] = messages[1]?.id ?? "";
  }
  const peer = (options: PeerOptions = {}): Promise<Peer> =>
    openPeer(house, "version 2, newest revision", options);
  return { house, client, at, peer };
}

test.each(SPEAKERS)("%s: a client forks a session, and talks with the fork", async (speaker) => {
  const { house, client, at } = await talkedHouse();
  const peer = await openPeer(house, speaker);
  expect(await peer.tools()).toContain("sessions_fork");
  const forked = await peer.call("sessions_fork", { sessionKey: RESEARCH, at: at[RESEARCH], label: "again" });
  expect(forked).toMatchObject({
    ...{ status: "ok", at: at[RESEARCH], leftBehind: { runs: 0, jobs: 0, waits: 0 } },
    sessionKey: expect.stringMatching(/^agent:research:main:fork:[0-9a-f-]{36}$/),
  });
  const { sessionKey } = forked as { sessionKey: string };
  expect(await peer.call("sessions_send", { sessionKey, message: "three" })).toMatchObject({
    ...{ status: "ok", reply: "echo three" },
  });
  const texts = async (key: string) =>
    (await client.request("chat.history", { sessionKey: key })).messages.map(textOf);
  expect((await texts(sessionKey)).slice(0, 2)).toEqual(["one", "echo one"]);
  expect(await texts(sessionKey)).not.toContain("two");
  expect(await texts(RESEARCH)).toEqual(["one", "echo one", "two", "echo two"]);
});

test("I9: a fork needs a token that may write, and a session that the token covers", async () => {
  const { at, peer } = await talkedHouse();
  const reader = await peer({ token: READER });
  expect(await reader.tools()).not.toContain("sessions_fork");
  const main = "agent:main:main";
  const asked = { sessionKey: main, at: at[main] };
  expect(await reader.call("sessions_fork", asked)).toMatchObject({ code: "missing_scope" });
  const anna = await peer({ token: ANNA, headers: { "x-parley-handle": "anna" } });
  const hidden = await anna.call("sessions_fork", asked);
  const missing = await anna.call("sessions_fork", { ...asked, sessionKey: "agent:main:chat:none" });
  expect([hidden.code, missing.code]).toEqual(["not_visible", "not_visible"]);
  // The token's pattern covers only the session, but not its forks.
  expect(await anna.call("sessions_fork", { sessionKey: RESEARCH, at: at[RESEARCH] })).toMatchObject({
    code: "not_visible",
  });
});

test("I13: a client that acts as a session cannot fork, and the tool is not offered to it", async () => {
  const { at, peer, client } = await talkedHouse();
  const acting = await peer({ headers: { "x-parley-session": RESEARCH } });
  expect(await acting.tools()).not.toContain("sessions_fork");
  const before = (await client.request("sessions.list", {})).sessions.length;
  const asked = { sessionKey: RESEARCH, at: at[RESEARCH] };
  expect(await acting.call("sessions_fork", asked)).toMatchObject({ code: "missing_scope" });
  expect((await client.request("sessions.list", {})).sessions).toHaveLength(before);
});

test("wrong arguments get one clear error, and make no session", async () => {
  const { at, peer, client } = await talkedHouse();
  const one = await peer();
  const before = (await client.request("sessions.list", {})).sessions.length;
  const wrong: readonly (readonly [Answer, string])[] = [
    [{ sessionKey: RESEARCH }, "invalid_argument"],
    [{ sessionKey: RESEARCH, at: "no-such-message" }, "message_not_found"],
    [{ sessionKey: RESEARCH, at: at[RESEARCH], label: "two\nlines" }, "invalid_argument"],
    [{ sessionKey: RESEARCH, at: at["agent:main:main"] }, "message_not_found"],
    [{ sessionKey: RESEARCH, at: at[RESEARCH], lable: "x" }, "unknown_argument"],
  ];
  for (const [args, code] of wrong)
    expect(await one.call("sessions_fork", args)).toMatchObject({ status: "error", code });
  expect((await client.request("sessions.list", {})).sessions).toHaveLength(before);
});
