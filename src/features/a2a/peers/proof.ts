// Signs the requests of this gateway to its peers, and checks the requests of peers.
// PP1: a proof is valid for one request only: it names both gateways, the method, the path, the hash of the
//      body and the time. A thief can at most repeat the same request, which does nothing new.

import { createHash, createPrivateKey, createPublicKey, sign, verify } from "node:crypto";
import { fieldsOf, jsonOf } from "../../../core/json.ts";
import { type Code, fail, ok, type Result } from "../../../core/shapes/errors.ts";
import type { SigningKey } from "../key.ts";

/** Scheme of the Authorization header. */
const SCHEME = "Parley-Peer";
const SKEW_MAX_MS = 300_000;
const HEADER_MAX_CHARS = 2_048;
/** Separates these signatures from others with the same key. */
const DOMAIN = "parley-peer-request:";

export interface ProvenRequest {
  readonly method: string;
  readonly path: string;
}

interface Proof {
  readonly from: string;
  readonly to: string;
  readonly at: number;
  readonly method: string;
  readonly path: string;
  readonly body: string;
}

function hashOf(body: string | Uint8Array): string {
  return createHash("sha256").update(body).digest("base64url");
}

/** Returns the Authorization header for a request to the peer with the key `to`. */
export function peerProof(
  { privateKey, publicKey }: SigningKey,
  request: ProvenRequest & { readonly to: string; readonly body: string; readonly now: number },
): string {
  const { to, method, path, body, now } = request;
  const proof: Proof = { from: publicKey.kid, to, at: now, method, path, body: hashOf(body) };
  const text = Buffer.from(JSON.stringify(proof)).toString("base64url");
  const key = {
    key: createPrivateKey({ key: privateKey, format: "jwk" }),
    dsaEncoding: "ieee-p1363",
  } as const;
  return `${SCHEME} ${text}.${sign("sha256", Buffer.from(DOMAIN + text), key).toString("base64url")}`;
}

/** A proof whose signature was not checked yet. */
export interface GivenProof {
  readonly from: string;
  /** Checks everything but the body. The result checks the body. */
  check(
    key: Readonly<Record<string, unknown>>,
    expected: ProvenRequest & { readonly to: string; readonly now: number },
  ): Result<(body: Uint8Array) => Result<void>>;
}

function refuse(error: string, hint?: string, code: Code = "unauthorized"): Result<never> {
  return fail(code, `the request of the peer is refused: ${error}`, hint === undefined ? {} : { hint });
}

function checkFacts(
  proof: Partial<Proof>,
  expected: ProvenRequest & { readonly to: string; readonly now: number },
): Result<void> {
  const { to, at, method, path } = proof;
  if (to !== expected.to)
    return refuse(
      "it is for a gateway with another key",
      "Pair again: npx parley-gateway peer remove, then add.",
      "peer_unknown",
    );
  if (method !== expected.method || path !== expected.path) return refuse("it is for another request");
  const late = typeof at === "number" ? expected.now - at : Number.NaN;
  if (Math.abs(late) <= SKEW_MAX_MS) return ok(undefined);
  const seconds = Math.round(Math.abs(late) / 1000);
  return refuse(`its time differs by ${seconds} s; the limit is ${SKEW_MAX_MS / 1000} s`, "Set both clocks.");
}

/** Returns the proof in an Authorization header. Undefined: the header has another scheme. */
export function readProof(header: string | undefined): GivenProof | undefined {
  if (header === undefined || header.length > HEADER_MAX_CHARS) return undefined;
  const [, text = "", mark = ""] = /^Parley-Peer ([\w-]+)\.([\w-]+)$/i.exec(header) ?? [];
  if (text === "") return undefined;
  const proof: Partial<Proof> = fieldsOf(jsonOf(Buffer.from(text, "base64url")));
  return {
    from: typeof proof.from === "string" ? proof.from : "",
    check(jwk, expected) {
      const key = { key: createPublicKey({ key: jwk, format: "jwk" }), dsaEncoding: "ieee-p1363" } as const;
      const isGenuine = verify("sha256", Buffer.from(DOMAIN + text), key, Buffer.from(mark, "base64url"));
      if (!isGenuine) return refuse("its signature is wrong");
      const facts = checkFacts(proof, expected);
      if (!facts.ok) return facts;
      return ok((body) => (hashOf(body) === proof.body ? ok(undefined) : refuse("its body was changed")));
    },
  };
}
