// Decides which addresses an outgoing HTTP request may reach, and which redirects it may follow.
// OG1: a request goes to the configured origin. That origin may be private, for example a local model server.
// OG2: only media, pages, documents of MCP clients and push services may come from another origin, because a
//      platform, a model, a client or a browser chooses the address. It must be public, so the request never
//      reaches this machine or its network. All but pages must use TLS.
// OG3: only a page may redirect to another origin, which is checked like the first. MCP servers may redirect
//      within their own origin, with the same method.

export type Purpose =
  | "model"
  | "mcp"
  | "agent"
  | "channel"
  | "media"
  | "page"
  | "webhook"
  | "gateway"
  | "client"
  | "push";

interface Rule {
  readonly redirects: "none" | "same origin" | "any origin";
  /** Whether an address may be used that was not configured, but chosen by a platform or a model. */
  readonly namedByOthers: "no" | "with TLS" | "yes";
}

const CONFIGURED_ONLY: Rule = { redirects: "none", namedByOthers: "no" };

const RULES: Readonly<Record<Purpose, Rule>> = {
  model: CONFIGURED_ONLY,
  mcp: { redirects: "same origin", namedByOthers: "no" },
  agent: CONFIGURED_ONLY,
  channel: CONFIGURED_ONLY,
  media: { redirects: "none", namedByOthers: "with TLS" },
  page: { redirects: "any origin", namedByOthers: "yes" },
  webhook: CONFIGURED_ONLY,
  gateway: CONFIGURED_ONLY,
  client: { redirects: "none", namedByOthers: "with TLS" },
  push: { redirects: "none", namedByOthers: "with TLS" },
};

export type Reach =
  | { readonly kind: "any address" }
  | { readonly kind: "public addresses" }
  /** `why` does not contain the address, because an address may contain a token. */
  | { readonly kind: "refused"; readonly why: string };

const PROTOCOLS = ["http:", "https:"];

/**
 * Decides which addresses a request for `url` may reach. `configured` is the address in the configuration,
 * or undefined if no setting names one.
 */
export function reachOf(purpose: Purpose, url: string, configured: string | undefined): Reach {
  if (!URL.canParse(url) || (configured !== undefined && !URL.canParse(configured)))
    return { kind: "refused", why: "the address is invalid" };
  const { protocol, origin } = new URL(url);
  if (!PROTOCOLS.includes(protocol)) return { kind: "refused", why: "the address is not an HTTP address" };
  if (configured !== undefined && origin === new URL(configured).origin) return { kind: "any address" };
  const { namedByOthers } = RULES[purpose];
  if (namedByOthers === "no") {
    return { kind: "refused", why: "the address is not on the configured host. Nothing was sent." };
  }
  if (protocol === "https:" || namedByOthers === "yes") return { kind: "public addresses" };
  return { kind: "refused", why: "the address does not use TLS. Nothing was sent." };
}

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
export function follow(purpose: Purpose, { method, url, status, location }: Redirect): string | undefined {
  const { redirects } = RULES[purpose];
  if (redirects === "none" || location === null || !URL.canParse(location, url)) return undefined;
  const isKept = (method === "GET" ? REDIRECTS : KEEPS_METHOD).includes(status);
  const target = new URL(location, url);
  const isPlain = target.username === "" && target.password === "";
  const isHere = redirects === "any origin" || target.origin === new URL(url).origin;
  return isKept && isPlain && isHere ? target.href : undefined;
}
