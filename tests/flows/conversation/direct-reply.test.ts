// The text that is sent to the channel at the end of a run, and its destination.

import { expect, test } from "vitest";
import { updateSession } from "../../../src/store/queries/sessions/sessions.ts";
import { type FlowAppOptions, openFlowApp, type Play } from "../../kit/engine/flow-app.ts";
import { fakeChannel, openAccount, said } from "../../kit/platforms/fake-channel.ts";

const MAIN = "agent:main:main";
const HERE = { channel: "telegram", to: "7", accountId: "default" };

async function open(play: Play, more: Partial<FlowAppOptions> = {}) {
  const chat = fakeChannel();
  const { choices, ...rest } = more;
  const app = await openFlowApp({
    plays: { [MAIN]: play },
    chat,
    ...rest,
    choices: { channels: [openAccount()], ...choices },
  });
  return { app, chat, receive: app.inbound.receive };
}

test.each(["REPLY_SKIP", " ANNOUNCE_SKIP\n", ""])(
  "DR2: if the agent chooses not to reply (%j), nothing is delivered",
  async (reply) => {
    const { app, chat, receive } = await open(() => reply);
    await receive(said("hello"));
    await app.quiet();
    expect(chat.shown).toEqual([]);
  },
);

test("a skip token on the last line is neither streamed, nor stored, nor delivered", async () => {
  const words = "Nothing new.\n\n**no_reply**.";
  const { app, chat, receive } = await open(({ handle }) => {
    [...words].forEach((text, offset) => {
      handle.text({ offset, text });
    });
    return words;
  });
  await receive(said("hello"));
  await app.quiet();
  expect(chat.textsAt("7")).toEqual(["Nothing new."]);
  expect(await app.texts(MAIN)).toEqual(["user: hello", "assistant: Nothing new."]);
  expect((await app.runs(MAIN)).map(({ reply }) => reply)).toEqual(["Nothing new."]);
  const live = app.events.flatMap((event) => (event.kind === "text" ? [event.text] : []));
  expect("Nothing new.").toContain(live.join(""));
  expect(live.length).toBeGreaterThan(0);
});

test("a run that reached its time limit sends what it had written, and says so", async () => {
  const { app, chat } = await open(async ({ handle }) => {
    handle.text({ offset: 0, text: "Half an answer" });
    await new Promise((resolve) => handle.signal.addEventListener("abort", resolve));
    return "";
  });
  await app.store.transaction((tx) => updateSession(tx, MAIN, { lastRoute: HERE }));
  await app.engine.accept({ sessionKey: MAIN, input: { text: "hello" }, route: HERE, timeoutMs: 50 });
  await app.quiet();
  expect(chat.textsAt("7")).toEqual(["Half an answer", "I ran out of time before I had finished this."]);
});

test("DR2: if a run fails, its error is sent as one sentence, without secrets and stack traces", async () => {
  const { app, chat, receive } = await open(() => {
    throw new Error("the model said: api_key=sk-abcdefghijklmnop1234567890 is wrong\n    at model.ts:1:1");
  });
  await receive(said("hello"));
  await app.quiet();
  expect(chat.shown).toHaveLength(1);
  const [text = ""] = chat.textsAt("7");
  expect(text).toMatch(/^I could not finish this: the model said: /);
  expect(text).not.toMatch(/sk-|model\.ts|\n/);
});

test("DR2: an aborted run sends nothing", async () => {
  const { app, chat, receive } = await open(() => new Promise(() => {}));
  await receive(said("hello"));
  await expect.poll(async () => (await app.runs(MAIN))[0]?.state).toBe("running");
  await app.engine.abort({ sessionKey: MAIN });
  await app.quiet();
  expect(chat.shown).toEqual([]);
});

test("DR3: the send policy is checked for the chat that gets the answer, even if a later message came from another chat", async () => {
  const gate = Promise.withResolvers<string>();
  const rules = [{ match: { channel: "discord" }, action: "deny" }] as const;
  const base = await open(() => "");
  const session = { ...base.app.settings.session, sendPolicy: { rules, default: "allow" as const } };
  const { app, chat, receive } = await open(() => gate.promise, { choices: { session } });
  await receive(said("hello"));
  await expect.poll(async () => (await app.runs(MAIN))[0]?.state).toBe("running");
  const lastRoute = { channel: "discord", to: "9", accountId: "default" };
  await app.store.transaction((tx) => updateSession(tx, MAIN, { lastRoute }));
  gate.resolve("for you");
  await app.quiet();
  expect(chat.textsAt("7")).toEqual(["for you"]);
  // In the reverse case, the answer to a denied chat stays denied even if a later message came from an
  // allowed chat.
  const input = { text: "b", sender: "discord:9" };
  await app.engine.accept({ sessionKey: MAIN, input, route: lastRoute });
  await app.store.transaction((tx) => updateSession(tx, MAIN, { lastRoute: HERE }));
  await app.quiet();
  const rows = await app.store.db.selectFrom("deliveries").select(["state", "code"]).orderBy("seq").execute();
  expect(rows.at(-1)).toEqual({ state: "skipped", code: "send_denied" });
});

test("a secret in an answer is redacted on the channel, but kept in the transcript", async () => {
  const secret = "sk-abcdefghijklmnop1234567890";
  const { app, chat, receive } = await open(() => `the key is ${secret}`);
  await receive(said("what is it?"));
  await app.quiet();
  expect(chat.textsAt("7")).toEqual(["the key is [redacted]"]);
  expect((await app.texts(MAIN))[1]).toContain(secret);
});

test("the answer to a hook, to another client or to a run without a chat is not sent to any channel", async () => {
  const { app, chat } = await open(() => "words");
  const hook = { kind: "hook", source: "x" } as const;
  await app.engine.accept({ sessionKey: MAIN, input: { text: "a", provenance: hook }, route: HERE });
  await app.engine.accept({
    sessionKey: MAIN,
    input: { text: "b" },
    route: { channel: "webchat", to: MAIN },
  });
  await app.engine.accept({ sessionKey: MAIN, input: { text: "c" } });
  await app.quiet();
  // The only answer is the hook's, which triggers/replies.ts delivers.
  expect(chat.textsAt("7")).toEqual(["words"]);
});
