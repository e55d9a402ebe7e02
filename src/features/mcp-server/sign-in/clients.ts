// Decides which MCP clients may ask for a sign-in, and to which addresses the answer may go.
// OC1: nothing is stored for a registered client: its id contains its name and its addresses. It needs no
//      signature, because anybody may register, and the person who consents sees both.
// OC2: an address matches exactly, except for the port of a loopback address (RFC 8252).
// OC3: a client's metadata document is read from a public address over TLS only, without redirects, and is
//      limited in time and bytes. It must contain its own address as the client's id.
// OC4: if this gateway cannot reach the document, a program on the person's computer may sign in as with a
//      registration, which says no more about a program. The consent page names the address.

import { isObject, jsonOf } from "../../../core/json.ts";
import { type Failure, fail, ok, type Result } from "../../../core/shapes/errors.ts";
import { labelOf } from "../../../core/text/label.ts";
import { AddressRefused, outgoingRequest } from "../../../world/outgoing.ts";

export interface OAuthClient {
  readonly id: string;
  /** The name that the client gives itself. */
  readonly name: string;
  readonly redirectUris: readonly string[];
  /** True if its metadata document could not be reached (OC4). */
  readonly isUnread?: true;
}

/** A client's metadata document, or the reason why there is none. */
export type DocumentRead =
  | { readonly kind: "read"; readonly document: unknown }
  | { readonly kind: "unreachable" }
  | { readonly kind: "refused"; readonly failure: Failure };

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

/** Returns whether an answer to this address goes to a program on the person's computer. */
export const isLocal = (address: string): boolean => URL.canParse(address) && isLoopback(new URL(address));

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

function isDocumentAddress(id: string): boolean {
  if (id.length > ADDRESS_MAX_CHARS || !URL.canParse(id)) return false;
  const { protocol, pathname, username, password, hash, href } = new URL(id);
  const isPlain = username === "" && password === "" && hash === "";
  return protocol === "https:" && isPlain && pathname !== "/" && href === id;
}

const refuseDocument = (failure: Failure): DocumentRead => ({ kind: "refused", failure });

/** Reads the JSON at an address that a client chose. The caller limits the time by the signal. */
export function readDocument(address: string, signal: AbortSignal): Promise<DocumentRead> {
  return new Promise((resolve) => {
    const broken = (error: unknown): void => {
      const isOurs = error instanceof AddressRefused;
      const why = isOurs ? `the client's metadata document: ${error.message}` : "";
      resolve(isOurs ? refuseDocument(fail("invalid_argument", why)) : { kind: "unreachable" });
    };
    try {
      const destination = { purpose: "client", url: address, configured: undefined } as const;
      const headers = { accept: "application/json", "user-agent": "parley" };
      const request = outgoingRequest(destination, { headers, signal });
      request.on("error", broken);
      request.on("response", (response) => {
        const chunks: Buffer[] = [];
        let bytes = 0;
        const end = (read: DocumentRead): void => {
          resolve(read);
          request.destroy();
        };
        if (response.statusCode !== 200)
          return end(refuseDocument(fail("invalid_argument", "the client's metadata is missing")));
        response.on("error", broken);
        response.on("data", (chunk: Buffer) => {
          bytes += chunk.length;
          if (bytes > DOCUMENT_MAX_BYTES)
            end(refuseDocument(fail("too_large", "the client's metadata is too large")));
          else chunks.push(chunk);
        });
        response.on("end", () => end({ kind: "read", document: jsonOf(Buffer.concat(chunks)) }));
      });
      request.end();
    } catch (error) {
      broken(error);
    }
  });
}

/** Returns the client whose document cannot be reached, if it is a program on the person's computer (OC4). */
function unreadClient(address: string, redirectUri: string): Result<OAuthClient> {
  const { hostname: name } = new URL(address);
  if (isLocal(redirectUri)) return ok({ id: address, name, redirectUris: [redirectUri], isUnread: true });
  return fail("invalid_argument", "the client's metadata document cannot be reached from this gateway");
}

/** Returns the client with this id, which wants its answer at `redirectUri`. */
export async function findClient(
  id: string,
  redirectUri: string,
  read: (address: string) => Promise<DocumentRead>,
): Promise<Result<OAuthClient>> {
  if (id.startsWith(ID_PREFIX))
    return clientIn(id, jsonOf(new Uint8Array(Buffer.from(id.slice(ID_PREFIX.length), "base64url"))));
  if (!isDocumentAddress(id)) return fail("invalid_argument", "this client_id was not issued here");
  const found = await read(id);
  if (found.kind === "read") {
    // OC3: the document must name its own address.
    if (isObject(found.document) && found.document.client_id === id) return clientIn(id, found.document);
    return fail(
      "invalid_argument",
      "the client's metadata document does not name its own address as client_id",
    );
  }
  return found.kind === "refused" ? found.failure : unreadClient(id, redirectUri);
}
