// Verifies that a client holds a device key: an Ed25519 signature that covers the connection's challenge.
// The device id is the SHA-256 of the public key, so a device can't claim another's id.
// A signature without the challenge's nonce is valid for a few minutes only, and never replaces the token.

import { createHash, createPublicKey, type KeyObject, verify } from "node:crypto";
import type { ConnectParams, DeviceProof } from "../contract/frames.ts";
import { fail, ok, type Result } from "../core/shapes/errors.ts";

/** DER prefix of a raw Ed25519 public key. */
const SPKI_PREFIX = Buffer.from("302a300506032b6570032100", "hex");
const RAW_KEY_BYTES = 32;
/** Maximum difference between `signedAt` and the gateway's clock, if the signature has no nonce. */
const SKEW_MAX_MS = 600_000;

function publicKeyOf(text: string): KeyObject | undefined {
  try {
    if (text.includes("BEGIN")) {
      const key = createPublicKey(text);
      return key.asymmetricKeyType === "ed25519" ? key : undefined;
    }
    const raw = Buffer.from(text, "base64url");
    if (raw.length !== RAW_KEY_BYTES) return undefined;
    return createPublicKey({ key: Buffer.concat([SPKI_PREFIX, raw]), format: "der", type: "spki" });
  } catch {
    return undefined;
  }
}

function rawOf(key: KeyObject): Buffer {
  return key.export({ format: "der", type: "spki" }).subarray(SPKI_PREFIX.length);
}

function idOf(key: KeyObject): string {
  return createHash("sha256").update(rawOf(key)).digest("hex");
}

function lower(value: unknown): string {
  return typeof value === "string" ? value.trim().toLowerCase() : "";
}

/** Returns the texts that a protocol client may have signed, newest form first. */
function signedTexts(params: ConnectParams, proof: DeviceProof): string[] {
  const { client, auth } = params;
  const tokens = new Set([auth?.token ?? "", auth?.deviceToken ?? "", ""]);
  const texts: string[] = proof.nonce === undefined ? [] : [proof.nonce];
  for (const token of tokens) {
    const common = [proof.id, client.id, client.mode, params.role ?? "operator"];
    const end = [(params.scopes ?? []).join(","), String(proof.signedAt), token];
    if (proof.nonce === undefined) {
      texts.push(["v1", ...common, ...end].join("|"));
      continue;
    }
    const machine = [lower(client.platform), lower(Reflect.get(client, "deviceFamily"))];
    texts.push(["v3", ...common, ...end, proof.nonce, ...machine].join("|"));
    texts.push(["v2", ...common, ...end, proof.nonce].join("|"));
  }
  return texts;
}

/**
 * Verifies `params.device` against this connection's challenge. Returns the key as raw bytes, however the
 * client encoded it.
 */
export function verifyDevice(
  params: ConnectParams,
  challenge: string,
  now: number,
): Result<DeviceProof | undefined> {
  const proof = params.device;
  if (proof === undefined) return ok(undefined);
  const refuse = (why: string) => fail("unauthorized", `device: ${why}`, { details: { device: proof.id } });
  const key = publicKeyOf(proof.publicKey);
  if (key === undefined) return refuse("publicKey is not an Ed25519 key (32 raw bytes in base64url, or PEM)");
  if (idOf(key) !== proof.id.toLowerCase()) return refuse("id is not the SHA-256 of publicKey");
  if (proof.nonce !== undefined && proof.nonce !== challenge) {
    return refuse("nonce differs from this connection's challenge");
  }
  if (proof.nonce === undefined && Math.abs(now - proof.signedAt) > SKEW_MAX_MS) {
    return refuse("signedAt is too far from the gateway's clock; sign the challenge's nonce instead");
  }
  const signature = Buffer.from(proof.signature, "base64url");
  const good = signedTexts(params, proof).some((text) => verify(null, Buffer.from(text), key, signature));
  if (!good) return refuse("the signature does not match the challenge");
  return ok({ ...proof, id: idOf(key), publicKey: rawOf(key).toString("base64url") });
}
