// Owns the plain HTTP routes beside the WebSocket: liveness, readiness, one tool call.
// HT1: a body is refused by its size before it is parsed; what is refused for its headers, a missing token
//      among them, is not read at all.
// HT2: every answer is JSON, an error too.
// HT3: what answers MCP clients is loaded when the first one comes.

import type { HttpBindings } from "@hono/node-server";
import { type Context, Hono, type MiddlewareHandler } from "hono";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import { CODES, type Code, type Failure, fail, ok, type Result } from "../core/errors.ts";
import { thrown, wireError } from "./answer.ts";
import type { Authority, Caller } from "./auth.ts";
import type { GatewayDeps } from "./call.ts";
import type { Answer } from "./connection.ts";
import { checkHeaders } from "./host.ts";
import type { McpDoor } from "./mcp.ts";
import { storeAnswers } from "./methods/system.ts";
import { isObject } from "./validate.ts";

/** Bytes of a request's body. */
const BODY_MAX_BYTES = 1024 * 1024;
/** Fields of a tool call's body beside `tool` and `args`. */
const BODY_FIELDS = ["sessionKey", "idempotencyKey"];

export interface HttpParts {
  readonly deps: GatewayDeps;
  readonly authority: Authority;
  call(caller: Caller, method: string, params: unknown, signal: AbortSignal): Promise<Answer>;
  /** Fires when the gateway stops: what is still being answered ends. */
  readonly stop: AbortSignal;
}

type Env = { Bindings: HttpBindings; Variables: { caller: Caller } };

function statusOf(code: Code): ContentfulStatusCode {
  return CODES[code].http as ContentfulStatusCode;
}

function refuse(c: Context, failure: Failure): Response {
  const { retryAfterMs } = failure.details ?? {};
  if (typeof retryAfterMs === "number") c.header("retry-after", String(Math.ceil(retryAfterMs / 1000)));
  if (failure.code === "unauthorized") c.header("www-authenticate", 'Bearer realm="parley"');
  return c.json({ ok: false, error: wireError(failure) }, statusOf(failure.code));
}

function bearer(c: Context): string | undefined {
  return /^Bearer\s+(\S+)\s*$/i.exec(c.req.header("authorization") ?? "")?.[1];
}

const TOO_LARGE = fail("too_large", `the body is larger than ${BODY_MAX_BYTES} bytes`);

/** A body that comes without its length, measured while it comes: read no further than the limit (HT1). */
async function readMeasured(body: ReadableStream<Uint8Array> | null): Promise<Result<unknown>> {
  const reader = body?.getReader();
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for (let next = await reader?.read(); next?.value !== undefined; next = await reader?.read()) {
    bytes += next.value.length;
    if (bytes > BODY_MAX_BYTES) return TOO_LARGE;
    pieces.push(next.value);
  }
  return ok(JSON.parse(new TextDecoder().decode(Buffer.concat(pieces))));
}

/** The JSON of a body; undefined: it is none, or it was cut off. */
async function readBody(c: Context): Promise<Result<unknown>> {
  const declared = c.req.header("content-length");
  if (Number(declared) > BODY_MAX_BYTES) return TOO_LARGE;
  try {
    return declared === undefined ? await readMeasured(c.req.raw.body) : ok(await c.req.json());
  } catch {
    return ok(undefined);
  }
}

/** The params of `tools.invoke` in a body, which has names of its own for two of them. */
function invokeParams(body: unknown): Result<object> {
  if (!isObject(body)) return fail("invalid_argument", "the body must be one JSON object");
  const { tool, args, ...rest } = body;
  if (typeof tool !== "string" || tool === "") {
    return fail("invalid_argument", "tool is required: the name of a tool");
  }
  const strange = Object.keys(rest).find((field) => !BODY_FIELDS.includes(field));
  if (strange !== undefined) {
    const takes = `a body takes: tool, args, ${BODY_FIELDS.join(", ")}`;
    return fail("unknown_argument", `unknown field ${JSON.stringify(strange.slice(0, 60))}`, { hint: takes });
  }
  if (args !== undefined && !isObject(args)) return fail("invalid_argument", "args must be an object");
  return ok({ name: tool, ...(args === undefined ? {} : { arguments: args }), ...rest });
}

/** `{tool, args, sessionKey?}` -> `{ok, result}`: `ok` is false when the tool's own result is an error. */
async function invokeTool(c: Context<Env>, parts: HttpParts): Promise<Response> {
  const body = await readBody(c);
  if (!body.ok) return refuse(c, body);
  const params = invokeParams(body.value);
  if (!params.ok) return refuse(c, params);
  const { result } = await parts.call(c.get("caller"), "tools.invoke", params.value, c.req.raw.signal);
  if (!result.ok) return refuse(c, result);
  const value = result.value as { status?: unknown; code?: unknown };
  const failed = value.status === "error" || value.status === "forbidden";
  // Only a tool that could not be called at all is an HTTP error; what a tool says is an answer.
  const code =
    value.code === "unknown_tool" || value.code === "tool_denied" ? (value.code as Code) : undefined;
  return c.json({ ok: !failed, result: value }, code === undefined ? 200 : statusOf(code));
}

function authenticate(authority: Authority): MiddlewareHandler<Env> {
  return async (c, next) => {
    const remote = c.env.incoming.socket.remoteAddress ?? "unknown";
    const admitted = authority.admit(remote, { token: bearer(c) });
    if (!admitted.ok) return refuse(c, admitted);
    c.set("caller", admitted.value);
    return next();
  };
}

/** The door for MCP clients, opened by the first of them. */
function mcpDoor({ deps, stop }: HttpParts): () => Promise<McpDoor> {
  let opened: Promise<McpDoor> | undefined;
  return () => {
    opened ??= import("./mcp.ts").then(({ createMcpDoor }) => createMcpDoor(deps, stop));
    return opened;
  };
}

/** The answer to what is no HTTP request of any route, such as one without a usable host name. */
export function badRequest(): Response {
  const message = "not a valid HTTP request: it needs a Host header and a path";
  return Response.json({ ok: false, error: { code: "INVALID_REQUEST", message } }, { status: 400 });
}

export function createHttp(parts: HttpParts): Hono<Env> {
  const { deps } = parts;
  const app = new Hono<Env>();
  app.use(async (c, next) => {
    const allowed = checkHeaders(deps.settings.gateway, {
      host: c.req.header("host"),
      origin: c.req.header("origin"),
    });
    if (!allowed.ok) return refuse(c, allowed);
    c.header("x-content-type-options", "nosniff");
    c.header("cache-control", "no-store");
    return next();
  });
  app.get("/healthz", (c) => c.json({ ok: true, status: "live" }));
  app.get("/readyz", async (c) => {
    const ready = deps.engine.accepting().ok && (await storeAnswers(deps));
    return c.json({ ok: ready, status: ready ? "ready" : "not ready" }, ready ? 200 : 503);
  });
  app.post("/tools/invoke", authenticate(parts.authority), (c) => invokeTool(c, parts));
  const mcp = mcpDoor(parts);
  app.all("/mcp", authenticate(parts.authority), async (c) =>
    (await mcp()).answer(c.req.raw, c.get("caller")),
  );
  app.get("/", (c) => {
    c.header("upgrade", "websocket");
    const message = "this is a WebSocket endpoint; README.md and docs/ say how to talk to it";
    return c.json({ ok: false, error: { code: "INVALID_REQUEST", message } }, 426);
  });
  app.notFound((c) => {
    const message =
      "not found; there are: the WebSocket at /, GET /healthz, GET /readyz, POST /tools/invoke, /mcp";
    return c.json({ ok: false, error: { code: "NOT_FOUND", message } }, 404);
  });
  app.onError((error, c) => refuse(c, thrown(deps.world, error, `${c.req.method} ${c.req.path}`)));
  return app;
}
