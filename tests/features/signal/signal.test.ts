// Signal, with a fake signal-cli daemon and its HTTP interface: the contract of all channels, and rules for
// Signal only.

import { describe, expect, test } from "vitest";
import { openChannel } from "../../../src/channels/registry.ts";
import { optional } from "../../../src/core/optional.ts";
import {
  channelContract,
  type HostParts,
  listenAt,
  recordingHost,
  type Said,
  type Trouble,
} from "../../contract/channel.ts";
import {
  ADA,
  dataOf,
  from,
  GROUP,
  newestTime,
  OWN,
  signalAccount,
} from "../../kit/platforms/signal-people.ts";
import {
  type SendTrouble,
  type SignalServer,
  type SignalServerOptions,
  startSignalServer,
} from "../../kit/platforms/signal-server.ts";

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
    ...optional({ results }),
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
  const channel = await openChannel("signal", [signalAccount(server.url)], host);
  const says = async (one: Said) => server.event(OWN.number, said(one, server));
  return { server, channel, says };
}

channelContract(
  "Signal",
  async (host) => {
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
          newest = newestTime();
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
  },
  ["threads"],
);

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

describe("Signal: incoming events", () => {
  test("SG1: after a disconnect the event stream resumes after the last stored event", async () => {
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

  test("SG5: if the daemon sends no event ids, a message whose file is loaded during a crash is not lost", async () => {
    const { host, server, says } = await listening({ keepsEvents: false });
    const [began, over] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    host.receive = async () => {
      began.resolve();
      await over.promise;
    };
    const media = { name: "a.pdf", mimeType: "application/pdf", bytes: new Uint8Array(10) };
    await says({ chat: "direct", text: "see", media });
    await began.promise;
    /** Starts a process with the store that the last one left. */
    const restart = async ({ cursors }: HostParts) => {
      const next = recordingHost();
      for (const [name, value] of cursors) next.cursors.set(name, value);
      await listenAt(await openChannel("signal", [signalAccount(server.url)], next), next);
      const texts = () => next.received.map(({ text, media: files }) => [text, files.length]);
      return { next, texts };
    };
    const second = await restart(host);
    await expect.poll(second.texts).toEqual([["see", 1]]);
    await expect.poll(() => server.listeners()).toBe(2);
    // A message that is stored is not read again.
    const third = await restart(second.next);
    await expect.poll(() => server.listeners()).toBe(3);
    over.resolve();
    await says({ chat: "direct", text: "later" });
    await expect.poll(third.texts).toEqual([["later", 0]]);
    await expect.poll(second.texts).toEqual([
      ["see", 1],
      ["later", 0],
    ]);
  });

  test("SG5: a kept event of a number that the account no longer has is dropped", async () => {
    const host = recordingHost();
    host.cursors.set("default event", JSON.stringify({ account: ADA.number, envelope: {} }));
    const { server, channel, says } = await ground(host);
    await listenAt(channel, host);
    await expect.poll(() => host.cursors.get("default event")).toBe("");
    // The stream is opened after the kept event, and the server drops what nobody listens to.
    await expect.poll(() => server.listeners()).toBe(1);
    await says({ chat: "direct", text: "hello" });
    await expect.poll(() => host.received.length).toBe(1);
  });

  test("EN3: receipts, typing, reactions, renamed groups and own messages are ignored", async () => {
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

  test("EN1: each invalid frame is skipped and logged, and the account continues", async () => {
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
    expect(accounts.statuses()[0]?.state).toBe("ready");
    expect(server.resumed.length).toBe(1);
  });

  test("an event in several pieces, with any line ends, is read as one event", async () => {
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

  test("SG3: if the daemon does not have the account's number, the account reports a lasting problem with a clear error", async () => {
    const host = recordingHost();
    const server = await startSignalServer({ accounts: [ADA] });
    const channel = await openChannel("signal", [signalAccount(server.url)], host);
    const accounts = await listenAt(channel, host);
    await expect.poll(() => accounts.statuses()[0]?.state).toBe("retrying");
    expect(accounts.statuses()[0]?.error).toContain(`has no account ${OWN.number}`);
    expect(await channel.test?.("default")).toMatchObject({ ok: false });
  });

  test("a daemon for a single account works, and a daemon for another account is an error", async () => {
    const { says, heard, server, accounts, channel } = await listening({ isSingle: true });
    await says({ chat: "direct", text: "hello" });
    await heard(1);
    expect(await channel.test?.("default")).toMatchObject({
      ok: true,
      value: expect.stringContaining("0.13.24"),
    });
    server.event(ADA.number, { envelope: {} });
    await expect.poll(() => accounts.statuses()[0]?.error).toContain(`receives for ${ADA.number}`);
  });

  test("a server that is not signal-cli is reported", async () => {
    const host = recordingHost();
    const server = await startSignalServer({ accounts: [OWN] });
    const channel = await openChannel("signal", [signalAccount(`${server.url}/elsewhere`)], host);
    const accounts = await listenAt(channel, host);
    await expect
      .poll(() => accounts.statuses()[0]?.error ?? "")
      .toContain("not a signal-cli daemon (HTTP 404)");
  });

  test("SG4: an attachment is fetched only from the daemon, by its id, with limited size", async () => {
    const { says, server, heard } = await listening();
    const media = { name: "../../a.pdf", mimeType: "application/pdf", bytes: new Uint8Array(5_000) };
    await says({ chat: "direct", text: "see", media });
    const [message] = await heard(1);
    const load = (maxBytes: number) => message?.media[0]?.load(maxBytes, new AbortController().signal);
    // The file is larger than its reported size.
    server.attachments.set("file-1.pdf", new Uint8Array(50_000));
    expect(await load(5_000)).toMatchObject({ ok: false });
    expect(await load(49_999)).toMatchObject({ ok: false });
    expect(await load(50_000)).toMatchObject({ ok: true });
  });

  test("if the daemon no longer has an attachment, its download fails with a clear error", async () => {
    const { says, server, heard } = await listening();
    const media = { name: "a.pdf", mimeType: "application/pdf", bytes: new Uint8Array(10) };
    await says({ chat: "direct", text: "see", media });
    const [message] = await heard(1);
    server.attachments.clear();
    const loaded = await message?.media[0]?.load(1_000, new AbortController().signal);
    expect(loaded).toMatchObject({ ok: false, error: expect.stringContaining("could not be fetched") });
  });
});

describe("Signal: outgoing text", () => {
  test("markup becomes text styles at the positions that Signal expects", async () => {
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

  test("several numbers on one daemon each receive their own messages and send with their own number", async () => {
    const host = recordingHost();
    const server = await startSignalServer({ accounts: [OWN, ADA] });
    const second = signalAccount(server.url, { accountId: "second", number: ADA.number });
    const channel = await openChannel("signal", [signalAccount(server.url), second], host);
    await listenAt(channel, host);
    await expect.poll(() => server.listeners()).toBe(2);
    const dataMessage = dataOf("for the second");
    server.event(ADA.number, {
      envelope: { ...from(OWN, "Own"), timestamp: dataMessage.timestamp, dataMessage },
    });
    await expect.poll(() => host.received.length).toBe(1);
    const [message] = host.received;
    expect(message).toMatchObject({ accountId: "second", replyTo: { to: OWN.number, accountId: "second" } });
    const route = message?.replyTo ?? { channel: "signal", to: "" };
    await channel.deliver({ deliveryId: "1", sessionKey: "s", route, text: "x", part: 1, parts: 1 });
    await channel.typing?.(route);
    expect(server.sent).toMatchObject([{ account: ADA.number, to: OWN.number }]);
    expect(server.typed).toMatchObject([{ account: ADA.number, recipient: [OWN.number] }]);
  });

  test("if Signal requires a captcha, the retry waits as long as Signal says, and the outcome has no captcha token", async () => {
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

  test("if a call is refused, nothing was sent; if its connection breaks later, the outcome is unknown", async () => {
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

test("a file is sent unchanged with its name, its type and its caption", async () => {
  const { server, channel } = await ground(recordingHost());
  const bytes = Buffer.from(new Uint8Array(70_000).map((_, at) => at % 251));
  const file = { name: "Übersicht + 2.pdf", mimeType: "application/pdf", data: bytes };
  const send = (text: string) =>
    channel.deliver({
      ...{ deliveryId: "d-1", sessionKey: "agent:main:main", part: 1, parts: 1, text, file },
      route: { channel: "signal", to: ADA.number },
    });
  expect(await send("**The** plan")).toEqual({ kind: "sent" });
  expect(await send("")).toEqual({ kind: "sent" });
  expect(server.sent).toMatchObject([
    {
      message: "The plan",
      textStyle: ["0:3:BOLD"],
      file: { name: "Übersicht + 2.pdf", type: "application/pdf" },
    },
    { message: "" },
  ]);
  expect(server.sent[0]?.file?.bytes.equals(bytes)).toBe(true);
});
