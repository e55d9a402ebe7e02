// The encryption and the signature of Web Push, with the example of RFC 8291.

import { expect, test } from "vitest";
import { encryptFor, keyProblem } from "../../../src/features/push/web-push.ts";

/** From section 5 and appendix A of RFC 8291. */
const EXAMPLE = {
  p256dh: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
  auth: "BTBZMqHH6r4Tts7J_aSIgg",
};
const PRIVATE = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw";
const BODY =
  "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6Tlz" +
  "AC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN";

test("the example of RFC 8291 is encrypted as it says", () => {
  const text = "When I grow up, I want to be a watermelon";
  const salt = Buffer.from("DGv6ra1nlYgDCS1FRnbzlw", "base64url");
  const example = { privateKey: Buffer.from(PRIVATE, "base64url"), bytes: text.length };
  expect(encryptFor(EXAMPLE, text, salt, example).toString("base64url")).toBe(BODY);
});

test("texts of all lengths become messages of one length, which every push service takes", () => {
  const texts = ["", "ü", "x".repeat(3_992)];
  const lengths = texts.map((text) => encryptFor(EXAMPLE, text, Buffer.alloc(16)).length);
  expect(new Set(lengths)).toEqual(new Set([4_096]));
});

test.each([
  [{ ...EXAMPLE, auth: "c2hvcnQ" }, "auth must be 16 bytes"],
  [{ ...EXAMPLE, p256dh: EXAMPLE.p256dh.slice(4) }, "p256dh must be a point"],
  [{ ...EXAMPLE, p256dh: Buffer.alloc(65, 4).toString("base64url") }, "p256dh must be a point"],
])("keys that are no browser's are named: %#", (keys, problem) => {
  expect(keyProblem(EXAMPLE)).toBeUndefined();
  expect(keyProblem(keys)).toContain(problem);
});
