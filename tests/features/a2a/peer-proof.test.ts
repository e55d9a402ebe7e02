// Proofs of requests to peers, and sealed messages of a pairing.

import { createPrivateKey, generateKeyPairSync } from "node:crypto";
import { expect, test } from "vitest";
import { publicKeyIn, type SigningKey } from "../../../src/features/a2a/key.ts";
import { peerProof, readProof } from "../../../src/features/a2a/peers/proof.ts";
import { answerTo, codeKeyOf, seal, unseal } from "../../../src/features/a2a/peers/seal.ts";

function newKey(): SigningKey {
  const privateKey = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey.export({ format: "jwk" });
  const { d: _, ...known } = createPrivateKey({ key: privateKey, format: "jwk" }).export({ format: "jwk" });
  const publicKey = publicKeyIn(known);
  if (publicKey === undefined) throw new Error("no key");
  return { privateKey, publicKey };
}

const near = newKey();
const far = newKey();
const REQUEST = { method: "POST", path: "/a2a/research", to: far.publicKey.kid, now: 1_000_000 };
const BODY = Buffer.from("a body");

/** Returns the outcome of a request, with changes on the way. */
function outcome(change: Partial<typeof REQUEST> & { body?: string; key?: object } = {}): string {
  const { body = "a body", key = near.publicKey, ...rest } = change;
  const proof = readProof(peerProof(near, { ...REQUEST, body: "a body" }));
  expect(proof?.from).toBe(near.publicKey.kid);
  const checked = proof?.check(key as Readonly<Record<string, unknown>>, { ...REQUEST, ...rest });
  if (!checked?.ok) return checked?.error ?? "";
  const whole = checked.value(Buffer.from(body));
  return whole.ok ? "ok" : whole.error;
}

test("PP1: a proof is valid for one request, one pair of gateways and a short time", () => {
  expect(outcome()).toBe("ok");
  expect(outcome({ now: REQUEST.now + 299_000 })).toBe("ok");
  expect(outcome({ now: REQUEST.now - 301_000 })).toContain("its time differs by 301 s");
  expect(outcome({ now: REQUEST.now + 301_000 })).toContain("its time differs by 301 s");
  expect(outcome({ path: "/a2a/main" })).toContain("another request");
  expect(outcome({ method: "GET" })).toContain("another request");
  expect(outcome({ to: near.publicKey.kid })).toContain("another key");
  expect(outcome({ body: "another body" })).toContain("its body was changed");
  expect(outcome({ key: far.publicKey })).toContain("its signature is wrong");
  expect(BODY.length).toBeGreaterThan(0);
});

test.each(["", "Bearer x", "Parley-Peer x", "Parley-Peer .", `Parley-Peer ${"a".repeat(3_000)}.b`])(
  "a header that is no proof is none: %s",
  (header) => {
    expect(readProof(header)).toBeUndefined();
  },
);

test("a key of another kind, or with missing parts, is no key of a peer", () => {
  const { publicKey } = generateKeyPairSync("ed25519");
  for (const given of [undefined, {}, { kty: "EC" }, publicKey.export({ format: "jwk" })])
    expect(publicKeyIn(given)).toBeUndefined();
});

test("PE1: a sealed message opens with its code only, and an answer with its own request only", () => {
  const key = codeKeyOf("abcd-efgh-jkmn-pqrs");
  expect(codeKeyOf("ABCDEFGH JKMNPQRS")).toBe(key);
  const request = seal(key, "request", { n: 1 }, "one");
  expect(unseal(key, "request", request)).toEqual({ n: 1 });
  expect(unseal(codeKeyOf("AAAA"), "request", request)).toBeUndefined();
  const answer = seal(key, answerTo(request), { n: 2 }, "two");
  expect(unseal(key, answerTo(request), answer)).toEqual({ n: 2 });
  expect(unseal(key, answerTo("another"), answer)).toBeUndefined();
  expect(unseal(key, "request", answer)).toBeUndefined();
  for (const text of ["", "AAAA", `${request}A`, request.slice(0, -2)])
    expect(unseal(key, "request", text)).toBeUndefined();
});
