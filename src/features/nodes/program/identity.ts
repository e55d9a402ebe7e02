// Reads or creates the key that identifies this machine as a node, in a file that only its owner can read.
// NI1: the private key never leaves the machine; only signatures are sent.
// NI2: it is an error if the file is damaged or other users can read it. No new key is made then, because it
//      would make this machine a new device.

import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
} from "node:crypto";
import { readFile, stat, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { othersReach } from "../../../config/file-mode.ts";
import type { DeviceKey } from "../../../contract/client/node.ts";
import { fail, ok, type Result } from "../../../core/shapes/errors.ts";
import { ensureFolder } from "../../../world/folders.ts";

const KEY_BYTES = 32;

function deviceOf(key: KeyObject): DeviceKey {
  const raw = createPublicKey(key).export({ format: "der", type: "spki" }).subarray(-KEY_BYTES);
  const id = createHash("sha256").update(raw).digest("hex");
  const publicKey = raw.toString("base64url");
  return {
    id,
    publicKey,
    prove({ client, role = "operator", scopes = [], token = "", nonce, at }) {
      const platform = client.platform.trim().toLowerCase();
      const said = [id, client.id, client.mode, role, scopes.join(","), at, token, nonce, platform, ""];
      const signature = sign(null, Buffer.from(["v3", ...said].join("|")), key).toString("base64url");
      return { id, publicKey, signature, signedAt: at, nonce };
    },
  };
}

function failDamaged(file: string): Result<never> {
  return fail("invalid_config", `${file} does not contain a valid node key`, {
    hint: "Move it away to create a new key, then pair the node again.",
  });
}

async function readKey(file: string): Promise<Result<DeviceKey> | undefined> {
  let text: string;
  try {
    if (othersReach((await stat(file)).mode)) {
      return fail("invalid_config", `${file} is readable by other users`, {
        hint: `chmod 600 ${file}`,
      });
    }
    text = await readFile(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    return fail("invalid_config", `${file} could not be read: ${(error as Error).message}`);
  }
  try {
    const { privateKey } = JSON.parse(text) as { privateKey?: unknown };
    if (typeof privateKey !== "string") return failDamaged(file);
    const key = createPrivateKey(privateKey);
    return key.asymmetricKeyType === "ed25519" ? ok(deviceOf(key)) : failDamaged(file);
  } catch {
    // Do not quote the file in the error: the file may contain part of a key.
    return failDamaged(file);
  }
}

/** Returns the key in the file, and creates it if the file does not exist. */
export async function nodeIdentity(file: string): Promise<Result<DeviceKey>> {
  const known = await readKey(file);
  if (known !== undefined) return known;
  const { privateKey } = generateKeyPairSync("ed25519");
  const pem = privateKey.export({ format: "pem", type: "pkcs8" }).toString();
  try {
    await ensureFolder(dirname(file));
    // Never overwrite a file: if two processes start at the same time, both use the key that was written
    // first.
    await writeFile(file, `${JSON.stringify({ privateKey: pem }, undefined, 2)}\n`, {
      mode: 0o600,
      flag: "wx",
    });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") {
      return fail("invalid_config", `${file} could not be written: ${(error as Error).message}`);
    }
  }
  return (await readKey(file)) ?? failDamaged(file);
}
