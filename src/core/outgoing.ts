// Owns what an outgoing HTTP request may do: which address it may reach, which redirect it follows.
// OG1: a request goes to the origin that the operator configured. That origin may be private: a model server
//      on this machine is one.
// OG2: only media may come from another origin, because a platform names it. Such an address must use TLS and
//      must lead to a public address: it is never this machine or its network.
// OG3: no redirect leads to another origin. MCP servers may redirect within theirs, with the same method.

/** The purpose of a request. */
export type Purpose = "model" | "mcp" | "channel" | "media" | "webhook" | "gateway";

interface Rule {
  readonly redirects: "none" | "same origin";
  /** Whether an address that somebody else named may be reached. */
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
  /** `why` names no address: a token may be in it. */
  | { readonly kind: "refused"; readonly why: string };

const PROTOCOLS = ["http:", "https:"];

/** Decides where a request for `url` may connect to. `configured`: the address in the configuration. */
export function reachOf(purpose: Purpose, url: string, configured: string): Reach {
  if (!URL.canParse(url) || !URL.canParse(configured))
    return { kind: "refused", why: "the address is invalid" };
  const { protocol, origin } = new URL(url);
  if (!PROTOCOLS.includes(protocol)) return { kind: "refused", why: "the address is not one of HTTP" };
  if (origin === new URL(configured).origin) return { kind: "any address" };
  if (!RULES[purpose].namedByOthers) {
    return { kind: "refused", why: "the address is not at the configured host, so nothing was sent" };
  }
  if (protocol === "https:") return { kind: "public addresses" };
  return { kind: "refused", why: "the address does not use TLS, so nothing was sent" };
}

/** The answer to a request, as far as redirects are concerned. */
export interface Redirect {
  readonly method: string;
  readonly url: string;
  readonly status: number;
  readonly location: string | null;
}

const KEEPS_METHOD = [307, 308];
const REDIRECTS = [301, 302, ...KEEPS_METHOD];

/** The address to follow; undefined if this is no redirect, or one that is refused. */
export function followed(purpose: Purpose, { method, url, status, location }: Redirect): string | undefined {
  if (RULES[purpose].redirects === "none" || location === null || !URL.canParse(location, url))
    return undefined;
  const isKept = (method === "GET" ? REDIRECTS : KEEPS_METHOD).includes(status);
  const target = new URL(location, url);
  const isPlain = target.username === "" && target.password === "";
  return isKept && isPlain && target.origin === new URL(url).origin ? target.href : undefined;
}
