// Helpers for the tests of the sign-in of MCP clients: the official client, a person at the consent page, and
// requests that no official client would send.

import { createHash } from "node:crypto";
import {
  Client,
  type OAuthClientProvider,
  type OAuthDiscoveryState,
  type StoredOAuthClientInformation,
  type StoredOAuthTokens,
  StreamableHTTPClientTransport,
} from "@modelcontextprotocol/client";
import { type House, TOKEN } from "../../gateway/kit.ts";
import { cleanup } from "../../kit/engine/engine.ts";

export const CALLBACK = "http://127.0.0.1:34567/callback";

/** The parts of a sign-in that the official client keeps. */
export interface Kept {
  readonly provider: OAuthClientProvider;
  /** The address to which the client sent the browser last. */
  address?: URL;
  tokens?: StoredOAuthTokens;
}

export function keeper(name = "Test program"): Kept {
  let client: StoredOAuthClientInformation | undefined;
  let verifier = "";
  let discovered: OAuthDiscoveryState | undefined;
  const kept: { provider: OAuthClientProvider; address?: URL; tokens?: StoredOAuthTokens } = {
    provider: {
      redirectUrl: CALLBACK,
      clientMetadata: { client_name: name, redirect_uris: [CALLBACK] },
      state: () => "a-state",
      clientInformation: () => client,
      saveClientInformation: (saved) => {
        client = saved;
      },
      tokens: () => kept.tokens,
      saveTokens: (saved) => {
        kept.tokens = saved;
      },
      redirectToAuthorization: (address) => {
        kept.address = address;
      },
      saveCodeVerifier: (saved) => {
        verifier = saved;
      },
      codeVerifier: () => verifier,
      discoveryState: () => discovered,
      saveDiscoveryState: (saved) => {
        discovered = saved;
      },
    },
  };
  return kept;
}

/** Connects the official client, with the tokens that it has. */
export async function connected(house: Pick<House, "http">, { provider }: Kept): Promise<Client> {
  const client = new Client({ name: "signed-in", version: "1.0.0" });
  cleanup(() => client.close());
  const url = new URL(`${house.http}/mcp`);
  await client.connect(new StreamableHTTPClientTransport(url, { authProvider: provider }));
  return client;
}

/** The answer of a person on the consent page. */
export interface Answer {
  readonly token?: string;
  readonly answer?: "allow" | "deny";
  readonly granted?: string;
  readonly sessions?: string;
}

/** Opens the consent page at an address, and returns it with a form that has its hidden fields. */
export async function opened(address: URL) {
  const response = await fetch(address);
  const html = await response.text();
  const form = new URLSearchParams();
  for (const [, name = "", value = ""] of html.matchAll(/type="hidden" name="([^"]*)" value="([^"]*)"/g))
    form.append(name, value.replaceAll("&amp;", "&"));
  return { response, html, form };
}

/** Answers the consent page as a person does. Follows no redirect. */
export async function answered(address: URL, answer: Answer = {}): Promise<Response> {
  const { form } = await opened(address);
  const said = { token: TOKEN, answer: "allow", granted: "operator.write", ...answer };
  for (const [name, value] of Object.entries(said)) form.append(name, value);
  return fetch(new URL("/oauth/authorize", address), { method: "POST", body: form, redirect: "manual" });
}

/** Returns the parameters with which the browser goes back to the client. */
export function back(response: Response): URLSearchParams {
  return new URL(response.headers.get("location") ?? "http://nothing.invalid").searchParams;
}

/** Signs in with the official client, and returns what it keeps. */
export async function signedIn(house: Pick<House, "http">, answer: Answer = {}): Promise<Kept> {
  const kept = keeper();
  const url = new URL(`${house.http}/mcp`);
  const transport = new StreamableHTTPClientTransport(url, { authProvider: kept.provider });
  const client = new Client({ name: "signed-in", version: "1.0.0" });
  await client.connect(transport).catch(() => {});
  if (kept.address !== undefined) await transport.finishAuth(back(await answered(kept.address, answer)));
  await client.close();
  return kept;
}

export const VERIFIER = "a-verifier-that-is-long-enough-for-every-server-0123456789";
export const CHALLENGE = createHash("sha256").update(VERIFIER).digest("base64url");

export async function register(house: Pick<House, "http">, metadata: object) {
  const response = await fetch(`${house.http}/oauth/register`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(metadata),
  });
  const body = (await response.json()) as { client_id: string; error?: string; client_name?: string };
  return { status: response.status, ...body };
}

/** Returns the address of a valid request for a sign-in, with these parameters changed. */
export function requestAt(house: Pick<House, "http">, params: Readonly<Record<string, string>>): URL {
  const url = new URL(`${house.http}/oauth/authorize`);
  const usual = {
    response_type: "code",
    redirect_uri: CALLBACK,
    code_challenge: CHALLENGE,
    code_challenge_method: "S256",
    state: "a-state",
    resource: `${house.http}/mcp`,
  };
  for (const [name, value] of Object.entries({ ...usual, ...params })) url.searchParams.set(name, value);
  return url;
}

/** Asks for tokens. */
export async function tokens(house: Pick<House, "http">, params: Readonly<Record<string, string>>) {
  const body = new URLSearchParams(params);
  const response = await fetch(`${house.http}/oauth/token`, { method: "POST", body });
  return {
    status: response.status,
    ...((await response.json()) as Partial<StoredOAuthTokens> & { error?: string }),
  };
}

/** Sends a request to /mcp with a token. */
export function toMcp(house: Pick<House, "http">, token?: string, path = "/mcp"): Promise<Response> {
  return fetch(`${house.http}${path}`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" }),
  });
}
