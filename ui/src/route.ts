// Owns the route: the part of the address after "#". So back, forward, reload and links in new tabs work. An
// unknown address opens the first view.

import { signal } from "@preact/signals";
import { leavePlace, newPlace, reachPlace } from "./places.ts";

export type Route =
  /** The inbox, which is the first view. */
  | { readonly view: "inbox" }
  /**
   * The list of sessions. With `key`, also that session's conversation. With `messageId`, a message in it.
   * With `sessionId`, too, a message in an earlier conversation of the session, from before a reset.
   */
  | {
      readonly view: "sessions";
      readonly key?: string | undefined;
      readonly messageId?: string | undefined;
      readonly sessionId?: string | undefined;
    }
  /** The list of agents. With `agentId`, that agent. */
  | { readonly view: "agents"; readonly agentId?: string | undefined }
  /**
   * The list of chains. With `chainId`, also that chain. With `page`, a page of a feature about it; `about`
   * is its subject.
   */
  | {
      readonly view: "flow";
      readonly chainId?: string | undefined;
      readonly page?: string | undefined;
      readonly about?: string | undefined;
    }
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
  const [view, first, second, third] = hash.replace(/^#?\/?|\?.*$/g, "").split("/");
  if (view === "flow") return { view, chainId: part(first), page: part(second), about: part(third) };
  if (view === "sessions") return { view, key: part(first), messageId: part(second), sessionId: part(third) };
  if (view === "agents") return { view, agentId: part(first) };
  if (view === "operations") return { view, tab: part(first), about: part(second) };
  return { view: "inbox" };
}

function partsOf(route: Route): readonly (string | undefined)[] {
  switch (route.view) {
    case "inbox":
      return [];
    case "sessions":
      return [route.key, route.messageId, route.sessionId];
    case "agents":
      return [route.agentId];
    case "flow":
      return [route.chainId, route.page, route.about];
    case "operations":
      return [route.tab, route.about];
  }
}

/** The filters of lists, as the address has them after "?". Links to what is listed have them, too. */
export const queries = { sessions: signal(""), flow: signal("") };

/** Takes the filters from the address of a view that has some. */
function readQuery(hash: string, { view }: Route): void {
  if (view in queries) queries[view as keyof typeof queries].value = /\?(.*)$/.exec(hash)?.[1] ?? "";
}

export function hrefOf(route: Route): string {
  const named = partsOf(route)
    .filter((one) => one !== undefined)
    .map((one) => encodeURIComponent(one));
  const query = route.view in queries ? queries[route.view as keyof typeof queries].value : "";
  return `#/${[route.view, ...named].join("/")}${query === "" ? "" : `?${query}`}`;
}

export const route = signal<Route>(parseRoute(window.location.hash));
readQuery(window.location.hash, route.value);

/** Name of the chain that the flow view shows, for the title of the browser tab. */
export const chainName = signal<string | undefined>(undefined);

window.addEventListener("hashchange", () => {
  const { hash } = window.location;
  const to = parseRoute(hash);
  readQuery(hash, to);
  leavePlace();
  route.value = to;
  reachPlace();
});
reachPlace();

/** Goes to a route. `replace`: true to add no entry to the browser's history. */
export function go(to: Route, replace = false): void {
  const href = hrefOf(to);
  if (replace) window.history.replaceState(window.history.state, "", href);
  else {
    leavePlace();
    window.history.pushState(newPlace(), "", href);
  }
  route.value = to;
}

/** Changes the filters of a view's list, and the address. Adds no entry to the browser's history. */
export function filter(view: keyof typeof queries, to: string): void {
  queries[view].value = to;
  if (route.value.view === view) go(route.value, true);
}
