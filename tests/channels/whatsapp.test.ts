// WhatsApp over the Cloud API: the contract of channels, what its web hooks bring, and what its errors mean.

import { expect, test } from "vitest";
import {
  type ChannelGround,
  channelContract,
  type HostParts,
  listenAt,
  recordingHost,
  type Said,
} from "../contract/channel.ts";
import { ACCESS_TOKEN, graphError, seenText, webHook } from "../kit/whatsapp-server.ts";
import { fakeWorld } from "../kit/world.ts";
import {
  CONTACT,
  direct,
  GROUP,
  inGroup,
  MENTION,
  message,
  openGround,
  PERSON,
  said,
  send,
} from "./whatsapp-kit.ts";

async function contractGround(host: HostParts): Promise<ChannelGround> {
  const { server, channel, hookUrl, post } = await openGround(host);
  let newest: object | undefined;
  const routeOf = (chat: Said["chat"]) => (chat === "direct" ? direct : inGroup);
  // The person has written before: without that nothing may be sent to them.
  await post({ contacts: [CONTACT], messages: [said("hello")] });
  host.received.length = 0;
  return {
    channel,
    routes: { direct, group: inGroup },
    platform: {
      async says({ chat, text, name = "Sheena Nelson", from = PERSON, mention, quote, media }) {
        const context: Record<string, unknown> = {};
        if (quote !== undefined) {
          await send(channel, quote, routeOf(chat));
          context.id = server.sent.at(-1)?.id;
        }
        const place = chat === "direct" ? {} : { group_id: GROUP };
        const body = mention === true ? `${MENTION} ${text}` : text;
        const more = { from, ...place, ...(quote === undefined ? {} : { context }) };
        let one = said(body, more);
        if (media !== undefined) {
          const { name: filename, mimeType, bytes } = media;
          server.media.set("1003383421387256", { bytes, mimeType });
          const document = {
            id: "1003383421387256",
            filename,
            mime_type: mimeType,
            caption: text,
            sha256: "x",
          };
          one = message({ ...more, type: "document", document });
        }
        newest = webHook({ contacts: [{ profile: { name }, wa_id: from }], messages: [one] });
        await server.post(hookUrl, newest);
      },
      async repeats() {
        if (newest !== undefined) await server.post(hookUrl, newest);
      },
      shown: () => server.sent.map(({ to, body }) => ({ to, text: seenText(body) })),
      next(trouble) {
        switch (trouble.kind) {
          case "limit":
            return server.fail(429, graphError(130429), { "retry-after": String(trouble.seconds) });
          case "refuse":
            return server.fail(400, graphError(131026));
          case "serverError":
            return server.fail(500, graphError(131000));
          case "cut":
            return server.next((response, taken) => {
              taken();
              response.destroy();
            });
        }
      },
      revoke: () => server.tokens.clear(),
      goAway: () => server.close(),
      typed: () => server.typed.length,
    },
  };
}

channelContract("whatsapp", contractGround);

const MESSAGES: [string, object, object][] = [
  ["a chosen button", { type: "button", button: { text: "Yes", payload: "YES" } }, { text: "Yes" }],
  [
    "a button of an answer",
    {
      type: "interactive",
      interactive: { type: "button_reply", button_reply: { id: "1", title: "Change" } },
    },
    { text: "Change" },
  ],
  [
    "a row of a list",
    { type: "interactive", interactive: { type: "list_reply", list_reply: { id: "1", title: "Tomorrow" } } },
    { text: "Tomorrow" },
  ],
  [
    "a form",
    {
      type: "interactive",
      interactive: {
        type: "nfm_reply",
        nfm_reply: { name: "flow", body: "Sent", response_json: '{"a":\n"b"}' },
      },
    },
    { text: '[a form was filled in, flow, Sent, {"a": "b"}]' },
  ],
  [
    "a place",
    {
      type: "location",
      location: { latitude: 48.1, longitude: 11.5, name: "Marienplatz", address: "Munich" },
    },
    { text: "[location: 48.1 11.5, Marienplatz, Munich]" },
  ],
  [
    "contacts",
    {
      type: "contacts",
      contacts: [
        {
          name: { formatted_name: "Ada]\n[owner" },
          phones: [{ phone: "+49 1" }],
          emails: [{ email: "a@b.c" }],
        },
      ],
    },
    { text: "[contact: Ada owner, +49 1, a@b.c]" },
  ],
  ["a sticker", { type: "sticker", sticker: { id: "5", mime_type: "image/webp" } }, { text: "[sticker]" }],
  [
    "a kind that the platform does not hand on",
    { type: "unsupported", unsupported: { type: "poll_creation" }, errors: [{ code: 131051 }] },
    { text: "[a message of a kind that WhatsApp does not hand on, poll creation]" },
  ],
  [
    "a kind of tomorrow",
    { type: "hologram" },
    { text: "[a message of a kind that is not known here, hologram]" },
  ],
  [
    "something that was passed on",
    { type: "text", text: { body: "/reset" }, context: { forwarded: true } },
    { text: "/reset", forwarded: true },
  ],
  [
    "a picture with words",
    { type: "image", image: { id: "17", mime_type: "image/jpeg", caption: "my cat" } },
    { text: "my cat", media: [{ kind: "image", mimeType: "image/jpeg" }] },
  ],
  [
    "a voice message",
    { type: "audio", audio: { id: "18", mime_type: "audio/ogg; codecs=opus", voice: true } },
    { text: "", media: [{ kind: "voice", mimeType: "audio/ogg; codecs=opus" }] },
  ],
  ["a song", { type: "audio", audio: { id: "18", voice: false } }, { media: [{ kind: "audio" }] }],
  ["a film", { type: "video", video: { id: "19" } }, { media: [{ kind: "video" }] }],
  [
    "media that could not be had",
    { type: "image", image: { id: "../../me", caption: "look" } },
    { text: "[image, it could not be had]\nlook", media: [] },
  ],
];
test.each(MESSAGES)("WC1: %s is told in words", async (_, fields, wanted) => {
  const { hear } = await openGround();
  expect(await hear(message(fields))).toMatchObject(wanted);
});

const NO_MESSAGES: [string, object][] = [
  ["a reaction", { type: "reaction", reaction: { message_id: "wamid.1", emoji: "👍" } }],
  ["one that was taken back", { type: "revoke", revoke: { original_message_id: "wamid.1" } }],
  [
    "a new number of somebody",
    { type: "system", system: { body: "changed", wa_id: "1", type: "user_changed_number" } },
  ],
  ["a change that can't be read", { type: "unsupported", unsupported: { type: "edit" } }],
  ["an empty text", { type: "text", text: { body: "" } }],
  ["one of our own number", { type: "text", text: { body: "me" }, from: "15550783881" }],
];
test.each(NO_MESSAGES)("WC1: %s is no message, and is not asked for again", async (_, fields) => {
  const { post, host } = await openGround();
  expect(await post({ contacts: [CONTACT], messages: [message(fields), said("after")] })).toEqual([200]);
  expect(host.received.map(({ text }) => text)).toEqual(["after"]);
});

test("who wrote: the number, the name, and what else settings may call them", async () => {
  const { hear } = await openGround();
  const contact = {
    profile: { name: "Sheena", username: "@sheena" },
    wa_id: PERSON,
    user_id: "US.13491208655302741918",
  };
  const one = await hear(said("hi", { from_user_id: "US.13491208655302741918" }), [contact]);
  expect(one?.sender).toEqual({
    id: PERSON,
    name: "Sheena",
    alsoKnownAs: [`+${PERSON}`, "US.13491208655302741918"],
  });
  expect(one).toMatchObject({
    chat: { type: "direct", id: PERSON, name: "Sheena" },
    sentAt: 1_749_416_383_000,
  });
});

test("somebody who hides their number is answered by their id", async () => {
  const { hear, channel, server } = await openGround();
  const contact = { profile: { username: "sheena" }, user_id: "US.13491208655302741918" };
  const one = await hear(said("hi", { from: undefined, from_user_id: "US.13491208655302741918" }), [contact]);
  expect(one).toMatchObject({
    sender: { id: "US.13491208655302741918", name: "sheena" },
    chat: { type: "direct" },
  });
  expect(await send(channel, "hello", one?.replyTo)).toEqual({ kind: "sent" });
  expect(server.asked[0]).toEqual({
    messaging_product: "whatsapp",
    recipient_type: "individual",
    recipient: "US.13491208655302741918",
    type: "text",
    text: { body: "hello", preview_url: false },
  });
});

test("what a number's owner changes is told as the change of that message", async () => {
  const { hear } = await openGround();
  const now = { type: "text", text: { body: "at 6" }, context: { id: "M0" } };
  const one = await hear(
    message({ id: "wamid.e", type: "edit", edit: { original_message_id: "wamid.o", message: now } }),
  );
  expect(one).toMatchObject({ messageId: "wamid.o", edit: "wamid.e", text: "at 6" });
});

test("in a group: an answer to us names us, one to somebody else does not", async () => {
  const { hear, channel, server } = await openGround();
  await send(channel, "shall **we**?", inGroup);
  const group = { group_id: GROUP };
  const ours = await hear(
    said("yes", { ...group, context: { id: server.sent[0]?.id, from: "15550783881" } }),
  );
  expect(ours).toMatchObject({ mentioned: true, quoted: { text: "shall we?" }, replyTo: inGroup });
  const first = await hear(said("lunch?", group));
  const answer = await hear(said("no", { ...group, context: { id: first?.messageId, from: PERSON } }));
  expect(answer).toMatchObject({ mentioned: false, quoted: { text: "lunch?", senderName: "Sheena Nelson" } });
  const unknown = await hear(
    said("that", { ...group, context: { id: "wamid.long-ago", from: "15550783881" } }),
  );
  expect(unknown).toMatchObject({ mentioned: true });
  expect(unknown?.quoted).toBeUndefined();
});

test("WM1: a quoted text is short, and old ones are forgotten", async () => {
  const { hear, post } = await openGround();
  const long = await hear(said("😀".repeat(5_000)));
  const answer = await hear(said("that", { context: { id: long?.messageId } }));
  expect(answer?.quoted?.text.length).toBeLessThanOrEqual(501);
  expect(answer?.quoted?.text.isWellFormed()).toBe(true);
  await post({ messages: Array.from({ length: 2_100 }, (_, index) => said(`${index}`)) });
  expect((await hear(said("that", { context: { id: long?.messageId } })))?.quoted).toBeUndefined();
});

test("WI1: hostile frames are skipped, and keep no other from being read", async () => {
  const { post, host, server, hookUrl } = await openGround();
  const nasty: unknown[] = [null, 7, "x", [], {}, { id: {} }, { from: ["1"], id: 4 }, { id: "a", from: "b" }];
  const more = [
    message({ type: "text" }),
    message({ type: "text", text: [] }),
    message({ type: 5 }),
    message({ type: "__proto__" }),
    message({ type: "constructor", constructor: 1 }),
    message({ type: "contacts", contacts: { length: 5 } }),
    message({ type: "edit", edit: null }),
    message({ id: "x".repeat(10_000), type: "text", text: { body: "long id" } }),
    message({ type: "text", text: { body: "no place" }, group_id: "a\nb" }),
  ];
  const value = {
    contacts: [null, { profile: 1 }],
    messages: [...nasty, ...more, said("still here", { timestamp: 9e99 })],
  };
  expect(await post(value)).toEqual([200]);
  const texts = host.received.map(({ text }) => text).filter((text) => !text.startsWith("["));
  expect(texts).toEqual(["still here"]);
  expect(host.received.at(-1)?.sentAt).toBeGreaterThan(1_500_000_000_000);
  const bodies = [
    [],
    {},
    { object: "page" },
    { object: "whatsapp_business_account", entry: [{ changes: [{ value: 1 }] }] },
  ];
  for (const body of bodies) expect(await server.post(hookUrl, body)).toEqual([200]);
});

test("CH1: what could not be stored is asked for again, and what is stored is not lost in between", async () => {
  const { post, host } = await openGround();
  host.failing = 1;
  const values = [said("one"), said("two"), said("three")];
  expect(await post({ contacts: [CONTACT], messages: values })).toEqual([503, 200]);
  expect(host.received.map(({ text }) => text)).toEqual(["one", "two", "three"]);
});

const never = new AbortController().signal;

test("WD1: a file is not read further than wanted, whatever it is said to be", async () => {
  const { hear, server, channel } = await openGround();
  server.media.set("77", { bytes: new Uint8Array(5_000), mimeType: "image/png" });
  const one = await hear(message({ type: "image", image: { id: "77" } }));
  expect(await one?.media[0]?.load(4_999, never)).toMatchObject({ ok: false, code: "too_large" });
  expect(server.paths.filter((path) => path.startsWith("/attachments"))).toEqual([]);
  expect(await one?.media[0]?.load(5_000, never)).toMatchObject({ ok: true });
  server.media.delete("77");
  expect(await one?.media[0]?.load(5_000, never)).toMatchObject({ ok: false });
  server.tokens.clear();
  const refused = await one?.media[0]?.load(5_000, never);
  expect(JSON.stringify(refused)).not.toContain(ACCESS_TOKEN);
  expect(channel.id).toBe("whatsapp");
});

const ADDRESSES = [
  "http://169.254.169.254/latest/meta-data/",
  "http://localhost/",
  "file:///etc/passwd",
  "https://user:secret@example.org/",
  "//example.org/x",
  "",
];
test.each(ADDRESSES)("WD2: the token goes to no address like %j", async (url) => {
  const { hear, server } = await openGround();
  server.media.set("77", { bytes: new Uint8Array(5), mimeType: "image/png", url });
  const one = await hear(message({ type: "image", image: { id: "77" } }));
  const before = server.paths.length;
  const loaded = await one?.media[0]?.load(5_000, never);
  if (url === "") return expect(loaded?.ok).toBe(false);
  expect(loaded).toMatchObject({ ok: false, code: "file_problem" });
  expect(server.paths.length).toBe(before + 1);
});

const OUTCOMES: [string, number, string, object][] = [
  ["nobody has written for a day", 400, graphError(131047), { kind: "refused", error: /has to write first/ }],
  [
    "the number is not allowed yet",
    400,
    graphError(131030),
    { kind: "refused", error: /allowed recipients/ },
  ],
  [
    "a parameter is wrong",
    400,
    graphError(100, "(#100) Invalid parameter"),
    { kind: "refused", error: /Invalid parameter/ },
  ],
  ["too many for one person", 400, graphError(131056), { kind: "retry", error: /short time/ }],
  ["the business has sent too much", 429, graphError(80007), { kind: "retry", error: /rate limit/ }],
  ["the token has expired", 401, graphError(190), { kind: "retry", error: /make a new one/ }],
  ["a permission is missing", 403, graphError(200), { kind: "retry", error: /permission/ }],
  [
    "the number is gone",
    400,
    graphError(100, "no", { error_subcode: 33 }),
    { kind: "retry", error: /phoneNumberId/ },
  ],
  [
    "it says that it may pass",
    500,
    graphError(1, "try again", { is_transient: true }),
    { kind: "retry", error: /try again/ },
  ],
  ["it does not know itself", 500, graphError(1), { kind: "unknown", error: /refused it \(1/ }],
  ["something in between fails", 502, "<html>Bad Gateway</html>", { kind: "unknown", error: /502/ }],
  ["something in between is full", 503, "busy", { kind: "retry", error: /503/ }],
  ["an address that has moved", 301, "", { kind: "refused", error: /graphUrl/ }],
  [
    "a success that is none",
    200,
    "<html>Log in to the hotel's network</html>",
    { kind: "unknown", error: /no id/ },
  ],
  ["an answer without an end", 200, "x".repeat(100_000), { kind: "unknown", error: /too long/ }],
  ["a wrong code", 400, graphError(Number.MAX_VALUE), { kind: "refused", error: /400/ }],
  [
    "words that write on a terminal",
    400,
    graphError(131009, "\u001b[2J\nboo"),
    { kind: "refused", error: /\\x1b\[2J\\nboo/ },
  ],
];
test.each(OUTCOMES)("I5: %s", async (_, status, body, { kind, error }: { kind?: string; error?: RegExp }) => {
  const { channel, server } = await openGround();
  server.fail(status, body);
  const outcome = await send(channel, "hello");
  expect(outcome.kind).toBe(kind);
  expect("error" in outcome ? outcome.error : "").toMatch(error ?? /never/);
  expect(await send(channel, "hello")).toEqual({ kind: "sent" });
});

test("CH2: a token that the platform repeats stands in no error", async () => {
  const { channel, server } = await openGround();
  server.fail(400, graphError(190, `Malformed access token ${ACCESS_TOKEN}`));
  const outcome = await send(channel, "hello");
  expect(outcome).toMatchObject({ kind: "retry" });
  expect(JSON.stringify(outcome)).not.toContain(ACCESS_TOKEN.slice(0, 12));
  const { channel: other } = await openGround(undefined, [{ accessToken: "a\r\nx-evil: 1" }]);
  expect(await send(other, "hello")).toMatchObject({ kind: "retry", error: /characters that no token has/ });
});

const PLACES: [string, object][] = [
  ["+1 (650) 555-1234", { recipient_type: "individual", to: PERSON }],
  [PERSON, { recipient_type: "individual", to: PERSON }],
  [GROUP, { recipient_type: "group", to: GROUP }],
];
test.each(PLACES)("WL1: %s is a place", async (to, wanted) => {
  const { channel, server } = await openGround();
  expect(await send(channel, "hello", { ...direct, to })).toEqual({ kind: "sent" });
  expect(server.asked[0]).toMatchObject(wanted);
});

test.each(["", "12", "me\nyou", "a b", "../../me", "x".repeat(400)])("WL1: %j is no place", async (to) => {
  const { channel, server } = await openGround();
  expect(await send(channel, "hello", { ...direct, to })).toMatchObject({
    kind: "refused",
    error: /neither a number/,
  });
  expect(server.asked).toEqual([]);
});

test("that an answer is being written marks the newest message of the chat as read", async () => {
  const { channel, server, hear } = await openGround();
  await channel.typing?.(direct);
  expect(server.typed).toEqual([]);
  await hear(said("one"));
  const newest = await hear(said("two"));
  await hear(said("other", { from: "4917012345" }));
  await channel.typing?.(direct);
  expect(server.typed).toEqual([newest?.messageId]);
});

test("WA1: an account whose token stops working while it sends says so, and is asked again later", async () => {
  const world = fakeWorld();
  const host = Object.assign(recordingHost(), { world });
  const { channel, server } = await openGround(host);
  const accounts = await listenAt(channel, host);
  const state = () => accounts.standings()[0];
  await expect.poll(() => state()?.state).toBe("ready");
  server.fail(401, graphError(190, "Session has expired"));
  await send(channel, "hello");
  await expect.poll(() => state()?.state).toBe("retrying");
  expect(state()?.error).toMatch(/make a new one/);
  await expect
    .poll(async () => {
      await world.advance(60_000);
      return state()?.state;
    })
    .toBe("ready");
});

test("WS1: a text that did not arrive is told once, and when the account is tested", async () => {
  const world = fakeWorld();
  const { channel, post } = await openGround(Object.assign(recordingHost(), { world }));
  expect(await channel.test?.("default")).toMatchObject({
    ok: true,
    value: "Parley Test (+1 555-078-3881); its web hook has not been called since this gateway began",
  });
  const errors = [
    { code: 131047, title: "Re-engagement message", error_data: { details: "More than 24 hours" } },
  ];
  const status = { id: "wamid.out1", status: "failed", timestamp: "1", recipient_id: PERSON, errors };
  const fine = { id: "wamid.out2", status: "delivered", timestamp: "1", recipient_id: PERSON };
  await post({ statuses: [fine, status, null, { status: "failed" }] });
  await post({ statuses: [status] });
  const warned = world.logged.filter(({ text }) => text.includes("was not delivered"));
  expect(warned).toMatchObject([{ level: "warn", fields: { account: "whatsapp:default", to: PERSON } }]);
  expect(warned[0]?.text).toContain("has to write first");
  const tested = await channel.test?.("default");
  expect(tested?.ok === true && tested.value).toMatch(
    /called 0 min ago; the last text .* has to write first/,
  );
  expect(await channel.test?.("nobody")).toMatchObject({ ok: false });
});

test("WA2: numbers of one app share its web hook; a number of another app does not hear of it", async () => {
  const host = recordingHost();
  const other = { accountId: "sales", phoneNumberId: "222", accessToken: "EAAGother" };
  const foreign = { accountId: "foreign", phoneNumberId: "333", appSecret: "another-app-0123456789" };
  const { server, hookUrl } = await openGround(host, [{}, other, foreign]);
  for (const id of ["222", "333", "444"]) {
    expect(await server.post(hookUrl, webHook({ contacts: [CONTACT], messages: [said(id)] }, id))).toEqual([
      200,
    ]);
  }
  expect(host.received.map(({ text, accountId, replyTo }) => [text, accountId, replyTo.accountId])).toEqual([
    ["222", "sales", "sales"],
  ]);
});
