// Owns the files with the sign-ins at MCP servers, one for each server. They contain tokens, so only their
// owner may read them. The gateway and the command line both read and write them.

import { readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type {
  OAuthDiscoveryState,
  StoredOAuthClientInformation,
  StoredOAuthTokens,
} from "@modelcontextprotocol/client";
import { isObject, jsonOf } from "../../../core/json.ts";
import { ensureFolder } from "../../../world/folders.ts";
import type { BoundKey } from "./bound-key.ts";

/** Facts of a refusal: what the next sign-in asks for. */
export interface Challenge {
  readonly scope?: string;
  readonly resourceMetadataUrl?: string;
}

/** A sign-in that a person has begun. */
export interface Pending extends Challenge {
  /** ms since 1970. */
  readonly begunAt: number;
  readonly state: string;
  readonly verifier: string;
  readonly discovery?: OAuthDiscoveryState;
}

export interface SignInRecord {
  /** The address of the server. The record is not used for another one. */
  readonly url: string;
  /** The address to which the browser comes back, with which the client was registered. */
  readonly redirectUrl?: string;
  readonly client?: StoredOAuthClientInformation;
  readonly tokens?: StoredOAuthTokens;
  /** The key to which the tokens are bound. */
  readonly key?: BoundKey;
  readonly challenge?: Challenge;
  readonly pending?: Pending;
}

/** Changes of a record. A field that is undefined is removed. */
type Changes = { readonly [K in keyof SignInRecord]?: SignInRecord[K] | undefined };

/** Tokens that are kept for redaction: a call may still use those before the last refresh. */
const SECRETS_MAX = 12;

export class SignInFile {
  /** The newest secrets that were read or written. */
  secrets: readonly string[] = [];
  /** True if the record that was read or written last has a challenge. */
  isChallenged = false;
  readonly #folder: string;
  readonly #path: string;
  readonly #url: string;
  readonly #uuid: () => string;

  /** `dir`: the folder of the store. */
  constructor(
    { dir, uuid }: { readonly dir: string; uuid(): string },
    { name, url }: { readonly name: string; readonly url: string },
  ) {
    this.#uuid = uuid;
    this.#folder = join(dir, "mcp-sign-ins");
    this.#path = join(this.#folder, `${name}.json`);
    this.#url = url;
  }

  async read(): Promise<SignInRecord> {
    const text = await readFile(this.#path).catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return undefined;
      throw error;
    });
    const record = text === undefined ? undefined : jsonOf(text);
    const known = isObject(record) && record.url === this.#url ? record : { url: this.#url };
    this.#learn(known as unknown as SignInRecord);
    return known as unknown as SignInRecord;
  }

  #learn({ tokens, client, challenge }: SignInRecord): void {
    this.isChallenged = challenge !== undefined;
    const found = [client?.client_secret, tokens?.access_token, tokens?.refresh_token];
    const all = [...this.secrets, ...found.flatMap((value) => value ?? [])];
    // The last of equal ones stays, so that the current ones are never dropped.
    this.secrets = [...new Set(all.reverse())].slice(0, SECRETS_MAX).reverse();
  }

  async change(changes: Changes): Promise<void> {
    const record = { ...(await this.read()), ...changes } as SignInRecord;
    this.#learn(record);
    await ensureFolder(this.#folder);
    const beside = `${this.#path}.${this.#uuid()}`;
    await writeFile(beside, JSON.stringify(record), { mode: 0o600, flag: "wx" });
    await rename(beside, this.#path);
  }

  /** Removes the record, and what a crash during a change has left of it. */
  async remove(): Promise<void> {
    this.isChallenged = false;
    const files = await readdir(this.#folder).catch(() => []);
    const ofServer = files
      .map((file) => join(this.#folder, file))
      .filter((path) => path.startsWith(this.#path));
    await Promise.all(ofServer.map((path) => rm(path, { force: true })));
  }
}
