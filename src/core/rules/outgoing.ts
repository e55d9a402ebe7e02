// Decides which addresses an outgoing HTTP request may reach and which redirects it follows.
// OG1: a request goes to the configured origin. That origin may be private, for example a local model server.
// OG2: only media may come from another origin, because a platform names it. That address must use TLS and
// must be public: never this machine or its network.
// OG3: no redirect leads to another origin. MCP servers may redirect within theirs, with the same method.

/** The purpose of a request. */
export type Purpose = "model" | "mcp" | "channel" | "media" | "webhook" | "gateway";

interface Rule {
  readonly redirects: "none" | "same origin";
  /** True if somebody else chose the address. */
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
  /** `why` contains no address, because an address may contain a token. */
  | { readonly kind: "refused"; readonly why: string };

const PROTOCOLS = ["http:", "https:"];

/** Decides which addresses a request for `url` may use. `configured`: the address from the configuration. */
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

/** The parts of a response that matter for redirects. */
export interface Redirect {
  readonly method: string;
  readonly url: string;
  readonly status: number;
  readonly location: string | null;
}

const KEEPS_METHOD = [307, 308];
const REDIRECTS = [301, 302, ...KEEPS_METHOD];

/** Returns the address to follow. undefined: this is not a redirect, or it is refused. */
export function followed(purpose: Purpose, { method, url, status, location }: Redirect): string | undefined {
  if (RULES[purpose].redirects === "none" || location === null || !URL.canParse(location, url))
    return undefined;
  const isKept = (method === "GET" ? REDIRECTS : KEEPS_METHOD).includes(status);
  const target = new URL(location, url);
  const isPlain = target.username === "" && target.password === "";
  return isKept && isPlain && target.origin === new URL(url).origin ? target.href : undefined;
}
