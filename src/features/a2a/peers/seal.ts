// Seals the messages of two gateways that pair. The pairing code is the key: without it nobody can read or
// write a message, so the keys in the messages are genuine. The code has 79 bits and is never sent, so it
// cannot be guessed from a recorded message either.

import { createCipheriv, createDecipheriv, createHash, hkdfSync } from "node:crypto";
import { jsonOf } from "../../../core/json.ts";
import { normalizeCode } from "../../../flows/delivery/pairing.ts";

const CIPHER = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** The side that wrote a message. An answer is bound to its request, so neither can be replaced. */
export type SealedAs = "request" | `answer:${string}`;

export function codeKeyOf(code: string): string {
  return createHash("sha256")
    .update(`parley-pairing:${normalizeCode(code)}`)
    .digest("base64url");
}

/** Returns how the answer to a sealed request is sealed. */
export function answerTo(request: string): SealedAs {
  return `answer:${createHash("sha256").update(request).digest("base64url")}`;
}

function cipherKey(codeKey: string, as: SealedAs): Uint8Array {
  return new Uint8Array(hkdfSync("sha256", codeKey, "", `parley-pairing-${as}`, 32));
}

/** Seals a value. `unique`: a text that is never used again, which makes the nonce. */
export function seal(codeKey: string, as: SealedAs, value: unknown, unique: string): string {
  const nonce = createHash("sha256").update(unique).digest().subarray(0, NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, cipherKey(codeKey, as), nonce);
  const text = Buffer.concat([cipher.update(JSON.stringify(value), "utf8"), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), text]).toString("base64url");
}

/** Returns the sealed value, or undefined if another code sealed it or it was changed. */
export function unseal(codeKey: string, as: SealedAs, text: string): unknown {
  const bytes = Buffer.from(text, "base64url");
  if (bytes.length <= NONCE_BYTES + TAG_BYTES) return undefined;
  const end = NONCE_BYTES + TAG_BYTES;
  const opener = createDecipheriv(CIPHER, cipherKey(codeKey, as), bytes.subarray(0, NONCE_BYTES));
  opener.setAuthTag(bytes.subarray(NONCE_BYTES, end));
  try {
    return jsonOf(Buffer.concat([opener.update(bytes.subarray(end)), opener.final()]));
  } catch {
    return undefined;
  }
}
