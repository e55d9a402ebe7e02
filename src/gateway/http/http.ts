// Owns the plain HTTP routes: tool calls, and the entry to all other routes, such as the web page.
// Loaded by the first request that is not a health probe (listener.ts).
// Headers are checked first; without a token no body is read and nothing is done.
// Every answer is JSON, errors included, in the shape that the path's clients expect.
// HT3: the code for routes of features and chat platforms is loaded by the first request that needs it.

import { type Context, Hono } from "hono";
import type { BodyAnswerOf } from "../../contract/bodies.ts";
import { checkBody } from "../../contract/check.ts";
import { once } from "../../core/once.ts";
import { optional } from "../../core/optional.ts";
import { type Code, ok, type Result } from "../../core/shapes/errors.ts";
import type { FeatureRoute } from "../../feature.ts";
import { added } from "../../features.ts";
import type { AccessTokenUsers } from "../access-tokens.ts";
import { thrown } from "../answer.ts";
import type { Authority } from "../auth.ts";
import type { FeatureDeps } from "../call.ts";
import type { Dispatcher } from "../dispatch.ts";
import type { ChannelDeps } from "../methods/channels.ts";
import type { ToolDeps } from "../methods/tools.ts";
import { tellFirst } from "../page/first.ts";
import { createPage } from "../page/page.ts";
import type { GatewayShares } from "../shares.ts";
import { createUnprovenRoom, type UnprovenRoom } from "../socket/unproven.ts";
import { checkHeaders, originOf } from "./host.ts";
import { authenticate, type Env, nothingHere, readBody, refuse, statusOf } from "./request.ts";

/** Maximum bytes of a request's body. */
const BODY_MAX_BYTES = 1024 * 1024;
const ROUTES = Object.entries<FeatureRoute>(added("routes"));
/** The paths that a 404 answer lists. */
const PATHS =
  "the page and the WebSocket at /, GET /healthz, GET /readyz, POST /tools/invoke, " +
  ["/channels/", ...ROUTES.flatMap(([, { shown }]) => shown ?? [])].join(", ");

/** Dependencies of all routes together. */
export type HttpDeps = Pick<ToolDeps, "watch" | "passes"> &
  Pick<FeatureDeps, "settings" | "world" | "engine" | "version" | "checkModel" | "services"> &
  Pick<ChannelDeps, "channels"> & {
    /** The gateway's own token, which has all rights. */
    readonly token: string;
    /** The folder of the built web page. If absent, no page is served. */
    readonly pageDir?: string;
  };

export interface HttpParts {
  readonly deps: HttpDeps;
  readonly authority: Authority;
  readonly accessUsers: Pick<AccessTokenUsers, "join" | "end">;
  readonly dispatcher: Dispatcher;
  readonly shares: GatewayShares;
  /** Aborted when the gateway stops, which ends pending answers. */
  readonly stop: AbortSignal;
}

/** The parts of routes whose code is loaded on demand. */
export interface RouteParts extends HttpParts {
  /** Reads the bodies of unauthenticated senders. */
  readonly unproven: UnprovenRoom;
}

/** Converts a body to the params of `tools.invoke`. Two fields have other names in the body. */
async function invokeParams(given: unknown): Promise<Result<object>> {
  const body = await checkBody("POST /tools/invoke", given);
  if (!body.ok) return body;
  const { tool, args, ...rest } = body.value;
  return ok({ name: tool, ...optional({ arguments: args }), ...rest });
}

/** Calls a tool: `ok` is false when the tool's own result is an error. */
async function invokeTool(c: Context<Env>, { dispatcher }: HttpParts): Promise<Response> {
  const body = await readBody(c, BODY_MAX_BYTES);
  if (!body.ok) return refuse(c, body);
  const params = await invokeParams(body.value);
  if (!params.ok) return refuse(c, params);
  const { signal } = c.req.raw;
  const { result } = await dispatcher.call(c.get("caller"), "tools.invoke", params.value, signal);
  if (!result.ok) return refuse(c, result);
  const value = result.value as BodyAnswerOf<"POST /tools/invoke">["result"];
  const failed = value.status === "error" || value.status === "forbidden";
  // Answer with an HTTP error only if the tool could not be called. A tool's own error is a result.
  const code =
    value.code === "unknown_tool" || value.code === "tool_denied" ? (value.code as Code) : undefined;
  return c.json({ ok: !failed, result: value }, code === undefined ? 200 : statusOf(code));
}

/** Answers a malformed request, such as one without a usable host name. */
export function badRequest(): Response {
  const message = "not a valid HTTP request: it needs a Host header and a path";
  return Response.json({ ok: false, error: { code: "INVALID_REQUEST", message } }, { status: 400 });
}

/** In a checkout the page exists only after a build. */
function notBuilt(c: Context<Env>): Response {
  c.header("upgrade", "websocket");
  const how = "npm run build:page, then load this again";
  return nothingHere(c, 426, `this is a WebSocket endpoint; the web page is not built here: ${how}`);
}

export function createHttp(parts: HttpParts): Hono<Env> {
  const { deps } = parts;
  const app = new Hono<Env>();
  for (const [path, { formatError }] of ROUTES)
    app.use(path, (c, next) => {
      c.set("formatError", formatError);
      return next();
    });
  app.use(async (c, next) => {
    c.set("redactor", deps.world.redactor);
    c.set("origin", originOf(deps.settings.gateway, c.req.header("host") ?? ""));
    const allowed = checkHeaders(deps.settings.gateway, {
      host: c.req.header("host"),
      origin: c.req.header("origin"),
    });
    if (!allowed.ok) return refuse(c, allowed);
    c.header("x-content-type-options", "nosniff");
    c.header("cache-control", "no-store");
    return next();
  });
  app.post("/tools/invoke", authenticate(parts), (c) => invokeTool(c, parts));
  const routeParts = { ...parts, unproven: createUnprovenRoom() };
  // The code of a path is loaded on the first request, so that an unused path costs nothing.
  const door = once(async () => (await import("./platform-calls.ts")).createPlatformDoor(routeParts));
  const theirs = new Map(
    ROUTES.map(([, { load }]) => [load, once(async () => (await load()).createDoor(routeParts))]),
  );
  for (const [path, { needsToken, load }] of ROUTES) {
    if (needsToken) app.use(path, authenticate(parts));
    app.all(path, async (c, next) => (await (await theirs.get(load)?.())?.(c)) ?? next());
  }
  app.all("/channels/*", async (c) => (await door())(c));
  const page = deps.pageDir === undefined ? undefined : createPage(deps.pageDir);
  app.get("/page/first", authenticate(parts), async (c) =>
    tellFirst(c, parts.dispatcher, await page?.script()),
  );
  app.get("/", async (c) => (await page?.answer(c.req.raw)) ?? notBuilt(c));
  app.notFound(async (c) => {
    const file = ["GET", "HEAD"].includes(c.req.method) ? await page?.answer(c.req.raw) : undefined;
    if (file !== undefined) return file;
    return nothingHere(c, 404, `not found; there are: ${PATHS}`);
  });
  app.onError((error, c) => refuse(c, thrown(deps.world, error, `${c.req.method} ${c.req.path}`)));
  return app;
}
