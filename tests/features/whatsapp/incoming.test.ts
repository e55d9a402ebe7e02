// Web hooks of WhatsApp: every kind of message, hostile frames, and files.

import { createServer } from "node:net";
import fc from "fast-check";
import { expect } from "vitest";
import { readWebHook } from "../../../src/features/whatsapp/incoming.ts";
import { anyCharacter } from "../../fuzz/nasty.ts";
import { rounds, both as test } from "../../kit/deep.ts";
import { cleanup } from "../../kit/engine/engine.ts";
import { listenHere } from "../../kit/loopback.ts";
import { ACCESS_TOKEN, webHook } from "../../kit/platforms/whatsapp-server.ts";
import { CONTACT, GROUP, inGroup, message, openGround, PERSON, said, send } from "./kit.ts";

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
    { text: "[a message of a kind that WhatsApp does not forward to programs, poll creation]" },
  ],
  ["a kind of tomorrow", { type: "hologram" }, { text: "[a message of an unknown kind, hologram]" }],
  [
    "something that was passed on",
    { type: "text", text: { body: "/reset" }, context: { forwarded: true } },
    { text: "[forwarded]\n/reset", forwarded: true },
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
    { text: "[image, it could not be read]\nlook", media: [] },
  ],
];
test.each(MESSAGES)("WC1: %s becomes a note", async (_, fields, wanted) => {
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
test.each(NO_MESSAGES)("WC1: %s is not a message, and WhatsApp does not send it again", async (_, fields) => {
  const { post, host } = await openGround();
  expect(await post({ contacts: [CONTACT], messages: [message(fields), said("after")] })).toEqual([200]);
  expect(host.received.map(({ text }) => text)).toEqual(["after"]);
});

test("the sender's number, name and other ids are available for settings", async () => {
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
    alsoKnownAs: ["US.13491208655302741918"],
  });
  expect(one).toMatchObject({
    chat: { type: "direct", id: PERSON, name: "Sheena" },
    sentAt: 1_749_416_383_000,
  });
});

test("if a person hides the phone number, the answer goes to their id", async () => {
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

test("an edit is reported as an edit of the original message", async () => {
  const { hear } = await openGround();
  const now = { type: "text", text: { body: "at 6" }, context: { id: "M0" } };
  const one = await hear(
    message({ id: "wamid.e", type: "edit", edit: { original_message_id: "wamid.o", message: now } }),
  );
  expect(one).toMatchObject({ messageId: "wamid.o", edit: "wamid.e", text: "at 6" });
});

test("in a group a reply to the bot is a mention, but a reply to another person is not", async () => {
  const { hear, channel, server } = await openGround();
  await send(channel, "shall **we**?", inGroup);
  const group = { group_id: GROUP };
  const ours = await hear(
    said("yes", { ...group, context: { id: server.sent[0]?.id, from: "15550783881" } }),
  );
  expect(ours).toMatchObject({
    mentioned: true,
    quoted: { text: "shall we?" },
    authors: [],
    replyTo: inGroup,
  });
  const first = await hear(said("lunch?", group));
  const answer = await hear(said("no", { ...group, context: { id: first?.messageId, from: PERSON } }));
  expect(answer).toMatchObject({ mentioned: false, quoted: { text: "lunch?", senderName: "Sheena Nelson" } });
  expect(answer?.authors).toEqual([[first?.sender.id, ...(first?.sender.alsoKnownAs ?? [])]]);
  const unknown = await hear(
    said("that", { ...group, context: { id: "wamid.long-ago", from: "15550783881" } }),
  );
  expect(unknown).toMatchObject({ mentioned: true });
  expect(unknown?.quoted).toBeUndefined();
});

test("WM1: quoted messages are stored shortened, and the oldest are evicted", async () => {
  const { hear, post } = await openGround();
  const long = await hear(said("😀".repeat(5_000)));
  const answer = await hear(said("that", { context: { id: long?.messageId } }));
  expect(answer?.quoted?.text.length).toBeLessThanOrEqual(501);
  expect(answer?.quoted?.text.isWellFormed()).toBe(true);
  await post({ messages: Array.from({ length: 2_100 }, (_, index) => said(`${index}`)) });
  expect((await hear(said("that", { context: { id: long?.messageId } })))?.quoted).toBeUndefined();
});

test("WI1: hostile frames are skipped, and the other messages are read", async () => {
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

const never = new AbortController().signal;

test("WD1: downloads are limited, even if WhatsApp reports a smaller size", async () => {
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
test.each(ADDRESSES)("WD2: the token is never sent to an address like %j", async (url) => {
  const { hear, server } = await openGround();
  server.media.set("77", { bytes: new Uint8Array(5), mimeType: "image/png", url });
  const one = await hear(message({ type: "image", image: { id: "77" } }));
  const before = server.paths.length;
  const loaded = await one?.media[0]?.load(5_000, never);
  if (url === "") return expect(loaded?.ok).toBe(false);
  expect(loaded).toMatchObject({ ok: false, code: "file_problem" });
  expect(server.paths.length).toBe(before + 1);
});

test("WD2: no media is requested from this machine, neither by IP address nor by name", async () => {
  const { hear, server } = await openGround();
  let connections = 0;
  const secret = createServer((socket) => {
    connections += 1;
    socket.destroy();
  });
  const port = await listenHere(secret);
  cleanup(() => new Promise<void>((resolve) => secret.close(() => resolve())));
  for (const host of ["127.0.0.1", "localhost", "[::1]", "169.254.169.254"]) {
    const url = `https://${host}:${port}/latest/meta-data`;
    server.media.set("77", { bytes: new Uint8Array(5), mimeType: "image/png", url });
    const one = await hear(message({ type: "image", image: { id: "77" } }));
    const loaded = await one?.media[0]?.load(5_000, never);
    expect(loaded).toMatchObject({ ok: false, code: "file_problem" });
    expect(loaded).toHaveProperty("error", expect.stringContaining("this machine or a private network"));
  }
  expect(connections).toBe(0);
});

/** Typical values of message fields, and random ones. */
const value = fc.oneof(
  fc.jsonValue(),
  fc.constantFrom(
    "text",
    "image",
    "edit",
    "contacts",
    "interactive",
    "16505551234",
    "wamid.1",
    "1749416383",
    "__proto__",
  ),
  fc.string({ unit: anyCharacter, maxLength: 40 }),
);
const FIELDS = [
  "id",
  "from",
  "type",
  "timestamp",
  "context",
  "group_id",
  "text",
  "image",
  "edit",
  "contacts",
  "interactive",
];
const fields = fc.dictionary(
  fc.constantFrom(...FIELDS, "body", "message", "original_message_id", "name", "caption"),
  value,
);
const messages = fc.oneof(
  fields,
  fields.map((inner) => message({ type: "edit", edit: { original_message_id: "wamid.o", message: inner } })),
  fc.tuple(fc.constantFrom(...FIELDS), fields).map(([type, inner]) => message({ type, [type]: inner })),
);

test("WI1: for every signed body, each resulting message is complete", () => {
  const hooks = fc
    .array(messages, { maxLength: 5 })
    .map((list) => webHook({ messages: list, contacts: list, statuses: list, errors: list }));
  fc.assert(
    fc.property(fc.oneof(hooks, fc.jsonValue()), (body) => {
      for (const event of readWebHook(JSON.parse(JSON.stringify(body))).flatMap(({ events }) => events)) {
        if (event.kind !== "message") continue;
        const { messageId, senderId, content, sentAtMs = 1 } = event;
        expect(messageId).toMatch(/^[!-~]{1,512}$/);
        expect(senderId).toMatch(/^[\w.]{5,}$/);
        expect(content.text.isWellFormed()).toBe(true);
        expect(content.text).not.toContain("\0");
        expect(content.text !== "" || content.media.length > 0).toBe(true);
        expect(Number.isSafeInteger(sentAtMs)).toBe(true);
      }
    }),
    { numRuns: rounds(300, 3_000) },
  );
});
