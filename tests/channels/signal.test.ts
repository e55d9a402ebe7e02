// Signal, against a fake of the signal-cli daemon that speaks its HTTP: what every channel promises, and what is
// Signal's own.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { openSignal } from "../../src/channels/signal/channel.ts";
import { readEnvelope } from "../../src/channels/signal/envelope.ts";
import { outcomeOf, recipientOf, styled } from "../../src/channels/signal/send.ts";
import type { SignalAccount } from "../../src/core/channel-settings.ts";
import {
  channelContract,
  type HostParts,
  listenAt,
  recordingHost,
  type Said,
  type Trouble,
} from "../contract/channel.ts";
import {
  type SendTrouble,
  type SignalServer,
  type SignalServerOptions,
  startSignalServer,
} from "../kit/signal-server.ts";

const OWN = { number: "+491700000001", aci: "11111111-1111-4111-8111-111111111111" };
const ADA = { number: "+491700000002", aci: "22222222-2222-4222-8222-222222222222" };
const GROUP = Buffer.from("a group of thirty-two bytes, yes").toString("base64");

function account(url: string, more: Partial<SignalAccount> = {}): SignalAccount {
  return {
    ...{ channel: "signal", accountId: "default", number: OWN.number, url },
    ...{
      dmPolicy: "open",
      allowFrom: [],
      groupPolicy: "open",
      groupAllowFrom: [],
      requireMention: true,
      groups: {},
    },
    inbound: { debounceMs: 0, queue: "followup", mediaMaxBytes: 1_000_000 },
    threadBindings: { enabled: true, idleHours: 0, maxAgeHours: 0 },
    ...more,
  };
}

/** As the daemon tells who wrote. */
function from(who: { number: string | null; aci: string }, name = "Ada") {
  const source = who.number ?? who.aci;
  return { source, sourceNumber: who.number, sourceUuid: who.aci, sourceName: name, sourceDevice: 1 };
}

let clock = 1_767_225_600_000;

function dataOf(text: string | null, more: object = {}) {
  clock += 1_000;
  return { timestamp: clock, message: text, expiresInSeconds: 0, viewOnce: false, ...more };
}

function said({ chat, name, text, mention, quote, media }: Said, server: SignalServer) {
  if (media !== undefined) server.attachments.set("file-1.pdf", media.bytes);
  const own = { name: OWN.number, number: OWN.number, uuid: OWN.aci, start: 0, length: 1 };
  const data = dataOf(mention === true ? `\uFFFC ${text}` : text, {
    ...(chat === "group"
      ? { groupInfo: { groupId: GROUP, groupName: "Lunch", revision: 1, type: "DELIVER" } }
      : {}),
    ...(mention === true ? { mentions: [own] } : {}),
    ...(quote === undefined
      ? {}
      : { quote: { id: 1, author: ADA.number, authorNumber: ADA.number, text: quote, attachments: [] } }),
    ...(media === undefined
      ? {}
      : {
          attachments: [
            { id: "file-1.pdf", contentType: media.mimeType, filename: media.name, size: media.bytes.length },
          ],
        }),
  });
  return { envelope: { ...from(ADA, name), timestamp: data.timestamp, dataMessage: data } };
}

function spoil(trouble: Trouble, server: SignalServer): void {
  const result = (type: string, more: object = {}) => [
    { recipientAddress: { number: ADA.number }, type, ...more },
  ];
  const error = (code: number, message: string, results?: object[]): SendTrouble => ({
    ...{ kind: "error", code, message },
    ...(results === undefined ? {} : { results }),
  });
  const pause = { token: "a-challenge", retryAfterSeconds: trouble.kind === "limit" ? trouble.seconds : 0 };
  const troubles: Record<Trouble["kind"], SendTrouble> = {
    limit: error(-5, "Failed to send message due to rate limiting", result("RATE_LIMIT_FAILURE", pause)),
    refuse: error(-1, "Failed to send message", result("UNREGISTERED_FAILURE")),
    serverError: error(-32603, "An internal server error has occurred."),
    cut: { kind: "cut" },
  };
  server.next(troubles[trouble.kind]);
}

async function ground(host: HostParts, options: Partial<SignalServerOptions> = {}) {
  const server = await startSignalServer({ accounts: [OWN], ...options });
  const channel = openSignal([account(server.url)], host);
  const says = async (one: Said) => server.event(OWN.number, said(one, server));
  return { server, channel, says };
}

channelContract("Signal", async (host) => {
  const { server, channel, says } = await ground(host);
  let newest = 0;
  return {
    channel,
    routes: {
      direct: { channel: "signal", to: ADA.number, accountId: "default" },
      group: { channel: "signal", to: GROUP, accountId: "default" },
    },
    platform: {
      async says(one) {
        await says(one);
        newest = clock;
      },
      repeats: async () => server.again(),
      async edits(text) {
        const dataMessage = dataOf(text);
        const editMessage = { targetSentTimestamp: newest, dataMessage };
        server.event(OWN.number, {
          envelope: { ...from(ADA), timestamp: dataMessage.timestamp, editMessage },
        });
      },
      shown: () => server.sent.map(({ to, message }) => ({ to, text: message })),
      next: (trouble) => spoil(trouble, server),
      revoke: () => server.remove(OWN.number),
      goAway: () => server.close(),
      typed: () => server.typed.length,
    },
  };
});

async function listening(options: Partial<SignalServerOptions> = {}) {
  const host = recordingHost();
  const { server, channel, says } = await ground(host, options);
  const accounts = await listenAt(channel, host);
  await expect.poll(() => server.listeners()).toBe(1);
  const heard = async (count: number) => {
    await expect.poll(() => host.received.length).toBeGreaterThanOrEqual(count);
    return host.received;
  };
  return { host, server, channel, says, accounts, heard };
}

describe("Signal: what comes in", () => {
  test("SG1: after a break the daemon is asked to go on behind what was stored", async () => {
    const { server, says, heard } = await listening();
    await says({ chat: "direct", text: "one" });
    await heard(1);
    server.hangUp();
    await expect.poll(() => server.listeners()).toBe(0);
    await says({ chat: "direct", text: "while nobody listened" });
    const received = await heard(2);
    expect(received.map(({ text }) => text)).toEqual(["one", "while nobody listened"]);
    expect(server.resumed[0]).toBeUndefined();
    expect(server.resumed.at(-1)).toMatch(/-1$/);
  });

  test("SG1: while the store is away the stream stands still, and nothing is passed by", async () => {
    const { host, says, heard } = await listening({ keepsEvents: false });
    host.failing = 3;
    for (const text of ["one", "two", "three"]) await says({ chat: "direct", text });
    expect((await heard(3)).map(({ text }) => text)).toEqual(["one", "two", "three"]);
  });

  test("SG1: a store that stays away is the account's state; what was read is stored when it is back", async () => {
    const { host, accounts, says, heard } = await listening({ keepsEvents: false });
    host.failing = 6;
    await says({ chat: "direct", text: "patience" });
    await expect.poll(() => accounts.standings()[0]?.state).toBe("retrying");
    expect(accounts.standings()[0]?.error).toContain("can't be stored");
    expect((await heard(1)).map(({ text }) => text)).toEqual(["patience"]);
  });

  test("EN3: receipts, typing, reactions, renamed groups and own messages are nothing", async () => {
    const { server, says, heard } = await listening();
    const bring = (what: object, who: { number: string | null; aci: string } = ADA) =>
      server.event(OWN.number, { envelope: { ...from(who), timestamp: 5, ...what } });
    bring({ receiptMessage: { when: 5, isDelivery: true, timestamps: [4] } });
    bring({ typingMessage: { action: "STARTED", timestamp: 5 } });
    bring({ syncMessage: { sentMessage: { destination: ADA.number, timestamp: 5, message: "mine" } } }, OWN);
    bring({ dataMessage: dataOf(null, { reaction: { emoji: "👍", targetAuthor: OWN.number } }) });
    bring({ dataMessage: dataOf(null, { groupInfo: { groupId: GROUP, type: "UPDATE" } }) });
    bring({ dataMessage: dataOf(null, { remoteDelete: { timestamp: 5 } }) });
    bring({ dataMessage: dataOf("mine, too") }, OWN);
    await says({ chat: "direct", text: "a real one" });
    expect((await heard(1)).map(({ text }) => text)).toEqual(["a real one"]);
  });

  test("EN1: frames of any kind are passed over, told once each, and never stop the account", async () => {
    const { server, says, heard, accounts } = await listening();
    for (const data of [
      "no json",
      "[]",
      "null",
      '{"envelope":7}',
      '{"envelope":{"dataMessage":{"message":"x"}}}',
    ]) {
      server.raw(`event:receive\ndata:${data}\n\n`);
    }
    server.raw(`data:${"x".repeat(3_000_000)}\n\n`);
    server.raw(":\n\nevent:unknown\nretry:5\n\n");
    server.event(OWN.number, { exception: { message: "org.whispersystems…", type: "ProtocolException" } });
    server.event(OWN.number, {
      envelope: { ...from(ADA), timestamp: 1e300, dataMessage: { timestamp: -1, message: 5 } },
    });
    await says({ chat: "direct", text: "still here" });
    expect((await heard(1)).map(({ text }) => text)).toEqual(["still here"]);
    expect(accounts.standings()[0]?.state).toBe("ready");
    expect(server.resumed.length).toBe(1);
  });

  test("an event in pieces, with line ends of every kind, is one event", async () => {
    const { server, heard } = await listening();
    const envelope = {
      ...from(ADA, "Zoë"),
      timestamp: 7,
      dataMessage: { ...dataOf("é\u{1F600}"), timestamp: 7 },
    };
    const text = `id: 9-9\r\nevent: receive\r\ndata: ${JSON.stringify({ envelope })}\r\n\r\n`;
    for (const byte of Buffer.from(text)) server.raw(Buffer.from([byte]) as unknown as string);
    const [message] = await heard(1);
    expect(message).toMatchObject({ text: "é\u{1F600}", sender: { name: "Zoë" }, sentAt: 7 });
  });

  test("SG3: a number that the daemon does not have is a lasting problem, told in words", async () => {
    const host = recordingHost();
    const server = await startSignalServer({ accounts: [ADA] });
    const channel = openSignal([account(server.url)], host);
    const accounts = await listenAt(channel, host);
    await expect.poll(() => accounts.standings()[0]?.state).toBe("retrying");
    expect(accounts.standings()[0]?.error).toContain(`has no account ${OWN.number}`);
    expect(await channel.test?.("default")).toMatchObject({ ok: false });
  });

  test("a daemon for one account alone works, and one for another account is told", async () => {
    const { says, heard, server, accounts, channel } = await listening({ isSingle: true });
    await says({ chat: "direct", text: "hello" });
    await heard(1);
    expect(await channel.test?.("default")).toMatchObject({
      ok: true,
      value: expect.stringContaining("0.13.24"),
    });
    server.event(ADA.number, { envelope: {} });
    await expect.poll(() => accounts.standings()[0]?.error).toContain(`receives for ${ADA.number}`);
  });

  test("what answers there and is no signal-cli is told", async () => {
    const host = recordingHost();
    const server = await startSignalServer({ accounts: [OWN] });
    const channel = openSignal([account(`${server.url}/elsewhere`)], host);
    const accounts = await listenAt(channel, host);
    await expect
      .poll(() => accounts.standings()[0]?.error ?? "")
      .toContain("no signal-cli daemon (HTTP 404)");
  });

  test("an attachment that the daemon no longer has is told, and costs no more than its words", async () => {
    const { says, server, heard } = await listening();
    const media = { name: "a.pdf", mimeType: "application/pdf", bytes: new Uint8Array(10) };
    await says({ chat: "direct", text: "see", media });
    const [message] = await heard(1);
    server.attachments.clear();
    const loaded = await message?.media[0]?.load(1_000, new AbortController().signal);
    expect(loaded).toMatchObject({ ok: false, error: expect.stringContaining("can't be had") });
  });
});

describe("Signal: an envelope", () => {
  const reading = {
    ...{ channel: "signal", accountId: "default", own: new Set([OWN.number, OWN.aci]) },
    load: () => async () => ({ ok: true as const, value: new Uint8Array() }),
  };
  const read = (data: object, envelope: object = from(ADA)) => {
    const found = readEnvelope(
      { envelope: { ...envelope, timestamp: 1, dataMessage: dataOf("", data) } },
      reading,
    );
    return found.kind === "message" ? found.message : undefined;
  };

  test("mentions become names; the call at the beginning is no part of what is said", () => {
    const ada = { number: ADA.number, uuid: ADA.aci, length: 1 };
    const own = { number: OWN.number, uuid: OWN.aci, length: 1 };
    const message = (text: string, mentions: object[]) => read({ message: text, mentions });
    const text = "\uFFFC ask \uFFFC \u{1F600}\uFFFC";
    const mentions = [
      { ...own, start: 0 },
      { ...ada, start: 6 },
      { uuid: ADA.aci, number: null, start: 10, length: 1 },
    ];
    expect(message(text, mentions)).toMatchObject({
      text: `ask @${ADA.number} \u{1F600}@${ADA.aci}`,
      mentioned: true,
    });
    expect(message("\uFFFC hi", [{ ...ada, start: 0 }])).toMatchObject({
      text: `@${ADA.number} hi`,
      mentioned: false,
    });
    expect(message("\uFFFC", [{ ...own, start: 0 }])).toMatchObject({ text: "", mentioned: true });
    expect(
      message("short", [
        { ...ada, start: 3, length: 99 },
        { ...ada, start: 2 ** 40 },
      ])?.text,
    ).toBe("short");
  });

  test("an answer to the agent's own message is a mention; whose it was is told otherwise", () => {
    const quote = { id: 5, text: "\uFFFC said so", mentions: [{ number: ADA.number, start: 0, length: 1 }] };
    const own = read({
      message: "yes",
      quote: { ...quote, authorNumber: null, authorUuid: OWN.aci, author: OWN.aci },
    });
    expect(own).toMatchObject({ mentioned: true, quoted: { text: `@${ADA.number} said so` } });
    const other = read({ message: "yes", quote: { ...quote, author: ADA.number } });
    expect(other).toMatchObject({ mentioned: false, quoted: { senderName: ADA.number } });
    const file = read({
      message: "yes",
      quote: { id: 5, author: ADA.number, text: null, attachments: [{}] },
    });
    expect(file?.quoted?.text).toBe("[a file]");
  });

  test("whoever hides the number is known by the id, and both are told where both are known", () => {
    expect(read({ message: "x" })?.sender).toMatchObject({ id: ADA.number, alsoKnownAs: [ADA.aci] });
    const hidden = read({ message: "x" }, from({ number: null, aci: ADA.aci }));
    expect(hidden).toMatchObject({
      sender: { id: ADA.aci },
      chat: { id: ADA.aci },
      replyTo: { to: ADA.aci },
    });
  });

  test("recordings, stickers, contacts, polls and what is to be seen once", () => {
    const voice = read({ attachments: [{ id: "v", contentType: "audio/aac", size: 9 }] });
    expect(voice?.media).toMatchObject([{ kind: "voice", mimeType: "audio/aac", bytes: 9 }]);
    const music = read({ attachments: [{ id: "v", contentType: "audio/mpeg", filename: "a.mp3" }] });
    expect(music?.media).toMatchObject([{ kind: "audio", name: "a.mp3" }]);
    expect(read({ sticker: { packId: "00", stickerId: 1 } })?.text).toBe("[sticker]");
    const contacts = [{ name: { display: "Bob" }, phone: [{ value: "+4917" }] }];
    expect(read({ message: "him", contacts })?.text).toBe("him\n[contact: Bob, +4917]");
    expect(read({ pollCreate: { question: "Pizza?", options: ["yes", "no"] } })?.text).toBe(
      "[poll: Pizza? (yes | no)]",
    );
    const once = read({ viewOnce: true, attachments: [{ id: "x", contentType: "image/png" }] });
    expect(once).toMatchObject({ media: [], text: "[a picture to be seen once: it was not kept]" });
    expect(
      read({ message: "all of it", attachments: [{ id: "t", contentType: "text/x-signal-plain" }] })?.media,
    ).toEqual([]);
  });

  test("EN1: any JSON at all is read without a throw", () => {
    const keys = fc.constantFrom(
      ...[
        "envelope",
        "dataMessage",
        "editMessage",
        "message",
        "mentions",
        "quote",
        "attachments",
        "groupInfo",
        "start",
      ],
      ...[
        "timestamp",
        "source",
        "sourceUuid",
        "groupId",
        "id",
        "text",
        "contacts",
        "name",
        "pollCreate",
        "options",
      ],
    );
    const { value } = fc.letrec<{ value: unknown }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 5 },
        fc.constantFrom<unknown>(null, 0, -1, 1.5, 1e300, "", "x", "\uD800", true, 7),
        fc.dictionary(keys, tie("value"), { maxKeys: 5 }),
        fc.array(tie("value"), { maxLength: 3 }),
      ),
    }));
    fc.assert(
      fc.property(value, value, (dataMessage, rest) => {
        const base = typeof rest === "object" && rest !== null && !Array.isArray(rest) ? rest : {};
        const found = readEnvelope(
          { envelope: { ...from(ADA), timestamp: 1, dataMessage, ...base } },
          reading,
        );
        expect(["message", "nothing", "unreadable"]).toContain(found.kind);
        if (found.kind === "message") expect(found.message.text.isWellFormed()).toBe(true);
      }),
    );
  });
});

describe("Signal: what goes out", () => {
  test("markup becomes styles of the text that is shown, counted as Signal counts", async () => {
    const { channel, server } = await listening();
    const text = "\u{1F600} **bold** [here](https://e.org) `x` and ~~gone~~";
    const route = { channel: "signal", to: GROUP };
    const outcome = await channel.deliver({
      deliveryId: "1",
      sessionKey: "s",
      route,
      text,
      part: 1,
      parts: 1,
    });
    expect(outcome).toEqual({ kind: "sent" });
    const [sent] = server.sent;
    expect(sent).toMatchObject({ account: OWN.number, isGroup: true, to: GROUP });
    expect(sent?.message).toBe("\u{1F600} bold here (https://e.org) x and gone");
    const styles = sent?.textStyle.map((style) => {
      const [start, length, kind] = style.split(":");
      return `${kind} ${sent.message.slice(Number(start), Number(start) + Number(length))}`;
    });
    expect(styles).toEqual(["BOLD bold", "MONOSPACE x", "STRIKETHROUGH gone"]);
  });

  test("SS2: a text that would grow over the limit goes as it was written", () => {
    const long = `|a|b|\n|-|-|\n${"|x|y|\n".repeat(320)}`;
    expect(styled(long.slice(0, 2_000)).message.length).toBeLessThanOrEqual(2_000);
  });

  test("whom an address is", () => {
    expect(recipientOf(ADA.number)).toEqual({ recipient: [ADA.number] });
    expect(recipientOf(ADA.aci)).toEqual({ recipient: [ADA.aci] });
    expect(recipientOf(GROUP)).toEqual({ groupId: GROUP });
    for (const to of ["", "ada", "+1", "-a", "--help", "491700000002", `${GROUP}${GROUP}`, "a b"]) {
      expect(recipientOf(to)).toBeUndefined();
    }
  });

  test("I5: only what certainly did not leave is tried again", () => {
    const error = (code: number, message: string, results?: object[]) =>
      outcomeOf({
        kind: "error",
        code,
        message,
        data: results === undefined ? {} : { response: { results } },
      }).kind;
    const result = (...types: string[]) =>
      outcomeOf({ kind: "result", value: { results: types.map((type) => ({ type })) } }).kind;
    expect(result("SUCCESS")).toBe("sent");
    expect(result("NETWORK_FAILURE", "SUCCESS")).toBe("sent");
    expect(result("UNREGISTERED_FAILURE")).toBe("refused");
    expect(result("IDENTITY_FAILURE")).toBe("refused");
    expect(result("RATE_LIMIT_FAILURE")).toBe("retry");
    expect(result("NETWORK_FAILURE")).toBe("unknown");
    expect(outcomeOf({ kind: "result", value: { timestamp: 5 } }).kind).toBe("sent");
    expect(error(-1, "Group not found")).toBe("refused");
    expect(error(-3, "Failed to send message: no route (UnknownHostException)")).toBe("retry");
    expect(error(-3, "Failed to send message: reset (SocketException)")).toBe("unknown");
    expect(error(-4, "Untrusted")).toBe("refused");
    expect(error(-32602, "Specified account does not exist")).toBe("retry");
    expect(error(-32603, "NullPointerException")).toBe("unknown");
    expect(outcomeOf({ kind: "failed", reached: false, why: "x" }).kind).toBe("retry");
    expect(outcomeOf({ kind: "failed", reached: true, why: "x" }).kind).toBe("unknown");
  });

  test("a captcha is told in words, with Signal's pause, and without its token", async () => {
    const { channel, server } = await listening();
    const token = "2fc05128-a86a-4b99-9b33-ce615fee9258";
    const results = [{ type: "NETWORK_FAILURE", token, retryAfterSeconds: 86_400 }];
    server.next({ kind: "error", code: -1, message: "Failed to send message", results });
    const route = { channel: "signal", to: ADA.number };
    const outcome = await channel.deliver({
      deliveryId: "1",
      sessionKey: "s",
      route,
      text: "x",
      part: 1,
      parts: 1,
    });
    expect(outcome).toMatchObject({
      kind: "retry",
      afterMs: 86_400_000,
      error: expect.stringContaining("captcha"),
    });
    expect(JSON.stringify(outcome)).not.toContain(token);
  });

  test("what refuses a call before it looks at it has sent nothing; what breaks in the middle may have", async () => {
    const { channel, server } = await listening();
    const route = { channel: "signal", to: ADA.number };
    const send = () =>
      channel.deliver({ deliveryId: "1", sessionKey: "s", route, text: "x", part: 1, parts: 1 });
    server.next({ kind: "status", status: 403 });
    expect((await send()).kind).toBe("retry");
    server.next({ kind: "status", status: 502, body: "<html>" });
    expect((await send()).kind).toBe("unknown");
    expect(await send()).toEqual({ kind: "sent" });
  });
});
