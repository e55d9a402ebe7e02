// Decides which addresses an outgoing HTTP request may reach, and which redirects it may follow.
// OG1: a request goes to the configured origin. That origin may be private, for example a local model server.
// OG2: only media may come from another origin, because the platform chooses the address of a file. This
//      address must use TLS and be public, so the request never reaches this machine or its network.
// OG3: no redirect leads to another origin. MCP servers may redirect within their own origin, with the same
//      method.

/** Purpose of a request. */
export type Purpose = "model" | "mcp" | "channel" | "media" | "webhook" | "gateway";

interface Rule {
  readonly redirects: "none" | "same origin";
  /** True if the address was not configured but chosen by a platform. */
  readonly namedByOthers: boolean;
}

const CONFIGURED_ONLY: Rule = { redirects: "none", namedByOthers: false };

const RULES: Readonly<Record<Purpose, Rule>> = {
  model: CONFIGURED_ONLY,
  mcp: { redirects: "same origin", namedByOthers: false },
  channel: CONFIGURED_ONLY,
  media: { redirects: "none", namedByOthers: true },
  webhook: CONFIGURED_ONLY,
  gateway: CONFIGURED_ONLY,
};

export type Reach =
  | { readonly kind: "any address" }
  | { readonly kind: "public addresses" }
  /** `why` does not contain the address, because an address may contain a token. */
  | { readonly kind: "refused"; readonly why: string };

const PROTOCOLS = ["http:", "https:"];

/**
 * Decides which addresses a request for `url` may reach. `configured` is the address in the configuration.
 */
export function reachOf(purpose: Purpose, url: string, configured: string): Reach {
  if (!URL.canParse(url) || !URL.canParse(configured))
    return { kind: "refused", why: "the address is invalid" };
  const { protocol, origin } = new URL(url);
  if (!PROTOCOLS.includes(protocol)) return { kind: "refused", why: "the address is not an HTTP address" };
  if (origin === new URL(configured).origin) return { kind: "any address" };
  if (!RULES[purpose].namedByOthers) {
    return { kind: "refused", why: "the address is not on the configured host. Nothing was sent." };
  }
  if (protocol === "https:") return { kind: "public addresses" };
  return { kind: "refused", why: "the address does not use TLS. Nothing was sent." };
}

/** Properties of a response that matter for redirects. */
export interface Redirect {
  readonly method: string;
  readonly url: string;
  readonly status: number;
  readonly location: string | null;
}

const KEEPS_METHOD = [307, 308];
const REDIRECTS = [301, 302, ...KEEPS_METHOD];

/**
 * Returns the address to follow. Returns undefined if the response is not a redirect or the redirect is
 * refused.
 */
export function followed(purpose: Purpose, { method, url, status, location }: Redirect): string | undefined {
  if (RULES[purpose].redirects === "none" || location === null || !URL.canParse(location, url))
    return undefined;
  const isKept = (method === "GET" ? REDIRECTS : KEEPS_METHOD).includes(status);
  const target = new URL(location, url);
  const isPlain = target.username === "" && target.password === "";
  return isKept && isPlain && target.origin === new URL(url).origin ? target.href : undefined;
}
