// Owns the key of a deployment: it signs the cards of agents and the requests to peers. All processes of a
// store share it. It is made when it is first needed.

import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type JsonWebKey,
} from "node:crypto";
import { jsonOf } from "../../core/json.ts";
import type { Store } from "../../store/sql.ts";

const KEY_NAME = "a2a-card";
export const ALGORITHM = "ES256";

export interface SigningKey {
  readonly privateKey: JsonWebKey;
  /** The public key, with its id and its use. */
  readonly publicKey: JsonWebKey & { readonly kid: string };
}

/** Returns the thumbprint (RFC 7638) of a key on an elliptic curve. */
function thumbprint({ crv, kty, x, y }: JsonWebKey): string {
  return createHash("sha256").update(JSON.stringify({ crv, kty, x, y })).digest("base64url");
}

/** Returns the key of this deployment. */
export async function signingKey(store: Store, now: number): Promise<SigningKey> {
  const keys = store.db.selectFrom("gateway_keys").select("key_json").where("name", "=", KEY_NAME);
  let stored = await keys.executeTakeFirst();
  if (stored === undefined) {
    const made = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey.export({ format: "jwk" });
    const row = { name: KEY_NAME, key_json: JSON.stringify(made), created_at: now };
    await store.transaction(async (tx) => {
      const insert = tx.insertInto("gateway_keys").values(row);
      await insert.onConflict((conflict) => conflict.column("name").doNothing()).execute();
    });
    // Another process may have stored its key first.
    stored = (await keys.executeTakeFirst()) ?? row;
  }
  const privateKey = jsonOf(stored.key_json) as JsonWebKey;
  const shared = createPublicKey(createPrivateKey({ key: privateKey, format: "jwk" }));
  const jwk = shared.export({ format: "jwk" });
  return { privateKey, publicKey: { ...jwk, kid: thumbprint(jwk), alg: ALGORITHM, use: "sig" } };
}

/** Returns the public key in JSON that another gateway sent. Undefined: it is no key that we can use. */
export function publicKeyIn(given: unknown): SigningKey["publicKey"] | undefined {
  try {
    const read = createPublicKey({ key: given as JsonWebKey, format: "jwk" }).export({ format: "jwk" });
    if (read.kty !== "EC" || read.crv !== "P-256") return undefined;
    return { ...read, kid: thumbprint(read) };
  } catch {
    return undefined;
  }
}
