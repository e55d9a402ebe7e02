// Owns the route: the part of the address after "#", so that back, forward, reload and links in new tabs
// work. Any text makes a route: an unknown one leads to the first view.

import { signal } from "@preact/signals";

export type Route =
  /** The list. With `key`: a conversation. With `messageId`: the conversation at that message. */
  | { readonly view: "sessions"; readonly key?: string | undefined; readonly messageId?: string | undefined }
  /** The chains. With `chainId`: one of them. */
  | { readonly view: "flow"; readonly chainId?: string | undefined }
  | { readonly view: "operations"; readonly tab?: string | undefined; readonly about?: string | undefined };

function part(text: string | undefined): string | undefined {
  if (text === undefined || text === "") return undefined;
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

function parseRoute(hash: string): Route {
  const [view, first, second] = hash.replace(/^#?\/?/, "").split("/");
  if (view === "flow") return { view, chainId: part(first) };
  if (view === "operations") return { view, tab: part(first), about: part(second) };
  return { view: "sessions", key: part(first), messageId: part(second) };
}

/** Returns the `href` of a route. */
export function hrefOf(route: Route): string {
  const parts =
    route.view === "sessions"
      ? [route.key, route.messageId]
      : route.view === "flow"
        ? [route.chainId]
        : [route.tab, route.about];
  const named = parts.filter((one) => one !== undefined).map((one) => encodeURIComponent(one));
  return `#/${[route.view, ...named].join("/")}`;
}

export const route = signal<Route>(parseRoute(window.location.hash));

window.addEventListener("hashchange", () => {
  route.value = parseRoute(window.location.hash);
});

/** Navigates to a route. `replace`: adds no history entry. */
export function go(to: Route, replace = false): void {
  const href = hrefOf(to);
  if (replace) window.history.replaceState(null, "", href);
  else window.history.pushState(null, "", href);
  route.value = to;
}
