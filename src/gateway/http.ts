// Owns the plain HTTP routes beside the WebSocket: figures, one tool call; and where the others begin, the
// web page among them. Loaded by the first request that is no probe of listener.ts.
// HT1: headers are judged before anything else; nothing behind a token is done, or read, without one.
// HT2: every answer is JSON, an error too, in the shape that the path's clients expect.
// HT3: what answers OpenAI's and MCP's clients, and web hooks, is loaded when the first one comes.

import { type Context, Hono } from "hono";
import { type Code, fail, ok, type Result } from "../core/errors.ts";
import { isObject } from "../core/json.ts";
import { thrown } from "./answer.ts";
import type { Authority } from "./auth.ts";
import type { GatewayDeps } from "./call.ts";
import { type Dispatcher, needScope } from "./dispatch.ts";
import { checkHeaders } from "./host.ts";
import { authenticate, type Env, readBody, refuse, statusOf } from "./http-request.ts";
import type { McpDoor } from "./mcp.ts";
import { needEverySession } from "./methods/operations.ts";
import type { Moment } from "./metrics.ts";
import type { OpenAiDoor } from "./openai.ts";
import { createPage } from "./page.ts";
import { createUnprovenRoom, type UnprovenRoom } from "./unproven.ts";

/** Bytes of a request's body. */
const BODY_MAX_BYTES = 1024 * 1024;
/** Paths beside those that are read, in words. */
const OTHERS = "POST /tools/invoke, /v1/ (OpenAI), /mcp, POST /hooks/, /channels/";
/** Fields of a tool call's body beside `tool` and `args`. */
const BODY_FIELDS = ["sessionKey", "idempotencyKey"];

export interface HttpParts {
  readonly deps: GatewayDeps;
  readonly authority: Authority;
  readonly dispatcher: Dispatcher;
  /** Fires when the gateway stops: what is still being answered ends. */
  readonly stop: AbortSignal;
  /** What the figures are read from. */
  moment(): Promise<Moment>;
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
async function invokeTool(c: Context<Env>, { dispatcher }: HttpParts): Promise<Response> {
  const body = await readBody(c, BODY_MAX_BYTES);
  if (!body.ok) return refuse(c, body);
  const params = invokeParams(body.value);
  if (!params.ok) return refuse(c, params);
  const { signal } = c.req.raw;
  const { result } = await dispatcher.call(c.get("caller"), "tools.invoke", params.value, signal);
  if (!result.ok) return refuse(c, result);
  const value = result.value as { status?: unknown; code?: unknown };
  const failed = value.status === "error" || value.status === "forbidden";
  // Only a tool that could not be called at all is an HTTP error; what a tool says is an answer.
  const code =
    value.code === "unknown_tool" || value.code === "tool_denied" ? (value.code as Code) : undefined;
  return c.json({ ok: !failed, result: value }, code === undefined ? 200 : statusOf(code));
}

/** What a Prometheus server reads: of every session's work, so for tokens that cover every session (I9). */
async function tellMetrics(c: Context<Env>, { deps, moment }: HttpParts): Promise<Response> {
  const caller = c.get("caller");
  const allowed = needScope(caller, "GET /metrics", "operator.read");
  if (!allowed.ok) return refuse(c, allowed);
  const covers = needEverySession(caller, "GET /metrics");
  if (!covers.ok) return refuse(c, covers);
  const { type, body } = await deps.metrics.text(await moment());
  return c.body(body, 200, { "content-type": type });
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

/** The OpenAI-compatible routes; loaded with the first request, for who never asks pays nothing for them. */
function openAiRoutes(parts: HttpParts): (c: Context<Env>) => Promise<Response> {
  let door: Promise<OpenAiDoor> | undefined;
  return async (c) => {
    door ??= import("./openai.ts").then(({ createOpenAiDoor }) => createOpenAiDoor(parts));
    return (await door)(c);
  };
}

type Door = (c: Context<Env>) => Promise<Response>;

/** The routes of web hooks that come in; who has none pays nothing for them. */
function hookRoutes(parts: HttpParts, unproven: UnprovenRoom): Door {
  let door: Promise<Door> | undefined;
  return async (c) => {
    door ??= import("./hooks.ts").then(({ createHookDoor }) => createHookDoor({ ...parts, unproven }));
    return (await door)(c);
  };
}

/** The routes that platforms of channels call; loaded like those of web hooks. */
function platformRoutes({ deps }: HttpParts, unproven: UnprovenRoom): Door {
  let door: Promise<Door> | undefined;
  return async (c) => {
    door ??= import("./platform-calls.ts").then(({ createPlatformDoor }) =>
      createPlatformDoor({ deps, unproven }),
    );
    return (await door)(c);
  };
}

/** In a checkout the page is there once it was built. */
function notBuilt(c: Context<Env>): Response {
  c.header("upgrade", "websocket");
  const message =
    "this is a WebSocket endpoint; the web page is not built here: npm run build:page, then load this again";
  return c.json({ ok: false, error: { code: "INVALID_REQUEST", message } }, 426);
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
  app.get("/metrics", authenticate(parts.authority), (c) => tellMetrics(c, parts));
  app.post("/tools/invoke", authenticate(parts.authority), (c) => invokeTool(c, parts));
  app.all("/v1/*", authenticate(parts.authority), openAiRoutes(parts));
  const unproven = createUnprovenRoom();
  app.all("/hooks/*", hookRoutes(parts, unproven));
  app.all("/channels/*", platformRoutes(parts, unproven));
  const mcp = mcpDoor(parts);
  const page = deps.pageDir === undefined ? undefined : createPage(deps.pageDir);
  app.all("/mcp", authenticate(parts.authority), async (c) =>
    (await mcp()).answer(c.req.raw, c.get("caller")),
  );
  app.get("/", async (c) => (await page?.answer(c.req.raw)) ?? notBuilt(c));
  app.notFound(async (c) => {
    const file = ["GET", "HEAD"].includes(c.req.method) ? await page?.answer(c.req.raw) : undefined;
    if (file !== undefined) return file;
    const there = `the page and the WebSocket at /, GET /healthz, GET /readyz, GET /metrics, ${OTHERS}`;
    const message = `not found; there are: ${there}`;
    return c.json({ ok: false, error: { code: "NOT_FOUND", message } }, 404);
  });
  app.onError((error, c) => refuse(c, thrown(deps.world, error, `${c.req.method} ${c.req.path}`)));
  return app;
}
