// Owns who answers a plain HTTP request: the two questions of supervisors here, everything else the routes of
// http.ts.
// LI1: the routes, and the library below them, are loaded by the first request that needs them: a gateway
//      that nobody asks by HTTP goes without, whoever watches whether it lives.
// LI2: a probe is answered here, by whatever name it asks, only when it is one without a doubt; whatever is
//      odd about a request, its headers too, is judged by the routes.

import type { IncomingMessage, ServerResponse } from "node:http";
import { once } from "../core/once.ts";
import { mayProbe } from "./host.ts";
import type { HttpParts } from "./http.ts";
import { storeAnswers } from "./methods/system.ts";

type Listener = (request: IncomingMessage, response: ServerResponse) => void;

/** Why no work is taken; undefined: it is. /readyz gives this reason. */
async function unreadiness({ deps }: HttpParts): Promise<string | undefined> {
  const accepting = deps.engine.accepting();
  if (!accepting.ok) return accepting.error;
  if (!(await storeAnswers(deps))) return "the store does not answer";
  const refusal = await deps.engine.store.refusal?.();
  return refusal === undefined ? undefined : `the store ${refusal}`;
}

/** What a supervisor asks, if it asks at all. */
function probeOf(request: IncomingMessage, { deps }: HttpParts): Probe | undefined {
  const { method, url, headersDistinct, httpVersion } = request;
  const probe = PROBES[url?.split("?", 1)[0] ?? ""];
  if (probe === undefined || (method !== "GET" && method !== "HEAD")) return undefined;
  const { host: hosts = [], origin: origins = [] } = headersDistinct;
  if (hosts.length > 1 || origins.length > 1) return undefined;
  const [host] = hosts;
  // HTTP/1.0, in which some load balancers ask, has no Host; later requests must name one.
  if (host === undefined && httpVersion !== "1.0") return undefined;
  const [origin] = origins;
  return mayProbe(deps.settings.gateway, { host, origin }) ? probe : undefined;
}

type Probe = (parts: HttpParts) => Promise<{ ok: boolean; status: string; reason?: string }>;

const PROBES: Readonly<Record<string, Probe | undefined>> = {
  __proto__: null as never,
  "/healthz": async () => ({ ok: true, status: "live" }),
  "/readyz": async (parts) => {
    const reason = await unreadiness(parts);
    return reason === undefined ? { ok: true, status: "ready" } : { ok: false, status: "not ready", reason };
  },
};

async function answerProbe(probe: Probe, parts: HttpParts, response: ServerResponse): Promise<void> {
  const answer = await probe(parts);
  const headers = {
    "content-type": "application/json",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
  };
  response.writeHead(answer.ok ? 200 : 503, headers).end(JSON.stringify(answer));
}

async function loadRoutes(parts: HttpParts): Promise<Listener> {
  const { getRequestListener } = await import("@hono/node-server");
  const { badRequest, createHttp } = await import("./http.ts");
  const options = { overrideGlobalObjects: false, errorHandler: badRequest };
  const http = createHttp(parts);
  return getRequestListener(http.fetch, options);
}

export function createListener(parts: HttpParts): Listener {
  const load = once(() => loadRoutes(parts));
  let routes: Listener | undefined;
  const first = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    try {
      routes = await load();
      // Who left meanwhile would never be heard leaving by the routes.
      if (response.destroyed) return;
      routes(request, response);
    } catch (error) {
      // Only a broken installation comes here.
      parts.deps.world.log.error({ err: error }, "the HTTP routes could not be loaded");
      response.destroy();
    }
  };
  return (request, response) => {
    const probe = probeOf(request, parts);
    if (probe !== undefined) void answerProbe(probe, parts, response);
    else if (routes !== undefined) routes(request, response);
    else void first(request, response);
  };
}
