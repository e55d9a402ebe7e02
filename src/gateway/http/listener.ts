// Receives plain HTTP requests: answers health probes here, and passes the others to http.ts.
// LI1: the routes and their library are loaded by the first request that needs them. A gateway that only gets
// health probes never loads them.
// Only a well-formed probe is answered here, under any host name. The routes handle every other request.

import type { IncomingMessage, ServerResponse } from "node:http";
import { once } from "../../core/once.ts";
import { storeTrouble } from "../methods/system.ts";
import { mayProbe } from "./host.ts";
import type { HttpParts } from "./http.ts";

type Listener = (request: IncomingMessage, response: ServerResponse) => void;

/** Returns the reason that /readyz reports, or undefined if the gateway is ready. */
async function unreadiness({ deps }: HttpParts): Promise<string | undefined> {
  const accepting = deps.engine.accepting();
  if (!accepting.ok) return accepting.error;
  const trouble = await storeTrouble(deps);
  if (trouble !== undefined) return trouble.reason;
  return deps.engine.store.shared?.isDeaf() === true ? "messages of other gateways do not arrive" : undefined;
}

/** Returns the health probe that a request makes, or undefined for any other request. */
function probeOf(request: IncomingMessage, { deps }: HttpParts): Probe | undefined {
  const { method, url, headersDistinct, httpVersion } = request;
  const probe = PROBES[url?.split("?", 1)[0] ?? ""];
  if (probe === undefined || (method !== "GET" && method !== "HEAD")) return undefined;
  const { host: hosts = [], origin: origins = [] } = headersDistinct;
  if (hosts.length > 1 || origins.length > 1) return undefined;
  const [host] = hosts;
  // HTTP/1.0, which some load balancers use, has no Host; later requests must name one.
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

export function createListener(parts: HttpParts): Listener {
  const load = once(async () => {
    // The first access makes Node load its fetch, which takes 30 ms. Other work runs before the next step.
    void globalThis.Response;
    await parts.deps.world.gather?.();
    const { getRequestListener } = await import("@hono/node-server");
    const { badRequest, createHttp } = await import("./http.ts");
    const options = { overrideGlobalObjects: false, errorHandler: badRequest };
    const http = createHttp(parts);
    return getRequestListener(http.fetch, options);
  });
  let routes: Listener | undefined;
  const first = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    try {
      routes = await load();
      // The client has already disconnected, so no route would see its close event.
      if (response.destroyed) return;
      routes(request, response);
    } catch (error) {
      // Loading fails only if the installation is broken.
      parts.deps.world.log.error({ err: error }, "could not load the HTTP routes");
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
