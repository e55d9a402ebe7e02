// Loads the typeface (styles/font.css) after the first view has its content. Until then the page uses a font
// of the system, so that text is visible at once even on a slow connection.

import { after } from "./clock.ts";
import { linkState, stage } from "./gateway.ts";

/** Interval at which the page checks whether anything is still loading. */
const CALM_EVERY_MS = 200;

export function loadTypeface(): void {
  after(CALM_EVERY_MS, () => {
    const connects = stage.value.kind !== "signed-out" && linkState.value === "closed";
    if (connects || document.querySelector(".loading") !== null) loadTypeface();
    // If the typeface cannot be loaded, the page keeps the font of the system.
    else import("./styles/font.css").catch(() => undefined);
  });
}
