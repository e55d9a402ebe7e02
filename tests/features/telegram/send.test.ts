// Sends texts to Telegram: formatting, recipients, and the meaning of each failure.

import { createServer } from "node:net";
import { expect, test } from "vitest";
import type { OutgoingMessage } from "../../../src/channels/channel.ts";
import { openChannel } from "../../../src/channels/registry.ts";
import { optional } from "../../../src/core/optional.ts";
import type { Route } from "../../../src/core/shapes/session.ts";
import { telegramText } from "../../../src/features/telegram/send.ts";
import { recordingHost } from "../../contract/channel.ts";
import { cleanup } from "../../kit/engine/engine.ts";
import { type Answer, failed } from "../../kit/platforms/telegram/state.ts";
import { fakeWorld } from "../../kit/world.ts";
import { account, DIRECT, FORUM, GROUP, openGround, TOKEN, TOPIC } from "./ground.ts";

const to = (chat: number | string, threadId?: string): Route => ({
  ...{ channel: "telegram", to: String(chat) },
  ...optional({ threadId }),
});

const outgoing = (route: Route, text: string): OutgoingMessage => ({
  ...{ deliveryId: "d-1", sessionKey: "agent:main:main", route, text, part: 1, parts: 1 },
});

async function ground() {
  const opened = await openGround(recordingHost());
  cleanup(() => opened.channel.close?.());
  const deliver = (route: Route, text = "hello") => opened.channel.deliver(outgoing(route, text));
  return { ...opened, deliver };
}

const shownAs = (markdown: string) => {
  const { text, entities } = telegramText(markdown);
  return {
    text,
    marks: entities.map(({ type, offset, length }) => [type, text.slice(offset, offset + length)]),
  };
};

test("TX1: markup becomes entities of every kind, at the positions that Telegram expects", () => {
  const markdown =
    "# Title 😀\n\n**bold _both_** ~~gone~~ `code *x*` [here](https://example.org/?a=1)\n\n> wise\n\n```ts\nlet a = `1`;\n```";
  const { text, entities } = telegramText(markdown);
  expect(text).toBe("Title 😀\n\nbold both gone code *x* here\n\nwise\n\nlet a = `1`;");
  expect(shownAs(markdown).marks).toEqual([
    ["bold", "Title 😀"],
    ["bold", "bold both"],
    ["italic", "both"],
    ["strikethrough", "gone"],
    ["code", "code *x*"],
    ["text_link", "here"],
    ["blockquote", "wise"],
    ["pre", "let a = `1`;"],
  ]);
  expect(entities.at(-1)).toMatchObject({ language: "ts" });
  expect(entities[5]).toMatchObject({ url: "https://example.org/?a=1" });
});

test("a URL that Telegram can't link is sent as text, and later marks keep their positions", () => {
  expect(shownAs("write [to us](mailto:a@example.org) **now**")).toEqual({
    text: "write to us (mailto:a@example.org) now",
    marks: [["bold", "now"]],
  });
});

test("TX2: if a text would be too long or empty without its markup characters, they are sent, too", () => {
  const list = "- a\n".repeat(999);
  expect(telegramText(list).text.length).toBeLessThanOrEqual(4_096);
  const table = `| a |\n|---|\n${"|x|\n".repeat(900)}`;
  expect(telegramText(table).text.length).toBeLessThanOrEqual(4_096);
  const mails = "[a](mailto:bcd@example.org) ".repeat(140);
  expect(mails.length).toBeLessThan(4_000);
  expect(telegramText(mails).text.length).toBeLessThanOrEqual(4_096);
  expect(telegramText("[](#)").text.trim()).not.toBe("");
});

test("entities beyond Telegram's limit are dropped from the end of the text", () => {
  const { entities } = telegramText("**b** ".repeat(150));
  expect(entities).toHaveLength(100);
  expect(entities.map(({ offset }) => offset)).toEqual(entities.map((_, index) => index * 2));
});

test("TS3: link previews are disabled, and Telegram parses no markup", async () => {
  const { deliver, server } = await ground();
  expect(await deliver(to(DIRECT), "see https://example.org/?secret=1 and _x")).toEqual({ kind: "sent" });
  const [sent] = server.sent;
  expect(sent?.params.link_preview_options).toEqual({ is_disabled: true });
  expect(sent?.params.parse_mode).toBeUndefined();
  expect(sent?.text).toBe("see https://example.org/?secret=1 and _x");
});

test("if Telegram refuses the entities, the text is sent once without them", async () => {
  const { deliver, server } = await ground();
  server.upsets.push({ answer: failed(400, "Bad Request: can't parse entities: unsupported URL protocol") });
  expect(await deliver(to(DIRECT), "**bold**")).toEqual({ kind: "sent" });
  expect(server.sent).toMatchObject([{ text: "bold", entities: [] }]);
  server.upsets.push({ answer: failed(400, "Bad Request: can't parse entities: whatever") });
  expect(await deliver(to(DIRECT), "plain")).toMatchObject({ kind: "refused" });
});

test("a text can be sent to a topic; the general topic has no id", async () => {
  const { deliver, server } = await ground();
  expect(await deliver(to(FORUM, String(TOPIC)))).toEqual({ kind: "sent" });
  expect(await deliver(to(FORUM, "1"))).toEqual({ kind: "sent" });
  expect(await deliver(to(FORUM))).toEqual({ kind: "sent" });
  expect(server.sent.map(({ threadId }) => threadId)).toEqual([TOPIC, undefined, undefined]);
  expect(await deliver(to(FORUM, "78"))).toEqual({
    ...{ kind: "refused", error: "Telegram refused: Bad Request: message thread not found" },
  });
});

test.each([
  ["", "is not a Telegram chat"],
  ["someone", "is not a Telegram chat"],
  ["-", "is not a Telegram chat"],
  ["0", "is not a Telegram chat"],
  ["../getMe", "is not a Telegram chat"],
  ["9".repeat(300), "is not a Telegram chat"],
  ["1001\u202e", "is not a Telegram chat"],
])("refuses a route to an invalid chat, and sends no request for it: %j", async (chat, part) => {
  const { deliver, server } = await ground();
  const outcome = await deliver(to(chat));
  expect(outcome).toMatchObject({ kind: "refused", error: expect.stringContaining(part) });
  expect(outcome.kind === "refused" && outcome.error.length).toBeLessThan(250);
  expect(server.calls).toEqual([]);
});

test("a topic that is not a number is refused; a route without an account uses the first account", async () => {
  const { deliver } = await ground();
  expect(await deliver(to(FORUM, "general"))).toMatchObject({ kind: "refused" });
  expect(await deliver(to(DIRECT))).toEqual({ kind: "sent" });
  expect(await deliver({ ...to(DIRECT), accountId: "nobody" })).toMatchObject({
    error: 'the channel telegram has no account "nobody"; its accounts are: default',
  });
});

test("if a group became a supergroup, the same attempt sends the text to the supergroup's id", async () => {
  const { deliver, server } = await ground();
  const group = server.chats.get(GROUP);
  server.addChat({ id: -1_006, type: "supergroup" });
  if (group !== undefined) group.movedTo = -1_006;
  expect(await deliver(to(GROUP))).toEqual({ kind: "sent" });
  expect(server.sent).toMatchObject([{ chatId: -1_006 }]);
  const next = server.chats.get(-1_006);
  if (next !== undefined) next.movedTo = GROUP;
  expect(await deliver(to(GROUP))).toMatchObject({
    kind: "refused",
    error: expect.stringContaining("supergroup"),
  });
});

const html = (status: number): Answer => ({ status, body: "<html>Sorry</html>" });

test.each([
  [failed(400, "Bad Request: chat not found"), "refused", "chat not found"],
  [failed(403, "Forbidden: bot was kicked from the supergroup chat"), "refused", "kicked"],
  [failed(403, "Forbidden: bot was blocked by the user"), "refused", "blocked by the user"],
  [failed(400, "Bad Request: TOPIC_CLOSED"), "refused", "TOPIC_CLOSED"],
  [failed(401, "Unauthorized"), "retry", "token"],
  [failed(404, "Not Found"), "retry", "token"],
  [failed(500, "Internal Server Error: restart"), "retry", "restart"],
  [html(502), "retry", "HTTP status 502"],
  [html(504), "unknown", "HTTP status 504"],
  [html(413), "refused", "HTTP status 413"],
  [html(302), "refused", "HTTP status 302"],
  [html(200), "unknown", "may have arrived"],
  [{ status: 200, body: { result: true } }, "unknown", "may have arrived"],
  [{ status: 200, body: { ok: false, error_code: "all" } }, "refused", "HTTP status 200"],
] satisfies [Answer, string, string][])(
  "I5: the outcome of a text follows from Telegram's answer: %#",
  async (answer, kind, part) => {
    const { deliver, server } = await ground();
    server.upsets.push({ answer });
    expect(await deliver(to(DIRECT))).toMatchObject({ kind, error: expect.stringContaining(part) });
  },
);

test.each([
  [7, 7_000],
  [0, 0],
  [10_000_000, 86_400_000],
  [-5, undefined],
  ["soon", undefined],
])("the pause of a rate limit has a maximum: %j s", async (retry_after, afterMs) => {
  const { deliver, server } = await ground();
  server.upsets.push({ answer: failed(429, "Too Many Requests", { retry_after }) });
  const outcome = await deliver(to(DIRECT));
  expect(outcome).toMatchObject({ kind: "retry" });
  expect(outcome.kind === "retry" && outcome.afterMs).toBe(afterMs);
});

test("TB2: no outcome contains the token, even if the server's answer does", async () => {
  const { deliver, server } = await ground();
  server.upsets.push({
    answer: failed(400, `Bad Request: /bot${TOKEN}/sendMessage\n\u001b]0;x\u0007${"y".repeat(9_999)}`),
  });
  const outcome = await deliver(to(DIRECT));
  const error = outcome.kind === "refused" ? outcome.error : "";
  expect(error).toContain("/bot[token]/sendMessage\\n\\x1b");
  expect(error.length).toBeLessThan(300);
});

test("HX1: if a request gets no answer, it times out, and its outcome is unknown", async () => {
  const world = fakeWorld();
  const asked = Promise.withResolvers<void>();
  const silent = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => asked.resolve());
    cleanup(() => void socket.destroy());
  });
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  cleanup(() => void silent.close());
  const { port } = silent.address() as { port: number };
  const host = Object.assign(recordingHost(), { world });
  const channel = await openChannel("telegram", [account(`http://127.0.0.1:${port}`)], host);
  const delivered = channel.deliver(outgoing(to(DIRECT), "hello"));
  await asked.promise;
  await world.advance(20_000);
  expect(await delivered).toEqual({
    ...{ kind: "unknown", error: "Telegram: no answer within 20 s; the text may have arrived" },
  });
  expect(world.pendingDelays()).toEqual([]);
});

test("HX1: nothing is sent to a server with an invalid certificate, and the delivery is retried later", async () => {
  const { server } = await ground();
  const channel = await openChannel(
    "telegram",
    [account(server.url.replace("http:", "https:"))],
    recordingHost(),
  );
  cleanup(() => channel.close?.());
  expect(await channel.deliver(outgoing(to(DIRECT), "hello"))).toMatchObject({
    kind: "retry",
    error: expect.stringContaining("could not be reached"),
  });
  expect(server.calls).toEqual([]);
});

test("HX4: the error about an invalid address does not show the address", async () => {
  const channel = await openChannel("telegram", [account("http://[bad")], recordingHost());
  cleanup(() => channel.close?.());
  const outcome = await channel.deliver(outgoing(to(DIRECT), "hello"));
  expect(outcome).toEqual({
    kind: "retry",
    error: "Telegram: the address is invalid",
  });
});

test("TB4: if the server closes an idle connection, no delivery has an unknown outcome", async () => {
  const { deliver, server, platform } = await ground();
  for (let count = 0; count < 3; count += 1) expect(await deliver(to(DIRECT))).toEqual({ kind: "sent" });
  await platform.goAway();
  expect(await deliver(to(DIRECT))).toMatchObject({ kind: "retry" });
  expect(server.sent).toHaveLength(3);
});

test("an endless answer is cut off", async () => {
  const { deliver, server } = await ground();
  server.upsets.push({ answer: { status: 200, body: "x".repeat(9 * 1024 * 1024) } });
  expect(await deliver(to(DIRECT))).toMatchObject({
    kind: "unknown",
    error: expect.stringContaining("longer than"),
  });
});

test("in a forum a bound session gets its own topic, and the session's texts go there", async () => {
  const { channel, deliver, server } = await ground();
  const title = `Fix   the\nbuild ${"long ".repeat(60)}`;
  const opened = await channel.openThread?.({ ...to(FORUM, String(TOPIC)), accountId: "default" }, title);
  if (opened?.ok !== true) throw new Error("no topic was made");
  const { kind, route } = opened.value;
  expect(kind).toBe("created");
  expect(route).toMatchObject({ channel: "telegram", to: String(FORUM), accountId: "default" });
  expect(route.threadId).not.toBe(String(TOPIC));
  expect(await deliver(route)).toEqual({ kind: "sent" });
  const { params } = server.calls.find(({ method }) => method === "createForumTopic") ?? {};
  expect(params?.name).toMatch(/^Fix the build long/);
  expect(params?.name.length).toBeLessThanOrEqual(128);
  const nameless = await channel.openThread?.(to(FORUM), " \n ");
  expect(nameless).toMatchObject({ ok: true });
});

test("if a topic cannot be created, the error names the missing right", async () => {
  const { channel, server } = await ground();
  const forum = server.chats.get(FORUM);
  if (forum !== undefined) forum.mayMakeTopics = false;
  expect(await channel.openThread?.(to(FORUM), "x")).toMatchObject({
    ...{ ok: false, error: expect.stringContaining("not enough rights") },
    hint: expect.stringContaining("administrator"),
  });
  expect(await channel.openThread?.(to(424_242), "x")).toMatchObject({
    ...{ ok: false, error: expect.stringContaining("chat not found") },
  });
  expect(await channel.openThread?.(to("x"), "x")).toMatchObject({ ok: false, code: "invalid_argument" });
  await server.close();
  expect(await channel.openThread?.(to(FORUM), "x")).toMatchObject({ ok: false, code: "channel_failed" });
});

test("the test of an account returns the bot's name and privacy mode; an unknown account gives the list of valid ones", async () => {
  const { channel, server } = await ground();
  const tested = await channel.test?.("default");
  expect(tested).toMatchObject({
    ok: true,
    value: expect.stringMatching(/^@parley_test_bot; .*privacy mode/),
  });
  const result = { id: 1, is_bot: true, username: "all_ears_bot", can_read_all_group_messages: true };
  server.answerNext("getMe", { status: 200, body: { ok: true, result } });
  expect(await channel.test?.("default")).toEqual({ ok: true, value: "@all_ears_bot" });
  expect(await channel.test?.("ops")).toMatchObject({ ok: false, error: expect.stringContaining("default") });
  await server.close();
  expect(await channel.test?.("default")).toMatchObject({
    ok: false,
    error: expect.stringContaining("reached"),
  });
});
