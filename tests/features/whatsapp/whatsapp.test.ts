// WhatsApp with the Cloud API: the contract of all channels, incoming web hooks, and the meaning of errors.

import { expect, test } from "vitest";
import {
  type ChannelGround,
  channelContract,
  type HostParts,
  listenAt,
  recordingHost,
  type Said,
} from "../../contract/channel.ts";
import { ACCESS_TOKEN, graphError, seenText, webHook } from "../../kit/platforms/whatsapp-server.ts";
import { fakeWorld } from "../../kit/world.ts";
import { CONTACT, direct, GROUP, inGroup, MENTION, message, openGround, PERSON, said, send } from "./kit.ts";

async function contractGround(host: HostParts): Promise<ChannelGround> {
  const { server, channel, hookUrl, post } = await openGround(host);
  let newest: object | undefined;
  const routeOf = (chat: Said["chat"]) => (chat === "direct" ? direct : inGroup);
  // WhatsApp accepts texts only to people who have written before.
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

channelContract("whatsapp", contractGround, ["threads", "edits"]);

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
  ["it does not know itself", 500, graphError(1), { kind: "unknown", error: /refused the request \(1/ }],
  ["something in between fails", 502, "<html>Bad Gateway</html>", { kind: "unknown", error: /502/ }],
  ["something in between is full", 503, "busy", { kind: "retry", error: /503/ }],
  ["an address that has moved", 301, "", { kind: "refused", error: /graphUrl/ }],
  [
    "a success that is none",
    200,
    "<html>Log in to the hotel's network</html>",
    { kind: "unknown", error: /no message id/ },
  ],
  ["an answer without an end", 200, "x".repeat(100_000), { kind: "unknown", error: /longer than/ }],
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

test("CH2: if the platform repeats the token in an error, the token is redacted", async () => {
  const { channel, server } = await openGround();
  server.fail(400, graphError(190, `Malformed access token ${ACCESS_TOKEN}`));
  const outcome = await send(channel, "hello");
  expect(outcome).toMatchObject({ kind: "retry" });
  expect(JSON.stringify(outcome)).not.toContain(ACCESS_TOKEN.slice(0, 12));
  const { channel: other } = await openGround(undefined, [{ accessToken: "a\r\nx-evil: 1" }]);
  expect(await send(other, "hello")).toMatchObject({ kind: "retry", error: /the token holds characters/ });
});

const PLACES: [string, object][] = [
  ["+1 (650) 555-1234", { recipient_type: "individual", to: PERSON }],
  [PERSON, { recipient_type: "individual", to: PERSON }],
  [GROUP, { recipient_type: "group", to: GROUP }],
];
test.each(PLACES)("WL1: %s is accepted as a recipient", async (to, wanted) => {
  const { channel, server } = await openGround();
  expect(await send(channel, "hello", { ...direct, to })).toEqual({ kind: "sent" });
  expect(server.asked[0]).toMatchObject(wanted);
});

test.each(["", "12", "me\nyou", "a b", "../../me", "x".repeat(400)])(
  "WL1: rejects %j as a recipient",
  async (to) => {
    const { channel, server } = await openGround();
    expect(await send(channel, "hello", { ...direct, to })).toMatchObject({
      kind: "refused",
      error: /neither a number/,
    });
    expect(server.asked).toEqual([]);
  },
);

test("WA1: if a token becomes invalid, the account reports the refused send, and checks the token again later", async () => {
  const world = fakeWorld();
  const host = Object.assign(recordingHost(), { world });
  const { channel, server } = await openGround(host);
  const accounts = await listenAt(channel, host);
  const state = () => accounts.statuses()[0];
  await expect.poll(() => state()?.state).toBe("ready");
  server.fail(401, graphError(190, "Session has expired"));
  await send(channel, "hello");
  await expect.poll(() => state()?.state).toBe("retrying");
  expect(state()?.error).toMatch(/make a new one/);
  // Advances the clock in steps, because the platform must answer between them.
  while (state()?.state === "retrying") await world.advance(1_000);
  await expect.poll(() => state()?.state).toBe("ready");
});

test("WS1: a text that was not delivered is reported once in the log, and also by the test of the account", async () => {
  const world = fakeWorld();
  const { channel, post } = await openGround(Object.assign(recordingHost(), { world }));
  expect(await channel.test?.("default")).toMatchObject({
    ok: true,
    value: "Parley Test (+1 555-078-3881); its web hook has not been called since this gateway started",
  });
  const errors = [
    { code: 131047, title: "Re-engagement message", error_data: { details: "More than 24 hours" } },
  ];
  const status = { id: "wamid.out1", status: "failed", timestamp: "1", recipient_id: PERSON, errors };
  const fine = { id: "wamid.out2", status: "delivered", timestamp: "1", recipient_id: PERSON };
  await post({ statuses: [fine, status, null, { status: "failed" }] });
  await post({ statuses: [status] });
  const warned = world.logged.filter(({ text }) => text.includes("did not deliver"));
  expect(warned).toMatchObject([{ level: "warn", fields: { account: "whatsapp:default", to: PERSON } }]);
  expect(warned[0]?.text).toContain("has to write first");
  const tested = await channel.test?.("default");
  expect(tested?.ok === true && tested.value).toMatch(
    /called 0 min ago; the last undelivered text: .* has to write first/,
  );
  expect(await channel.test?.("nobody")).toMatchObject({ ok: false, code: "channel_unknown" });
});

test("WA2: several numbers of one app share a web hook; messages for another app's number are ignored", async () => {
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

test("a picture is uploaded and sent as such, another file as a document with its name", async () => {
  const { server, channel } = await openGround();
  const bytes = Buffer.from(new Uint8Array(70_000).map((_, at) => at % 251));
  const give = (name: string, mimeType: string, text: string) =>
    channel.deliver({
      ...{ deliveryId: "d-1", sessionKey: "agent:main:main", part: 1, parts: 1, text, route: direct },
      file: { name, mimeType, data: bytes },
    });
  expect(await give("plan.png", "image/png", "**The** plan")).toEqual({ kind: "sent" });
  expect(await give("Übersicht 2.pdf", "application/pdf", "")).toEqual({ kind: "sent" });
  expect(server.asked).toMatchObject([
    { type: "image", image: { id: "upload1", caption: "*The* plan" } },
    { type: "document", document: { id: "upload2", filename: "Übersicht 2.pdf" } },
  ]);
  expect(server.asked[1]?.document).not.toHaveProperty("caption");
  const uploaded = server.media.get("upload1");
  expect(uploaded?.mimeType).toBe("image/png");
  expect(Buffer.from(uploaded?.bytes ?? []).equals(bytes)).toBe(true);
});

test("I5: an upload whose answer is lost is repeated, but not the message with the file", async () => {
  const { server, channel } = await openGround();
  const file = { name: "a.pdf", mimeType: "application/pdf", data: Buffer.from("x") };
  const send = () =>
    channel.deliver({
      ...{
        deliveryId: "d-1",
        sessionKey: "agent:main:main",
        part: 1,
        parts: 1,
        text: "",
        route: direct,
        file,
      },
    });
  server.uploads.push((response) => void response.destroy());
  expect(await send()).toMatchObject({ kind: "retry" });
  server.next((response, taken) => {
    taken();
    response.destroy();
  });
  expect(await send()).toMatchObject({ kind: "unknown" });
  expect(server.sent).toHaveLength(1);
});

test("WA3: the messages of a web hook wait for files of their own chat only, and all must be stored", async () => {
  const host = recordingHost();
  const { post } = await openGround(host);
  const slow = Promise.withResolvers<void>();
  const receive = host.receive.bind(host);
  let hasFailed = false;
  host.receive = async (one) => {
    if (one.text === "slow") await slow.promise;
    if (one.text === "fails" && !hasFailed) {
      hasFailed = true;
      throw new Error("it cannot be stored");
    }
    await receive(one);
  };
  const other = "4917012345";
  const messages = [said("slow"), said("after slow"), said("fails", { from: "4917099999" })];
  messages.push(said("other", { from: other }), said("later", { from: other }));
  const posted = post({ contacts: [CONTACT], messages });
  const texts = () => host.received.map(({ text }) => text);
  await expect.poll(texts).toEqual(["other", "later"]);
  slow.resolve();
  // After the failure, the platform posts the whole web hook again.
  expect(await posted).toEqual([503, 200]);
  expect(texts().slice(0, 4)).toEqual(["other", "later", "slow", "after slow"]);
  expect(texts()).toContain("fails");
});
