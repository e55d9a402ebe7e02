// Owns which gateway the page shows: the reader's own, or its demo.
// SC1: it changes by loading the page anew, so that nothing that was read of the one is shown of the other.
// SC2: it is kept for this tab only, beside the token, which stays that of the reader's own gateway.

import { hrefOf } from "../route.ts";
import { tabStorage } from "../token.ts";

const STORED_UNDER = "parley.demo";

/** Whether a tab can be told to show the demo. */
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
