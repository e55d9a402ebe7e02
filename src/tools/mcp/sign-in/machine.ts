// Gets tokens for MCP servers without a person (`oauth.grant`), by the library's client.
// - client_credentials: the gateway proves with a secret or a private key that it is the client.
// - jwt_bearer: it presents the token of a file, which its platform or another login renews. An identity
//   provider may exchange that token first.

import { createPrivateKey } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { FetchLike, OAuthClientProvider, OAuthDiscoveryState } from "@modelcontextprotocol/client";
import { optional } from "../../../core/optional.ts";
import type { McpServerSettings } from "../../../core/shapes/settings/settings.ts";

export type HttpReach = Extract<McpServerSettings["reach"], { kind: "http" }>;
type Oauth = NonNullable<HttpReach["oauth"]>;

const JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/** Algorithms of signatures, by the curve or the type of the key. */
const ALGORITHMS: Readonly<Record<string, string>> = {
  prime256v1: "ES256",
  secp384r1: "ES384",
  secp521r1: "ES512",
  ed25519: "EdDSA",
  rsa: "RS256",
};

/**
 * Thrown if no token was given that the server takes. The cause says why, in words of the authorization
 * server or the library.
 */
export class MachineSignInFailed extends Error {
  constructor(cause: unknown, why = "the gateway could not sign in") {
    super(why, { cause });
  }
}

/** Makes a refused token request fail. The library would repeat it, and print the server's words. */
export function refusedOnce(fetchFn: FetchLike): FetchLike {
  return async (url, init) => {
    const response = await fetchFn(url, init);
    if (response.ok || init?.method !== "POST" || response.headers.has("dpop-nonce")) return response;
    const { parseErrorResponse } = await import("@modelcontextprotocol/client");
    const { code, message } = await parseErrorResponse(response);
    throw new Error(`${code}: ${message}`);
  };
}

function readKey(pem: string) {
  try {
    const key = createPrivateKey(pem);
    const { asymmetricKeyType: type = "", asymmetricKeyDetails: details } = key;
    const alg = ALGORITHMS[details?.namedCurve ?? type];
    if (alg !== undefined) return { privateKey: { ...key.export({ format: "jwk" }) }, alg };
  } catch {
    // The library's error says nothing to a person.
  }
  throw new Error("oauth.privateKey is not a private key (RSA, EC or Ed25519) in PEM");
}

/** Returns the parts of the library's client for a grant. `discovered`: facts about the server. */
export async function machineParts(
  { grant, clientId = "", privateKey, tokenFile = "", identityProvider }: Oauth,
  discovered: () => OAuthDiscoveryState | undefined,
  fetchFn: FetchLike,
): Promise<Pick<OAuthClientProvider, "prepareTokenRequest" | "addClientAuthentication">> {
  const { createPrivateKeyJwtAuth, requestJwtAuthorizationGrant } = await import(
    "@modelcontextprotocol/client"
  );
  const client = { issuer: clientId, subject: clientId };
  const proof =
    privateKey === undefined
      ? {}
      : { addClientAuthentication: createPrivateKeyJwtAuth({ ...client, ...readKey(privateKey) }) };

  async function assertionFor(scope: string | undefined): Promise<string> {
    const token = (await readFile(tokenFile, "utf8")).trim();
    if (identityProvider === undefined) return token;
    const { authorizationServerUrl = "", authorizationServerMetadata, resourceMetadata } = discovered() ?? {};
    const { jwtAuthGrant } = await requestJwtAuthorizationGrant({
      tokenEndpoint: identityProvider.tokenUrl,
      idToken: token,
      clientId: identityProvider.clientId,
      audience: authorizationServerMetadata?.issuer ?? authorizationServerUrl,
      resource: resourceMetadata?.resource ?? "",
      fetchFn,
      ...optional({ clientSecret: identityProvider.clientSecret, scope }),
    });
    return jwtAuthGrant;
  }

  async function prepareTokenRequest(scope?: string): Promise<URLSearchParams> {
    const params =
      grant === "jwt_bearer"
        ? { grant_type: JWT_BEARER, assertion: await assertionFor(scope) }
        : { grant_type: "client_credentials" };
    return new URLSearchParams({ ...params, ...optional({ scope }) });
  }
  return { prepareTokenRequest, ...proof };
}
