// Owns the choice of the gateway that the page shows: the reader's own, or its demo. The choice is kept for
// this tab only; the stored token stays that of the reader's own gateway.
// SC1: a change reloads the page, so that no data of one gateway is shown as the other's.

import { hrefOf } from "../route.ts";
import { tabStorage } from "../token.ts";

const STORED_UNDER = "parley.demo";

/** True if this tab has storage to remember the choice. */
export const canEnterDemo = tabStorage() !== undefined;

export const inDemo = tabStorage()?.getItem(STORED_UNDER) === "on";

function loadAt(href: string): void {
  window.history.pushState(null, "", href);
  window.location.reload();
}

export function enterDemo(): void {
  tabStorage()?.setItem(STORED_UNDER, "on");
  loadAt(hrefOf({ view: "flow" }));
}

export function leaveDemo(): void {
  tabStorage()?.removeItem(STORED_UNDER);
  loadAt(hrefOf({ view: "sessions" }));
}
