// Shared steps of every HTTP route: authenticates the caller, reads the body within its limit, and formats
// refusals as the route's clients expect them.
// A body that is too large is refused before it is parsed. If the headers are refused, the body is not read.

import type { HttpBindings } from "@hono/node-server";
import type { Context, MiddlewareHandler } from "hono";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import { readJson } from "../../core/json.ts";
import { CODES, type Code, type Failure, fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { Redactor } from "../../core/text/redact/redact.ts";
import type { FeatureRoute } from "../../feature.ts";
import type { AccessTokenUsers } from "../access-tokens.ts";
import { wireError } from "../answer.ts";
import type { Authority, Caller } from "../auth.ts";
import type { GatewayShares } from "../shares.ts";

export type Env = {
  Bindings: HttpBindings;
  Variables: {
    caller: Caller;
    redactor: Redactor;
    /** The address of the gateway as this client reaches it: scheme, host and port. */
    origin: string;
    /**
     * Counts bytes of the body against the caller's share until the response is done. Absent for a request
     * without a token.
     */
    countBody?: (bytes: number) => Result<void>;
    /** Checks the body of a peer's request against the peer's proof. */
    checkBody?: (body: Uint8Array) => Result<void>;
    /** Formats errors as the clients of a feature's route expect them. */
    formatError?: FeatureRoute["formatError"];
  };
};

/** Handles the requests under a path. */
export type Door = (c: Context<Env>) => Promise<Response>;

export const MCP_PATH = "/mcp";
export const RESOURCE_METADATA_PATH = "/.well-known/oauth-protected-resource";

export function statusOf(code: Code): ContentfulStatusCode {
  return CODES[code].http as ContentfulStatusCode;
}

/** Returns the challenge of a 401 answer. For MCP clients it says where to sign in (RFC 9728). */
function challengeOf(c: Context<Env>): string {
  const basic = 'Bearer realm="parley"';
  if (c.req.path !== MCP_PATH) return basic;
  const error = bearer(c) === undefined ? "" : ', error="invalid_token"';
  const metadata = `${c.get("origin")}${RESOURCE_METADATA_PATH}${MCP_PATH}`;
  return `${basic}${error}, resource_metadata="${metadata}", scope="operator.write"`;
}

export function refuse(c: Context<Env>, failure: Failure): Response {
  const { retryAfterMs } = failure.details ?? {};
  if (typeof retryAfterMs === "number") c.header("retry-after", String(Math.ceil(retryAfterMs / 1000)));
  if (statusOf(failure.code) === 401) c.header("www-authenticate", challengeOf(c));
  const formatted = c.get("formatError")?.(failure, c.get("redactor"));
  // Clients may decide by the status alone whether to retry. This header keeps an accepted request from
  // running twice.
  if (formatted !== undefined) c.header("x-should-retry", String(formatted.retry));
  const body = formatted?.body ?? { ok: false, error: wireError(failure, c.get("redactor")) };
  return c.json(body, statusOf(failure.code));
}

/** Answers a request for an unknown path or with a wrong method. No caller is authenticated yet. */
export function nothingHere(c: Context, status: 404 | 405 | 426, message: string): Response {
  const code = status === 404 ? "NOT_FOUND" : "INVALID_REQUEST";
  return c.json({ ok: false, error: { code, message } }, status);
}

export function checkedKey(name: string, key: string | undefined): Result<string | undefined> {
  if (key === undefined || /^[!-~](?:[ -~]{0,198}[!-~])?$/.test(key)) return ok(key);
  return fail("invalid_argument", `${name} must be 1 to 200 printable ASCII characters`);
}

/** Returns the address that wrong tokens are counted against. */
export function remoteOf(c: Context<Env>): string {
  return c.env.incoming.socket.remoteAddress ?? "unknown";
}

/** Returns the token of the Authorization header. */
export function bearer(c: Context): string | undefined {
  return /^Bearer\s+(\S+)\s*$/i.exec(c.req.header("authorization") ?? "")?.[1];
}

/** Returns the Authorization header of a request that claims to come from a peer. */
export function peerHeader(c: Context): string | undefined {
  const header = c.req.header("authorization");
  return header?.toLowerCase().startsWith("parley-peer ") ? header : undefined;
}

/** Authenticates the caller, and counts the request against its concurrent requests. */
export function authenticate({
  authority,
  accessUsers,
  shares: { calls, bytes },
}: {
  readonly authority: Pick<Authority, "admit"> | ((c: Context<Env>) => Pick<Authority, "admit">);
  readonly accessUsers: Pick<AccessTokenUsers, "join">;
  readonly shares: GatewayShares;
}): MiddlewareHandler<Env> {
  return async (c, next) => {
    const { outgoing } = c.env;
    const { admit } = typeof authority === "function" ? authority(c) : authority;
    const admitted = await admit(remoteOf(c), {
      token: bearer(c),
      forMcp: c.req.path === MCP_PATH,
    });
    // The client has disconnected. Count nothing: the event "close", which ends the counting, has already
    // fired.
    if (outgoing.destroyed) return new Response(null, { status: 499 });
    if (!admitted.ok) return refuse(c, admitted);
    const caller = admitted.value;
    const { id } = caller;
    if (!calls.take(id)) return refuse(c, tooMuch("this token has too many unanswered requests"));
    let held = 0;
    const leave = accessUsers.join({ caller, close: () => outgoing.destroy() });
    outgoing.once("close", () => {
      leave();
      calls.give(id);
      bytes.give(id, held);
    });
    c.set("caller", caller);
    c.set("countBody", (count) => {
      if (!bytes.take(id, count))
        return tooMuch("the unanswered requests of this token together exceed the size limit");
      held += count;
      return ok(undefined);
    });
    return next();
  };
}

function tooMuch(text: string): Failure {
  return fail("rate_limited", `${text}; try again in a moment`, { details: { retryAfterMs: 1_000 } });
}

function tooLarge(maxBytes: number): Failure {
  return fail("too_large", `the body is larger than ${maxBytes} bytes`);
}

/**
 * Reads a body and refuses it at the limit. A truncated body counts as empty. `take` is called for each
 * piece, and may refuse the body.
 */
export async function readBytes(
  c: Context,
  maxBytes: number,
  take: (bytes: number) => Result<void> = () => ok(undefined),
): Promise<Result<Uint8Array>> {
  if (Number(c.req.header("content-length")) > maxBytes) return tooLarge(maxBytes);
  const reader = (c.req.raw.body as ReadableStream<Uint8Array> | null)?.getReader();
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  try {
    for (let next = await reader?.read(); next?.value !== undefined; next = await reader?.read()) {
      bytes += next.value.length;
      if (bytes > maxBytes) return tooLarge(maxBytes);
      const taken = take(next.value.length);
      if (!taken.ok) return taken;
      pieces.push(next.value);
    }
    return ok(Buffer.concat(pieces));
  } catch {
    return ok(new Uint8Array());
  }
}

/**
 * Reads a JSON body. Returns undefined if it is invalid or truncated. The body is not kept in memory, because
 * a request may last as long as a run.
 */
export async function readBody(c: Context<Env>, maxBytes: number): Promise<Result<unknown>> {
  const bytes = await readBytes(c, maxBytes, c.get("countBody"));
  if (!bytes.ok) return bytes;
  const checked = c.get("checkBody")?.(bytes.value) ?? ok(undefined);
  return checked.ok ? readJson(bytes.value) : checked;
}
