// Turns the texts of live events into the pieces of a stream.

import fc from "fast-check";
import { expect, test } from "vitest";
import { TextPieces } from "../../../src/gateway/http/text-pieces.ts";
import { deltas } from "../../kit/live-text.ts";
import { plainRedactor } from "../../kit/redactor.ts";

/** Returns a function that converts texts to pieces; each text is the whole text so far. */
function open() {
  const pieces = new TextPieces(plainRedactor);
  const delta = deltas();
  return {
    next: (text: string) => pieces.next(delta(text)),
    close: (text?: string) => pieces.close(text),
    last: () => pieces.last(),
    end: (text: string) => pieces.end(text),
    get whole() {
      return pieces.whole;
    },
  };
}

const KEY = "sk-abcdefghij0123456789abcdefghij";

test("TX1: for any texts, the streamed pieces of a message together are its redacted text", () => {
  const text = fc.string({
    unit: fc.constantFrom("a", " ", "\n", "ü", "語", "🙂", "sk-", "9"),
    maxLength: 60,
  });
  fc.assert(
    fc.property(text, fc.array(fc.nat(60), { maxLength: 8 }), (whole, cuts) => {
      const pieces = open();
      const sent = cuts.toSorted((a, b) => a - b).map((cut) => pieces.next(whole.slice(0, cut)));
      sent.push(pieces.end(whole));
      expect(sent.join("")).toBe(plainRedactor.mask(whole));
      expect(pieces.whole).toBe(sent.join(""));
    }),
  );
});

test("TX1: if a resumed run writes the same text, the stream continues at the same position", () => {
  const pieces = open();
  const sent = ["Hello w", "Hello world and", "He", "Hello world", "Hello world and more "].map((text) =>
    pieces.next(text),
  );
  sent.push(pieces.end("Hello world and more words"));
  expect(sent.join("")).toBe("Hello world and more words");
});

test("TX1: if a resumed run writes a different text, that text begins after a blank line", () => {
  const pieces = open();
  const sent = ["Hello world ", "Hel", "Help is "].map((text) => pieces.next(text));
  sent.push(pieces.end("Help is near"));
  expect(sent.join("")).toBe("Hello world \n\nHelp is near");
});

test("TX1: if a final text is shorter than the streamed one, it is sent completely", () => {
  const pieces = open();
  const sent = [pieces.next("Hello world "), pieces.end("Hello")];
  expect(sent.join("")).toBe("Hello world \n\nHello");
});

test("text before a tool call is kept, and the next message begins after a blank line", () => {
  const pieces = open();
  const sent = [
    pieces.next("I look"),
    pieces.close(),
    pieces.close(),
    pieces.next("I"),
    pieces.end("I looked"),
  ];
  expect(sent.join("")).toBe("I look\n\nI looked");
  const silent = open();
  expect([silent.close(), silent.next("Done"), silent.end("Done.")].join("")).toBe("Done.");
  expect(open().end("")).toBe("");
});

test("TX3: a message is sent once if its call begins before it is stored", () => {
  const pieces = open();
  const sent = [pieces.next("I look"), pieces.close(), pieces.close("I look"), pieces.next("Done")];
  sent.push(pieces.end("Done."));
  expect(sent.join("")).toBe("I look\n\nDone.");
});

test("TX3: messages that are stored while a later one is written are not sent again", () => {
  const pieces = open();
  const sent = [pieces.next("one"), pieces.close(), pieces.next("two"), pieces.close(), pieces.next("thr")];
  for (const text of ["", "one", "two"]) sent.push(pieces.close(text));
  sent.push(pieces.next("three"), pieces.end("three"));
  expect(sent.join("")).toBe("one\n\ntwo\n\nthree");
});

test("TX3: a run that ends after its call adds nothing, but a last message with the same text is sent", () => {
  const called = open();
  const sent = [called.next("Done."), called.close(), called.close("Done."), called.end("Done.")];
  expect(sent.join("")).toBe("Done.");
  const again = open();
  const both = [again.next("Done."), again.close("Done.")];
  again.last();
  expect([...both, again.end("Done.")].join("")).toBe("Done.\n\nDone.");
});

test("I14, TX2: no part of a credential is sent before it can be redacted", () => {
  const text = `The key is ${KEY} and that is all.`;
  for (let step = 1; step <= 7; step += 1) {
    const pieces = open();
    const sent: string[] = [];
    for (let cut = 0; cut < text.length; cut += step) sent.push(pieces.next(text.slice(0, cut)));
    sent.push(pieces.end(text));
    expect(sent.join("")).toBe("The key is [redacted] and that is all.");
  }
});

test("I14: if the first line of a private key was already sent, the rest of the key is redacted", () => {
  const block = `-----BEGIN PRIVATE KEY-----\n${"MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n".repeat(3)}-----END PRIVATE KEY-----`;
  const text = `Here:\n${block}\nKeep it.`;
  const pieces = open();
  const sent: string[] = [];
  for (let cut = 0; cut < text.length; cut += 3) sent.push(pieces.next(text.slice(0, cut)));
  sent.push(pieces.end(text));
  const whole = sent.join("");
  expect(whole).not.toContain("MIIE");
  expect(whole.endsWith("Keep it.")).toBe(true);
});
