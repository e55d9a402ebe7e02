// Decides which MCP clients may ask for a sign-in, and to which addresses the answer may go.
// OC1: nothing is stored for a registered client: its id contains its name and its addresses. It needs no
//      signature, because anybody may register, and the person who consents sees both.
// OC2: an address matches exactly, except for the port of a loopback address (RFC 8252).
// OC3: a client's metadata document is read from a public address over TLS only, without redirects, and is
//      limited in time and bytes. It must contain its own address as the client's id.

import { isObject, jsonOf } from "../../core/json.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import { labelOf } from "../../core/text/label.ts";
import { AddressRefused, outgoingRequest } from "../../world/outgoing.ts";

export interface OAuthClient {
  readonly id: string;
  /** The name that the client gives itself. */
  readonly name: string;
  readonly redirectUris: readonly string[];
}

const NAME_MAX_CHARS = 64;
const NAMELESS = "MCP client";
const REDIRECTS_MAX = 8;
const ADDRESS_MAX_CHARS = 512;
const ID_PREFIX = "pcl1.";
const DOCUMENT_MAX_BYTES = 16 * 1024;
const LOOPBACK = ["127.0.0.1", "[::1]", "localhost"];
/** Schemes that editors registered with the system. Others must look like a reversed domain (RFC 8252). */
const EDITORS = ["cursor:", "vscode:", "vscode-insiders:", "windsurf:", "zed:"];

const isLoopback = ({ protocol, hostname }: URL): boolean =>
  protocol === "http:" && LOOPBACK.includes(hostname);

/** Returns whether an answer may be sent to this address at all. */
function isSafeTarget(address: string): boolean {
  if (address.length > ADDRESS_MAX_CHARS || !URL.canParse(address) || /[^!-~]/.test(address)) return false;
  const url = new URL(address);
  if (url.username !== "" || url.password !== "" || address.includes("#")) return false;
  if (url.protocol === "https:" || isLoopback(url)) return true;
  return EDITORS.includes(url.protocol) || /^[a-z][a-z0-9+-]*(?:\.[a-z0-9+-]+)+:$/.test(url.protocol);
}

/** Returns whether an answer for this client may be sent to this address (OC2). */
export function mayRedirect({ redirectUris }: OAuthClient, wanted: string): boolean {
  if (!isSafeTarget(wanted)) return false;
  const portless = (address: string): string => {
    const url = new URL(address);
    if (!isLoopback(url)) return address;
    url.port = "";
    return url.href;
  };
  return redirectUris.some((known) => known === wanted || portless(known) === portless(wanted));
}

/** Reads a client's description of itself. */
function clientIn(id: string, fields: unknown): Result<OAuthClient> {
  if (!isObject(fields)) return fail("invalid_argument", "the client's metadata must be a JSON object");
  const { client_name: name, redirect_uris: uris } = fields;
  const redirectUris = Array.isArray(uris) ? uris.filter((one) => typeof one === "string") : [];
  const fits = redirectUris.length > 0 && redirectUris.length <= REDIRECTS_MAX;
  if (!fits || !redirectUris.every(isSafeTarget))
    return fail(
      "invalid_argument",
      `redirect_uris must be 1 to ${REDIRECTS_MAX} addresses with https, on this computer, or of an app`,
    );
  const label = typeof name === "string" ? labelOf(name, NAME_MAX_CHARS) : undefined;
  return ok({ id, name: label ?? NAMELESS, redirectUris });
}

/** Registers a client: returns it with an id that contains its description (OC1). */
export function registered(metadata: unknown): Result<OAuthClient> {
  const read = clientIn("", metadata);
  if (!read.ok) return read;
  const { name: client_name, redirectUris: redirect_uris } = read.value;
  const body = Buffer.from(JSON.stringify({ client_name, redirect_uris })).toString("base64url");
  return ok({ ...read.value, id: `${ID_PREFIX}${body}` });
}

/** Reads a client from its metadata document (OC3). */
function clientOfDocument(address: string, document: unknown): Result<OAuthClient> {
  if (isObject(document) && document.client_id === address) return clientIn(address, document);
  return fail(
    "invalid_argument",
    "the client's metadata document does not name its own address as client_id",
  );
}

function isDocumentAddress(id: string): boolean {
  if (id.length > ADDRESS_MAX_CHARS || !URL.canParse(id)) return false;
  const { protocol, pathname, username, password, hash, href } = new URL(id);
  const isPlain = username === "" && password === "" && hash === "";
  return protocol === "https:" && isPlain && pathname !== "/" && href === id;
}

/** Reads the JSON at an address that a client chose. The caller limits the time by the signal. */
export function readDocument(address: string, signal: AbortSignal): Promise<Result<unknown>> {
  return new Promise((resolve) => {
    const broken = (error: unknown): void => {
      const why = error instanceof AddressRefused ? error.message : "it could not be read";
      resolve(fail("invalid_argument", `the client's metadata document: ${why}`));
    };
    try {
      const destination = { purpose: "client", url: address, configured: undefined } as const;
      const headers = { accept: "application/json", "user-agent": "parley" };
      const request = outgoingRequest(destination, { headers, signal });
      request.on("error", broken);
      request.on("response", (response) => {
        const chunks: Buffer[] = [];
        let bytes = 0;
        const end = (result: Result<unknown>): void => {
          resolve(result);
          request.destroy();
        };
        if (response.statusCode !== 200)
          return end(fail("invalid_argument", "the client's metadata is missing"));
        response.on("error", broken);
        response.on("data", (chunk: Buffer) => {
          bytes += chunk.length;
          if (bytes > DOCUMENT_MAX_BYTES) end(fail("too_large", "the client's metadata is too large"));
          else chunks.push(chunk);
        });
        response.on("end", () => end(ok(jsonOf(Buffer.concat(chunks)))));
      });
      request.end();
    } catch (error) {
      broken(error);
    }
  });
}

/** Returns the client with this id. */
export async function findClient(
  id: string,
  read: (address: string) => Promise<Result<unknown>>,
): Promise<Result<OAuthClient>> {
  if (id.startsWith(ID_PREFIX))
    return clientIn(id, jsonOf(new Uint8Array(Buffer.from(id.slice(ID_PREFIX.length), "base64url"))));
  if (!isDocumentAddress(id)) return fail("invalid_argument", "this client_id was not issued here");
  const document = await read(id);
  return document.ok ? clientOfDocument(id, document.value) : document;
}
