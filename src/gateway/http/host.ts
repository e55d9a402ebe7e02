// Checks two headers of a request: the host that it names, and the web page that sent it.
// A Host that is neither loopback nor configured is refused, which prevents DNS rebinding.
// A browser's Origin must be this host or be configured; programs send none.
// H3: health probes are accepted under any host name, except from web pages, because a load balancer or a
// kubelet uses the bare address. The answer is only a status.

import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { Settings } from "../../core/shapes/settings/settings.ts";
import { quoted } from "../../core/text/cut.ts";

const LOOPBACK = ["localhost", "127.0.0.1", "[::1]"];
const ANY_ADDRESS = ["0.0.0.0", "::", "[::]"];

/** Returns the host name in lower case and without the port. Returns undefined if the name is invalid. */
function nameOf(host: string): string | undefined {
  const name = /^(\[[0-9a-f:.]+\]|[^:/\s@]+)(?::\d{1,5})?$/i.exec(host.trim())?.[1];
  return name?.toLowerCase();
}

function addBrackets(host: string): string {
  return host.includes(":") && !host.startsWith("[") && host.split(":").length > 2 ? `[${host}]` : host;
}

function originHost(origin: string): string | undefined {
  try {
    const { protocol, host } = new URL(origin);
    return protocol === "http:" || protocol === "https:" ? host.toLowerCase() : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Returns the address of the gateway as a client with this Host header reaches it. A configured origin of
 * that host has priority: behind a proxy that adds TLS, the address begins with https.
 */
export function originOf({ allowedOrigins }: Settings["gateway"], host: string): string {
  const given = host.trim();
  // Each scheme has its own default port, which may be in the header and is not in an origin.
  const configured = allowedOrigins
    .flatMap((origin) => (originHost(origin) === undefined ? [] : [new URL(origin)]))
    .find((origin) => origin.host === originHost(`${origin.protocol}//${given}`));
  return configured?.origin ?? `http://${originHost(`http://${given}`) ?? given.toLowerCase()}`;
}

/** Checks the headers of one request, or of a WebSocket's upgrade. */
export function checkHeaders(
  settings: Settings["gateway"],
  headers: { host?: string | undefined; origin?: string | undefined },
): Result<void> {
  const { host: listens, allowedHosts, allowedOrigins } = settings;
  const own = ANY_ADDRESS.includes(listens) ? [] : [addBrackets(listens)];
  const valid = [...LOOPBACK, ...own, ...allowedHosts.map(addBrackets)].map((host) => nameOf(host));
  const { host = "", origin } = headers;
  const name = nameOf(host);
  if (name === undefined || !valid.includes(name)) {
    const shown = quoted(host, 100);
    return fail("origin_denied", `this gateway does not accept the host name ${shown}`, {
      hint: "Add it to gateway.allowedHosts if it is yours.",
    });
  }
  if (origin === undefined) return ok(undefined);
  if (allowedOrigins.includes(origin) || originHost(origin) === host.trim().toLowerCase())
    return ok(undefined);
  return fail("origin_denied", `pages of ${quoted(origin, 100)} may not use this gateway`, {
    hint: "Add the origin to gateway.allowedOrigins if it is yours.",
  });
}

/** Returns whether a request with these headers may use the health check. */
export function mayProbe(
  settings: Settings["gateway"],
  headers: { host?: string | undefined; origin?: string | undefined },
): boolean {
  const { host, origin } = headers;
  if (origin !== undefined) return checkHeaders(settings, headers).ok;
  return host === undefined || nameOf(host) !== undefined;
}
