// Owns the choice between the reader's own gateway and its demo. The choice is stored only for this tab. The
// stored token is always that of the reader's own gateway.
// SC1: a switch reloads the page, so that the page never shows data of one gateway as data of the other.

import { hrefOf } from "../route.ts";
import { DEMO_UNDER, tabStorage } from "../token.ts";

/** True if this tab has a storage, in which the choice can be kept. */
export const canEnterDemo = tabStorage() !== undefined;

export const inDemo = tabStorage()?.getItem(DEMO_UNDER) === "on";

function loadAt(href: string): void {
  window.history.pushState(null, "", href);
  window.location.reload();
}

export function enterDemo(): void {
  tabStorage()?.setItem(DEMO_UNDER, "on");
  loadAt(hrefOf({ view: "flow" }));
}

export function leaveDemo(): void {
  tabStorage()?.removeItem(DEMO_UNDER);
  loadAt(hrefOf({ view: "sessions" }));
}
