// Owns the key to which the tokens of a sign-in are bound if the MCP server asks for it (DPoP). A stolen
// token is of no use without the key, which is kept in the server's file.

import { webcrypto } from "node:crypto";
import type { DpopSession } from "@modelcontextprotocol/client";

const CURVE = { name: "ECDSA", namedCurve: "P-256" };

type LibraryKey = DpopSession["keyPair"]["privateKey"];

export interface BoundKey {
  /** The private key. */
  readonly jwk: webcrypto.JsonWebKey;
  readonly thumbprint: string;
}

/** Returns whether the refusal of a request asks for a token that is bound to a key. */
export function asksForKey({ headers }: Response): boolean {
  return /(?:^|,)\s*DPoP\b/i.test(headers.get("www-authenticate") ?? "");
}

export async function makeKey(): Promise<BoundKey> {
  const { generateDpopKeyPair } = await import("@modelcontextprotocol/client");
  const { privateKey, thumbprint } = await generateDpopKeyPair({ extractable: true });
  return { jwk: await webcrypto.subtle.exportKey("jwk", privateKey), thumbprint };
}

/** Returns the library's signer of proofs. It remembers what servers want in them. */
export async function openSigner({ jwk, thumbprint }: BoundKey): Promise<DpopSession> {
  const { DpopSession } = await import("@modelcontextprotocol/client");
  const { crv = "", kty = "", x = "", y = "" } = jwk;
  const publicJwk = { crv, kty, x, y };
  const keys = await Promise.all([
    webcrypto.subtle.importKey("jwk", jwk, CURVE, false, ["sign"]),
    webcrypto.subtle.importKey("jwk", publicJwk, CURVE, true, ["verify"]),
  ]);
  // The types of Node and of browsers differ in names that no key here has.
  const [privateKey, publicKey] = keys as [LibraryKey, LibraryKey];
  return DpopSession.create({ keyPair: { alg: "ES256", thumbprint, publicJwk, privateKey, publicKey } });
}
