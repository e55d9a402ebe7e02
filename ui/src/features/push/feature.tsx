// Adds the button with which this device is notified, also while the page is closed. A click on a
// notification opens the inbox at the item, in this page if it is open.

import { has } from "../../gateway.ts";
import { lazy } from "../../parts/lazy.tsx";

const Button = lazy(async () => (await import("./button.tsx")).PushButton);

const workers = (navigator as { serviceWorker?: ServiceWorkerContainer }).serviceWorker;
workers?.addEventListener("message", ({ data }) => {
  window.location.hash = String((data as { open: unknown }).open);
});

/** Browsers have neither service workers nor pushes on pages that came over a network without TLS. */
export function PushPart() {
  return workers !== undefined && "PushManager" in window && has("push.subscribe") ? <Button /> : null;
}
