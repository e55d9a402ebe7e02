// Owns the sign-in of MCP clients (OAuth 2.1): the metadata, the registration, the consent of a person with a
// token, and the tokens of the client.
// OA1: the browser is sent to a client's address only after a person has answered on the consent page.
// OA2: the consent page knows nobody: each answer has the person's own token, so no other page can answer.
// OA3: the client's token has at most the rights of the person's token, and never `operator.admin`.

import type { Context } from "hono";
import { jsonOf } from "../../../core/json.ts";
import { optional } from "../../../core/optional.ts";
import { hasScope, type Rights } from "../../../core/rules/scopes.ts";
import { fail, ok, type Result } from "../../../core/shapes/errors.ts";
import type { TokenScope } from "../../../core/shapes/settings/settings.ts";
import { isPlainLine } from "../../../core/text/label.ts";
import { createAllowance } from "../../../gateway/allowance.ts";
import type { Caller } from "../../../gateway/auth.ts";
import type { HttpParts } from "../../../gateway/http/http.ts";
import {
  type Door,
  type Env,
  MCP_PATH,
  nothingHere,
  RESOURCE_METADATA_PATH,
  readBytes,
  remoteOf,
} from "../../../gateway/http/request.ts";
import { addWithin, checkWithin, mayCreate } from "../../../gateway/methods/rights/tokens.ts";
import { type DocumentRead, findClient, mayRedirect, readDocument, registered } from "./clients.ts";
import { consentPage, refusalPage, type SignInRequest } from "./consent.ts";
import {
  CODE_MS,
  clientHash,
  codeOf,
  exchange,
  type GrantParts,
  type Params,
  refresh,
  revoke,
} from "./grants.ts";

/** Scopes that a client may ask for. */
const SCOPES: readonly TokenScope[] = ["operator.write", "operator.read"];
/** Asked for by clients that want a refresh token, which every client gets. */
const IGNORED_SCOPE = "offline_access";
const BODY_MAX_BYTES = 32 * 1024;
const STATE_MAX_CHARS = 2_000;
const PATTERNS_MAX = 32;
const PATTERN_MAX_CHARS = 512;
/** Limits for one address and one path: 60 requests at once, then one more in each interval. */
const REQUESTS = { max: 60, everyMs: 1_000, usersMax: 10_000 };
const TOKEN_PATH = "/oauth/token";
/** Maximum number of metadata documents that are read at the same time, in all and for one address. */
const DOCUMENTS_MAX = 8;
const DOCUMENTS_OF_ADDRESS_MAX = 2;
const DOCUMENT_WAIT_MS = 5_000;
/** Parameters of a sign-in that the consent page sends back. */
const FIELDS = [
  ...["client_id", "redirect_uri", "response_type", "state", "scope", "resource"],
  ...["code_challenge", "code_challenge_method"],
];

type Answer = Promise<Response> | Response;

function resourceMetadata(origin: string): object {
  return {
    resource: `${origin}${MCP_PATH}`,
    resource_name: "Parley",
    authorization_servers: [origin],
    scopes_supported: SCOPES,
    bearer_methods_supported: ["header"],
  };
}

function serverMetadata(origin: string): object {
  return {
    issuer: origin,
    authorization_endpoint: `${origin}/oauth/authorize`,
    token_endpoint: `${origin}/oauth/token`,
    registration_endpoint: `${origin}/oauth/register`,
    revocation_endpoint: `${origin}/oauth/revoke`,
    scopes_supported: SCOPES,
    response_types_supported: ["code"],
    response_modes_supported: ["query"],
    grant_types_supported: ["authorization_code", "refresh_token"],
    token_endpoint_auth_methods_supported: ["none"],
    revocation_endpoint_auth_methods_supported: ["none"],
    code_challenge_methods_supported: ["S256"],
    client_id_metadata_document_supported: true,
    authorization_response_iss_parameter_supported: true,
  };
}

function oauthError(error: string, error_description: string, status: 400 | 413 | 429 = 400): Response {
  return Response.json({ error, error_description }, { status, headers: { "cache-control": "no-store" } });
}

/** Returns whether `resource` names the MCP route of this gateway, the only audience of its tokens. */
function isOurs(resource: string | undefined, origin: string): boolean {
  if (resource === undefined) return true;
  if (!URL.canParse(resource)) return false;
  const url = new URL(resource);
  return url.origin === origin && url.hash === "" && [MCP_PATH, `${MCP_PATH}/`].includes(url.pathname);
}

/** Returns the parameters of a query or a form. A parameter that occurs twice makes the request invalid. */
function paramsIn(search: URLSearchParams): Result<Params> {
  const names = [...search.keys()];
  if (new Set(names).size !== names.length) return fail("invalid_argument", "a parameter occurs twice");
  return ok(Object.fromEntries(search));
}

function scopeIn(text = ""): Result<TokenScope> {
  const names = text.split(" ").filter((name) => name !== "" && name !== IGNORED_SCOPE);
  const scopes = SCOPES.filter((scope) => names.includes(scope));
  if (names.length > scopes.length) return fail("invalid_argument", `scope may have ${SCOPES.join(" and ")}`);
  return ok(scopes[0] ?? "operator.write");
}

/** Adds the answer to the client's address. */
function answerAt(address: string, answer: Readonly<Record<string, string>>): string {
  const url = new URL(address);
  for (const [name, value] of Object.entries(answer)) url.searchParams.append(name, value);
  return url.href;
}

/** Returns the token in a pasted text: the token alone, or the link to the page. */
function readPastedToken(text: string): string {
  const found = /[#&?]token=([^&\s]+)/.exec(text)?.[1];
  return found === undefined ? text.trim() : (new URLSearchParams(`token=${found}`).get("token") ?? "");
}

function patternsIn(text = ""): Result<readonly string[] | undefined> {
  const patterns = text.split(",").flatMap((one) => one.trim() || []);
  const fits = patterns.every((one) => one.length <= PATTERN_MAX_CHARS && isPlainLine(one));
  if (!fits || patterns.length > PATTERNS_MAX)
    return fail("invalid_argument", `At most ${PATTERNS_MAX} patterns, separated by commas.`);
  return ok(patterns.length === 0 ? undefined : patterns);
}

/** Returns whether this caller may consent: only a person's own token may create other tokens. */
function mayConsent(caller: Caller): boolean {
  const isOwn = caller.actsAs === undefined && caller.onlyAs === undefined;
  return caller.role === "operator" && isOwn && mayCreate(caller);
}

class SignInDoor {
  readonly #deps: HttpParts["deps"];
  readonly #authority: HttpParts["authority"];
  readonly #grants: GrantParts;
  readonly #allowance: ReturnType<typeof createAllowance>;
  /** For each metadata document that is being read, the address that asked for it. */
  readonly #reading: string[] = [];

  constructor({ deps, authority, accessUsers }: HttpParts) {
    this.#deps = deps;
    this.#authority = authority;
    this.#grants = { deps, authority, end: (id) => accessUsers.end(id) };
    this.#allowance = createAllowance(deps.world.clock, REQUESTS);
  }

  async handle(c: Context<Env>): Promise<Response> {
    const { method, path } = c.req;
    const route = ROUTES[path];
    if (route === undefined) return nothingHere(c, 404, `not found: ${path}`);
    const work = route[method === "HEAD" ? "GET" : method];
    if (work === undefined)
      return nothingHere(c, 405, `${path} accepts only ${Object.keys(route).join(", ")}`);
    const remote = remoteOf(c);
    // A program that fails at one path must not shut out a person behind the same address at another.
    const user = `${path} ${remote}`;
    const waitMs = this.#allowance.waitMs(user);
    if (waitMs > 0) {
      const response = oauthError("temporarily_unavailable", "too many requests from this address", 429);
      response.headers.set("retry-after", String(Math.ceil(waitMs / 1000)));
      return response;
    }
    if (path.startsWith("/oauth/")) this.#allowance.take(user);
    const answer = await work(this, c);
    // Many programs behind one address may refresh their sign-ins at once. Only wrong guesses count.
    if (path === TOKEN_PATH && answer.ok) this.#allowance.giveBack(user);
    return answer;
  }

  /** Reads the metadata document of a client, within the limits. */
  async #document(address: string, remote: string): Promise<DocumentRead> {
    const ofAddress = this.#reading.filter((one) => one === remote).length;
    if (this.#reading.length >= DOCUMENTS_MAX || ofAddress >= DOCUMENTS_OF_ADDRESS_MAX)
      return { kind: "refused", failure: fail("rate_limited", "too many sign-ins at once; try again") };
    const { clock } = this.#deps.world;
    const ends = new AbortController();
    const late = clock.after(DOCUMENT_WAIT_MS, () => ends.abort());
    this.#reading.push(remote);
    try {
      return await readDocument(address, ends.signal);
    } finally {
      late.cancel();
      this.#reading.splice(this.#reading.indexOf(remote), 1);
    }
  }

  async register(c: Context<Env>): Promise<Response> {
    const body = await readBytes(c, BODY_MAX_BYTES);
    if (!body.ok) return oauthError("invalid_client_metadata", body.error, 413);
    const client = registered(jsonOf(body.value));
    if (!client.ok) return oauthError("invalid_redirect_uri", client.error);
    const { id, name, redirectUris } = client.value;
    const known = {
      client_id: id,
      client_name: name,
      redirect_uris: redirectUris,
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: "none",
    };
    return c.json(known, 201);
  }

  /** Checks a request for a sign-in (OA1). */
  async #checkSignIn(c: Context<Env>, params: Params): Promise<Result<SignInRequest>> {
    const {
      client_id: id = "",
      redirect_uri: redirectUri = "",
      code_challenge: challenge = "",
      state,
    } = params;
    const client = await findClient(id, redirectUri, (address) => this.#document(address, remoteOf(c)));
    if (!client.ok) return client;
    if (!mayRedirect(client.value, redirectUri))
      return fail("invalid_argument", "redirect_uri is not an address of this client");
    if (params.response_type !== "code") return fail("invalid_argument", "response_type must be code");
    if (params.code_challenge_method !== "S256" || !/^[A-Za-z0-9_-]{43}$/.test(challenge))
      return fail("invalid_argument", "the request needs a code_challenge with the method S256 (PKCE)");
    if (!isOurs(params.resource, c.get("origin")))
      return fail("invalid_argument", "resource names another server than this gateway");
    if ((state?.length ?? 0) > STATE_MAX_CHARS) return fail("invalid_argument", "state is too long");
    const scope = scopeIn(params.scope);
    if (!scope.ok) return scope;
    const fields = Object.fromEntries(Object.entries(params).filter(([name]) => FIELDS.includes(name)));
    const known = { client: client.value, redirectUri, challenge, scope: scope.value, fields };
    return ok({ ...known, ...optional({ state }) });
  }

  async ask(c: Context<Env>): Promise<Response> {
    const params = paramsIn(new URL(c.req.url).searchParams);
    const request = params.ok ? await this.#checkSignIn(c, params.value) : params;
    return request.ok ? consentPage(request.value) : refusalPage(request.error);
  }

  async consent(c: Context<Env>): Promise<Response> {
    const form = await this.#form(c);
    const request = form.ok ? await this.#checkSignIn(c, form.value) : form;
    if (!form.ok || !request.ok) return refusalPage(request.ok ? "" : request.error);
    const { redirectUri, state } = request.value;
    const more = { ...optional({ state }), iss: c.get("origin") };
    if (form.value.answer === "deny")
      return c.redirect(answerAt(redirectUri, { error: "access_denied", ...more }), 303);
    const code = await this.#storeSignIn(c, request.value, form.value);
    if (!code.ok) return consentPage(request.value, code.error);
    return c.redirect(answerAt(redirectUri, { code: code.value, ...more }), 303);
  }

  /** Stores the sign-in that a person has allowed, and returns its code. */
  async #storeSignIn(c: Context<Env>, request: SignInRequest, form: Params): Promise<Result<string>> {
    const admitted = await this.#authority.admit(remoteOf(c), { token: readPastedToken(form.token ?? "") });
    if (!admitted.ok) return admitted;
    const caller = admitted.value;
    if (!mayConsent(caller))
      return fail("missing_scope", "This token cannot create others. Use the gateway's own.");
    const patterns = patternsIn(form.sessions);
    if (!patterns.ok) return patterns;
    const granted = SCOPES.find((scope) => scope === form.granted);
    if (granted === undefined || !hasScope([request.scope], granted))
      return fail("invalid_argument", "Choose what the program may do.");
    const rights: Rights = {
      scopes: [granted],
      ...optional({ patterns: patterns.value ?? caller.patterns }),
    };
    const within = checkWithin(caller, rights);
    if (!within.ok) return within;
    const { client, redirectUri, challenge } = request;
    return this.#deps.engine.commit(async (unit): Promise<Result<string>> => {
      const row = {
        id: unit.newId(),
        tokenId: caller.id,
        name: client.name,
        ...rights,
        createdAt: unit.now,
        expiresAt: unit.now + CODE_MS,
        signIn: { clientId: clientHash(client.id), redirectUri, challenge, generation: 0 },
      };
      const added = await addWithin(unit, row);
      if (!added.ok) return added;
      const code = codeOf(this.#authority, row);
      return code === undefined ? fail("missing_scope", "This token cannot create others.") : ok(code);
    });
  }

  async token(c: Context<Env>): Promise<Response> {
    const form = await this.#form(c);
    if (!form.ok) return oauthError("invalid_request", form.error);
    const params = form.value;
    if (!isOurs(params.resource, c.get("origin")))
      return oauthError("invalid_target", "resource names another server than this gateway");
    const grant = GRANTS[params.grant_type ?? ""];
    if (grant === undefined)
      return oauthError(
        "unsupported_grant_type",
        `grant_type must be one of ${Object.keys(GRANTS).join(", ")}`,
      );
    const issued = await grant(this.#grants, params);
    return issued === undefined
      ? oauthError("invalid_grant", "the code or refresh token is not valid; sign in again")
      : c.json(issued);
  }

  async revoke(c: Context<Env>): Promise<Response> {
    const form = await this.#form(c);
    if (!form.ok) return oauthError("invalid_request", form.error);
    await revoke(this.#grants, form.value);
    return c.body(null, 200);
  }

  async #form(c: Context<Env>): Promise<Result<Params>> {
    const type = c.req.header("content-type") ?? "";
    if (!/^application\/x-www-form-urlencoded\b/i.test(type))
      return fail("invalid_argument", "content-type must be application/x-www-form-urlencoded");
    const body = await readBytes(c, BODY_MAX_BYTES);
    return body.ok ? paramsIn(new URLSearchParams(new TextDecoder().decode(body.value))) : body;
  }
}

const GRANTS: Readonly<Record<string, typeof exchange | undefined>> = {
  __proto__: null as never,
  authorization_code: exchange,
  refresh_token: refresh,
};

type Work = (door: SignInDoor, c: Context<Env>) => Answer;
const aboutResource: Work = (_, c) => c.json(resourceMetadata(c.get("origin")));

const ROUTES: Readonly<Record<string, Readonly<Record<string, Work>> | undefined>> = {
  __proto__: null as never,
  [RESOURCE_METADATA_PATH]: { GET: aboutResource },
  [`${RESOURCE_METADATA_PATH}${MCP_PATH}`]: { GET: aboutResource },
  "/.well-known/oauth-authorization-server": { GET: (_, c) => c.json(serverMetadata(c.get("origin"))) },
  "/oauth/register": { POST: (door, c) => door.register(c) },
  "/oauth/authorize": { GET: (door, c) => door.ask(c), POST: (door, c) => door.consent(c) },
  [TOKEN_PATH]: { POST: (door, c) => door.token(c) },
  "/oauth/revoke": { POST: (door, c) => door.revoke(c) },
};

/** Creates the handler of the sign-in of MCP clients. */
export function createDoor(parts: HttpParts): Door {
  const door = new SignInDoor(parts);
  return (c) => door.handle(c);
}
