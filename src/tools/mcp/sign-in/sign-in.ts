// Signs in at MCP servers with OAuth, by the library's client: PKCE, registration or a known client, refresh.
// - A person begins a sign-in in a browser, and comes back with a code. `state` binds the two.
// - Requests use the tokens of the server's file. A refused token is refreshed; without a refresh token the
//   server needs a person, and nothing else is tried.
// - With `oauth.grant` no person takes part: a refused token is replaced by a new one.

import type {
  AuthProvider,
  DpopSession,
  FetchLike,
  OAuthClientProvider,
  OAuthDiscoveryState,
  StoredOAuthClientInformation,
  StoredOAuthTokens,
} from "@modelcontextprotocol/client";
import { optional } from "../../../core/optional.ts";
import { type Failure, fail, ok, type Result } from "../../../core/shapes/errors.ts";
import type { McpServerSettings } from "../../../core/shapes/settings/settings.ts";
import { hiding, plainLine } from "../plain-text.ts";
import type { OutsideWorld } from "../transport.ts";
import { asksForKey, makeKey, openSigner } from "./bound-key.ts";
import { signInFetch } from "./fetch.ts";
import { type Challenge, SignInFile, type SignInRecord } from "./file.ts";
import { type HttpReach, MachineSignInFailed, machineParts, refusedOnce } from "./machine.ts";

const CLIENT_NAME = "Parley";
const WORDS_MAX_CHARS = 300;
/** Time that a person has for a sign-in. */
const BEGUN_MS = 600_000;
/** The address to which no browser comes back, for a refresh. */
const NOWHERE = "http://127.0.0.1/";
/** The request that finds out what a server wants. Servers of all revisions refuse it without a token. */
const PROBE = {
  method: "POST",
  headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
  body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: {} }),
};

const library = () => import("@modelcontextprotocol/client");

/** Returns whether an issuer is at this address or below it. */
function isAt(issuer: string | undefined, address: string): boolean {
  const withSlash = (url: string): string => new URL(url).href.replace(/\/?$/, "/");
  return issuer !== undefined && withSlash(issuer).startsWith(withSlash(address));
}

/** Keeps what the library's client needs. */
class Provider implements OAuthClientProvider {
  readonly redirectUrl: string | undefined;
  readonly #file: SignInFile;
  readonly #oauth: NonNullable<HttpReach["oauth"]>;
  readonly #state: string | undefined;
  readonly #pending: SignInRecord["pending"];
  /** The address at which the person signs in. */
  address: URL | undefined;
  discovered: OAuthDiscoveryState | undefined;
  verifier = "";
  /** The refresh token that the library has read. */
  #used: string | undefined;

  constructor(
    file: SignInFile,
    { oauth = {} }: HttpReach,
    step: {
      /** Absent: no person signs in. */
      readonly redirectUrl?: string;
      readonly state?: string;
      readonly pending?: SignInRecord["pending"];
      signer(): Promise<DpopSession | undefined>;
    },
  ) {
    this.dpop = step.signer;
    this.redirectUrl = step.redirectUrl;
    this.#file = file;
    this.#oauth = oauth;
    this.#state = step.state;
    this.#pending = step.pending;
    const { clientMetadataUrl } = oauth;
    if (clientMetadataUrl !== undefined) this.clientMetadataUrl = clientMetadataUrl;
  }

  clientMetadataUrl?: string;
  readonly dpop: () => Promise<DpopSession | undefined>;

  get clientMetadata() {
    const isPerson = this.redirectUrl !== undefined;
    return {
      client_name: CLIENT_NAME,
      redirect_uris: isPerson ? [String(this.redirectUrl)] : [],
      grant_types: isPerson ? ["authorization_code", "refresh_token"] : [],
      response_types: ["code"],
      ...optional({ scope: this.#oauth.scope }),
    };
  }

  state(): string {
    return this.#state ?? "";
  }

  // The client's secret and refresh tokens go only to a server that passes this: an MCP server names any.
  async clientInformation({
    issuer,
  }: {
    issuer?: string;
  } = {}): Promise<StoredOAuthClientInformation | undefined> {
    const { authorizationServer, clientId, clientSecret } = this.#oauth;
    if (authorizationServer !== undefined && !isAt(issuer, authorizationServer)) {
      const what = `it names the authorization server ${issuer}, not ${authorizationServer}`;
      throw new Error(`${what} (oauth.authorizationServer). No client or code was sent to it`);
    }
    if (clientId === undefined) return (await this.#file.read()).client;
    return { client_id: clientId, ...optional({ client_secret: clientSecret, issuer }) };
  }

  saveClientInformation(client: StoredOAuthClientInformation): Promise<void> {
    return this.#file.change({ client, redirectUrl: this.redirectUrl });
  }

  async tokens(): Promise<StoredOAuthTokens | undefined> {
    const { tokens } = await this.#file.read();
    this.#used = tokens?.refresh_token;
    return tokens;
  }

  async saveTokens(tokens: StoredOAuthTokens): Promise<void> {
    // A person has signed out during the refresh.
    if (this.#used !== undefined && (await this.#file.read()).tokens === undefined) return;
    await this.#file.change({ tokens, challenge: undefined, pending: undefined });
  }

  redirectToAuthorization(address: URL): void {
    this.address = address;
  }

  saveCodeVerifier(verifier: string): void {
    this.verifier = verifier;
  }

  codeVerifier(): string {
    return this.#pending?.verifier ?? "";
  }

  // Kept only between the two steps of a person: a server may move to another authorization server.
  discoveryState(): OAuthDiscoveryState | undefined {
    return this.#pending?.discovery;
  }

  saveDiscoveryState(state: OAuthDiscoveryState): void {
    this.discovered = state;
  }

  async invalidateCredentials(what: string): Promise<void> {
    if (what === "client" || what === "all") await this.#file.change({ client: undefined });
    if (what !== "tokens" && what !== "all") return;
    // Another process may have refreshed them in the meantime.
    const { tokens } = await this.#file.read();
    if (tokens?.refresh_token === this.#used) await this.#file.change({ tokens: undefined });
  }
}

/** The form of `state`: it names the server. */
const STATE = /^mcp-([a-z0-9_-]+)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Returns the server to whose sign-in a browser has come back. */
export function serverOfState(params: URLSearchParams): string | undefined {
  return STATE.exec(params.get("state") ?? "")?.[1];
}

/** The sign-ins of one server. */
export class SignIn {
  readonly #file: SignInFile;
  readonly #reach: HttpReach;
  readonly #name: string;
  readonly #world: OutsideWorld;
  #refreshing: Promise<void> | undefined;
  #signer: DpopSession | undefined;

  private constructor(name: string, reach: HttpReach, dir: string, world: OutsideWorld) {
    this.#name = name;
    this.#reach = reach;
    this.#world = world;
    this.#file = new SignInFile({ dir, uuid: () => world.ids.uuid() }, { name, url: reach.url });
  }

  /**
   * Returns the sign-ins of a server, or undefined for a program, and for an address with a token of its own.
   * `dir`: the folder of the store.
   */
  static of({ name, reach }: McpServerSettings, dir: string, world: OutsideWorld): SignIn | undefined {
    if (reach.kind !== "http") return undefined;
    const hasToken = Object.keys(reach.headers).some((header) => header.toLowerCase() === "authorization");
    return hasToken ? undefined : new SignIn(name, reach, dir, world);
  }

  /** The secrets of the sign-ins, which no text of the server may show. */
  get secrets(): readonly string[] {
    const { clientSecret, identityProvider } = this.#reach.oauth ?? {};
    const configured = [clientSecret, identityProvider?.clientSecret].flatMap((secret) => secret ?? []);
    return [...configured, ...this.#file.secrets];
  }

  get #isMachine(): boolean {
    return this.#reach.oauth?.grant !== undefined;
  }

  /**
   * True if the server has refused a request since the last sign-in, as far as this process knows, and a
   * person has to sign in.
   */
  get isNeeded(): boolean {
    return this.#file.isChallenged && !this.#isMachine;
  }

  get #options() {
    const { url, oauth } = this.#reach;
    const others = [oauth?.authorizationServer, oauth?.identityProvider?.tokenUrl];
    const configured = [url, ...others.flatMap((other) => other ?? [])];
    return { serverUrl: url, fetchFn: signInFetch(configured, this.#world) };
  }

  /** Makes or removes the key to which the next tokens are bound. `asked`: a refusal without a token. */
  async #prepareKey(asked: Response): Promise<void> {
    const { key } = await this.#file.read();
    const isWanted = asksForKey(asked);
    if (isWanted !== (key !== undefined))
      await this.#file.change({ key: isWanted ? await makeKey() : undefined });
  }

  readonly #signerOfKey = async (): Promise<DpopSession | undefined> => {
    const { key } = await this.#file.read();
    if (this.#signer?.thumbprint !== key?.thumbprint) this.#signer = key && (await openSigner(key));
    return this.#signer;
  };

  /** Adds a proof to each request whose token is bound to a key. */
  withProofs(fetchFn: FetchLike): FetchLike {
    return async (url, init) => {
      const { withDpop } = await library();
      const addProof = withDpop(this.#signerOfKey, async () => {
        const { tokens } = await this.#file.read();
        return tokens?.token_type.toLowerCase() === "dpop" ? tokens.access_token : undefined;
      });
      return addProof(fetchFn)(url, init);
    };
  }

  /** Returns the tokens for the library's transport. */
  transport(): AuthProvider {
    let sent: string | undefined;
    return {
      token: async () => {
        sent = (await this.#file.read()).tokens?.access_token;
        return sent;
      },
      onUnauthorized: async ({ response }) => {
        const { extractWWWAuthenticateParams } = await library();
        const { scope, resourceMetadataUrl } = extractWWWAuthenticateParams(response);
        const challenge = optional({ scope, resourceMetadataUrl: resourceMetadataUrl?.href });
        this.#refreshing ??= this.#refresh(challenge, sent, response).finally(() => {
          this.#refreshing = undefined;
        });
        await this.#refreshing;
      },
    };
  }

  /** `refused`: the access token that the server refused, if one was sent. */
  async #refresh(challenge: Challenge, refused: string | undefined, response: Response): Promise<void> {
    const { auth, UnauthorizedError } = await library();
    const { tokens, redirectUrl = NOWHERE } = await this.#file.read();
    // Another process may have refreshed them.
    if (refused !== undefined && tokens !== undefined && tokens.access_token !== refused) return;
    if (this.#isMachine) {
      await this.#prepareKey(response);
      return this.#signInAlone(challenge);
    }
    const provider = new Provider(this.#file, this.#reach, { redirectUrl, signer: this.#signerOfKey });
    const result =
      tokens?.refresh_token === undefined
        ? "REDIRECT"
        : await auth(provider, { ...this.#options, ...urlOf(challenge) });
    if (result === "AUTHORIZED") return;
    const left = (await this.#file.read()).tokens;
    if (left !== undefined && left.access_token !== tokens?.access_token) return;
    await this.note(challenge);
    throw new UnauthorizedError();
  }

  async #signInAlone(challenge: Challenge): Promise<void> {
    const { oauth = {} } = this.#reach;
    const scope = oauth.scope ?? challenge.scope;
    const { auth } = await library();
    const provider = new Provider(this.#file, this.#reach, { signer: this.#signerOfKey });
    try {
      const fetchFn = refusedOnce(this.#options.fetchFn);
      const parts = await machineParts(oauth, () => provider.discovered, fetchFn);
      const how = { ...this.#options, fetchFn, ...urlOf(challenge), ...optional({ scope }) };
      await auth(Object.assign(provider, parts), how);
    } catch (error) {
      throw new MachineSignInFailed(error);
    }
  }

  /** Keeps what the server wants, for the next sign-in. Rejects if no person signs in. */
  async note(challenge: Challenge): Promise<void> {
    if (this.#isMachine) throw new MachineSignInFailed(undefined, "it wants more scopes: see oauth.scope");
    await this.#file.change({ challenge });
  }

  /** Forgets the tokens. Returns false if there are none. */
  async forget(): Promise<boolean> {
    const { tokens } = await this.#file.read();
    await this.#file.remove();
    return tokens !== undefined;
  }

  /** Begins a sign-in. Returns the address that the person opens in a browser, which comes back. */
  async begin(redirectUrl: string): Promise<Result<string>> {
    if (this.#isMachine) {
      const how = "the gateway signs in by itself (oauth.grant)";
      return fail("invalid_argument", `nobody has to sign in at the MCP server "${this.#name}": ${how}`);
    }
    try {
      const { auth, computeScopeUnion, extractWWWAuthenticateParams } = await library();
      const record = await this.#file.read();
      const asked = await this.#options.fetchFn(this.#reach.url, PROBE);
      const { scope: wanted, resourceMetadataUrl } = extractWWWAuthenticateParams(asked);
      if (asked.status !== 401 && record.challenge === undefined)
        return fail("invalid_argument", `the MCP server "${this.#name}" asks for no sign-in`);
      const scope =
        this.#reach.oauth?.scope ?? computeScopeUnion(record.tokens?.scope, record.challenge?.scope, wanted);
      const place = resourceMetadataUrl?.href ?? record.challenge?.resourceMetadataUrl;
      const challenge = optional({ scope, resourceMetadataUrl: place });
      // Many authorization servers accept a client only with the address that it registered.
      if (record.redirectUrl !== redirectUrl) await this.#file.change({ client: undefined });
      if (asked.status === 401) await this.#prepareKey(asked);
      const state = `mcp-${this.#name}-${this.#world.ids.uuid()}`;
      const signer = this.#signerOfKey;
      const provider = new Provider(this.#file, this.#reach, { redirectUrl, state, signer });
      const how = {
        ...this.#options,
        ...optional({ scope }),
        ...urlOf(challenge),
        forceReauthorization: true,
      };
      await auth(provider, how);
      const { address, discovered: discovery, verifier } = provider;
      if (address === undefined) return fail("mcp_failed", "the sign-in has no address for a browser");
      const begunAt = this.#world.clock.now();
      const pending = { ...challenge, begunAt, state, verifier, ...optional({ discovery }) };
      await this.#file.change({ redirectUrl, pending });
      return ok(address.href);
    } catch (error) {
      return this.#broke(error);
    }
  }

  /** Ends a sign-in with the parameters with which the browser came back. */
  async finish(params: URLSearchParams): Promise<Result<void>> {
    try {
      const { pending, redirectUrl = NOWHERE } = await this.#file.read();
      if (pending === undefined || params.get("state") !== pending.state)
        return fail("invalid_argument", "this sign-in was not begun here, or another one was begun later");
      if (this.#world.clock.now() - pending.begunAt > BEGUN_MS)
        return fail("invalid_argument", "this sign-in was begun too long ago: begin another one");
      const refusal = params.get("error");
      const code = params.get("code");
      if (refusal !== null || code === null) {
        await this.#file.change({ pending: undefined });
        const why = params.get("error_description") ?? refusal ?? "it came back without a code";
        return fail("mcp_failed", `the sign-in was refused: ${plainLine(why, WORDS_MAX_CHARS)}`);
      }
      const { auth } = await library();
      const signer = this.#signerOfKey;
      const provider = new Provider(this.#file, this.#reach, { redirectUrl, pending, signer });
      const { scope } = pending;
      const iss = params.get("iss") ?? undefined;
      const how = {
        ...this.#options,
        ...urlOf(pending),
        ...optional({ iss, scope }),
        authorizationCode: code,
      };
      await auth(provider, how);
      return ok(undefined);
    } catch (error) {
      return this.#broke(error);
    }
  }

  #broke(error: unknown): Failure {
    const why = error instanceof Error ? error.message : String(error);
    const text = plainLine(this.#world.redactor.mask(hiding(this.secrets)(why)), WORDS_MAX_CHARS);
    return fail("mcp_failed", `the sign-in at the MCP server "${this.#name}" failed: ${text}`);
  }
}

const urlOf = ({ resourceMetadataUrl }: Challenge) =>
  resourceMetadataUrl === undefined ? {} : { resourceMetadataUrl: new URL(resourceMetadataUrl) };

/** Returns why a server is not usable until a person signs in. */
export const wantsSignIn = (name: string): string =>
  `it wants a sign-in: npx parley-gateway mcp login ${name}`;

/** Returns what a server wants of a person, if it refused a request until a person signs in. */
export function needOf(error: unknown): Challenge | undefined {
  let at = error as {
    name?: unknown;
    requiredScope?: unknown;
    resourceMetadataUrl?: unknown;
    cause?: unknown;
  };
  for (let depth = 0; depth < 5 && typeof at === "object" && at !== null; depth += 1) {
    const { name, requiredScope, resourceMetadataUrl } = at;
    if (name === "UnauthorizedError") return {};
    if (name === "InsufficientScopeError")
      return {
        ...(typeof requiredScope === "string" ? { scope: requiredScope } : {}),
        ...(resourceMetadataUrl instanceof URL ? { resourceMetadataUrl: resourceMetadataUrl.href } : {}),
      };
    at = at.cause as typeof at;
  }
  return undefined;
}
