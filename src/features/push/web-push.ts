// Encrypts a message for a browser (RFC 8291, aes128gcm) and signs its request to the push service (VAPID,
// RFC 8292). The service sees neither the text nor its length.

import { createCipheriv, createECDH, createPublicKey, hkdfSync, type JsonWebKey, sign } from "node:crypto";

const CURVE = "prime256v1";
/** Size of the only record. A push service takes at least as many bytes. */
const RECORD_BYTES = 4_096;
/** Maximum length of a text: the record without header, mark of the end and checksum. */
const TEXT_BYTES_MAX = RECORD_BYTES - 86 - 17;
/** Time for which a signature counts. A service may refuse one of more than a day. */
const SIGNED_SECONDS = 12 * 3_600;

/** The keys of a browser's subscription, in base64url. */
export interface BrowserKeys {
  readonly p256dh: string;
  readonly auth: string;
}

const hkdf = (salt: Buffer, key: Buffer, info: string | Buffer, bytes: number): Buffer =>
  Buffer.from(hkdfSync("sha256", key, salt, info, bytes));

/** Returns why keys cannot be those of a browser. */
export function keyProblem({ p256dh, auth }: BrowserKeys): string | undefined {
  if (Buffer.from(auth, "base64url").length !== 16) return "auth must be 16 bytes in base64url";
  const point = Buffer.from(p256dh, "base64url");
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((part) => part.toString("base64url"));
  try {
    if (point.length !== 65 || point[0] !== 4) throw new Error("not an uncompressed point");
    createPublicKey({ key: { kty: "EC", crv: "P-256", x, y } as JsonWebKey, format: "jwk" });
    return undefined;
  } catch {
    return "p256dh must be a point on the curve P-256, as 65 bytes in base64url";
  }
}

/**
 * Encrypts a text. Texts of all lengths become equally long. `salt`: 16 bytes that are used once. `example`:
 * replaces what makes each message different, and the padding.
 */
export function encryptFor(
  { p256dh, auth }: BrowserKeys,
  text: string,
  salt: Buffer,
  example?: { readonly privateKey: Buffer; readonly bytes: number },
): Buffer {
  const own = createECDH(CURVE);
  if (example === undefined) own.generateKeys();
  else own.setPrivateKey(example.privateKey);
  const theirKey = Buffer.from(p256dh, "base64url");
  const info = Buffer.concat([Buffer.from("WebPush: info\0"), theirKey, own.getPublicKey()]);
  const key = hkdf(Buffer.from(auth, "base64url"), own.computeSecret(theirKey), info, 32);
  const nonce = hkdf(salt, key, "Content-Encoding: nonce\0", 12);
  const cipher = createCipheriv("aes-128-gcm", hkdf(salt, key, "Content-Encoding: aes128gcm\0", 16), nonce);
  const plain = Buffer.alloc((example?.bytes ?? TEXT_BYTES_MAX) + 1);
  // The byte 2 ends the text in the last record.
  plain[plain.write(text)] = 2;
  const header = Buffer.alloc(5);
  header.writeUInt32BE(RECORD_BYTES);
  header[4] = 65;
  return Buffer.concat([
    ...[salt, header, own.getPublicKey(), cipher.update(plain)],
    ...[cipher.final(), cipher.getAuthTag()],
  ]);
}

/** Returns the public key as browsers need it: the point in base64url. */
export function publicPoint({ x = "", y = "" }: JsonWebKey): string {
  const part = (text: string): Buffer => Buffer.from(text, "base64url");
  return Buffer.concat([Buffer.of(4), part(x), part(y)]).toString("base64url");
}

/** Returns the header that says who sends to an endpoint. */
export function vapidHeader(
  key: JsonWebKey,
  { endpoint, contact, nowMs }: { endpoint: string; contact: string; nowMs: number },
): string {
  const json = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  const exp = Math.floor(nowMs / 1_000) + SIGNED_SECONDS;
  const claim = { aud: new URL(endpoint).origin, exp, sub: contact };
  const signed = `${json({ typ: "JWT", alg: "ES256" })}.${json(claim)}`;
  const mark = sign("sha256", Buffer.from(signed), { key, format: "jwk", dsaEncoding: "ieee-p1363" });
  return `vapid t=${signed}.${mark.toString("base64url")}, k=${publicPoint(key)}`;
}
