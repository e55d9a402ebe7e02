// Parses messages of Signal and formats texts for it, without a daemon.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readEnvelope } from "../../../src/features/signal/envelope.ts";
import { outcomeOf, recipientOf, styled } from "../../../src/features/signal/send.ts";
import { ADA, dataOf, from, GROUP, OWN } from "../../kit/platforms/signal-people.ts";

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

  test("mentions are replaced by names; a mention of the agent at the beginning is removed", () => {
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

  test("a reply to the agent's own message is a mention; other replies name the author of the quoted message", () => {
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

  test("a person who hides the phone number is identified by id; if number and id are known, both are reported", () => {
    expect(read({ message: "x" })?.sender).toMatchObject({ id: ADA.number, alsoKnownAs: [ADA.aci] });
    const hidden = read({ message: "x" }, from({ number: null, aci: ADA.aci }));
    expect(hidden).toMatchObject({
      sender: { id: ADA.aci },
      chat: { id: ADA.aci },
      replyTo: { to: ADA.aci },
    });
  });

  test("recordings, stickers, contacts, polls and view-once pictures become readable notes", () => {
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
    expect(once).toMatchObject({ media: [], text: "[a view-once picture, which was not kept]" });
    expect(
      read({ message: "all of it", attachments: [{ id: "t", contentType: "text/x-signal-plain" }] })?.media,
    ).toEqual([]);
  });

  test("EN1: no JSON value makes the parser throw", () => {
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

describe("Signal: outgoing text", () => {
  test("SS2: if its URLs would make a text too long, the text is sent unchanged", () => {
    const long = `|a|b|\n|-|-|\n${"|x|y|\n".repeat(320)}`;
    expect(styled(long.slice(0, 2_000)).message.length).toBeLessThanOrEqual(2_000);
  });

  test("the recipient is derived from an address", () => {
    expect(recipientOf(ADA.number)).toEqual({ recipient: [ADA.number] });
    expect(recipientOf(ADA.aci)).toEqual({ recipient: [ADA.aci] });
    expect(recipientOf(GROUP)).toEqual({ groupId: GROUP });
    for (const to of ["", "ada", "+1", "-a", "--help", "491700000002", `${GROUP}${GROUP}`, "a b"]) {
      expect(recipientOf(to)).toBeUndefined();
    }
  });

  test("I5: a text is retried only if it was certainly not sent", () => {
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
});
