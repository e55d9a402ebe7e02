// Shows the first rows, requested by early.ts, before the connection is open (src/gateway/page/first.ts). If
// the answer is late or refused, nothing is lost: the connection reads everything again, and tells the reader
// about problems.

import { batch } from "@preact/signals";
import type { PayloadOf } from "../../src/contract/client/web.ts";
import { inDemo } from "./demo/scene.ts";
import { enterEarly } from "./gateway.ts";
import { showFirstGroups } from "./inbox/model.ts";
import { route } from "./route.ts";
import { showFirstRows } from "./sessions/model.ts";
import { keptToken } from "./token.ts";

interface First {
  readonly script?: string;
  readonly sessions: PayloadOf<"sessions.list">;
  readonly attention: PayloadOf<"attention.list">;
}

/** Returns whether the browser has shown a page from its cache that the gateway has replaced. */
function isOutdated({ script }: First): boolean {
  const [start] = performance.getEntriesByType("navigation") as PerformanceNavigationTiming[];
  return script !== undefined && !import.meta.url.endsWith(script) && start?.type !== "reload";
}

/** Returns whether the view can be shown before the page knows what the token allows. */
function isEarly(): boolean {
  const { value: at } = route;
  return !inDemo && (at.view === "inbox" || (at.view === "sessions" && at.key === undefined));
}

export async function showFirst(): Promise<void> {
  try {
    const answer = await window.early?.answer;
    if (answer?.ok !== true) return;
    const first: First = await answer.json();
    if (isOutdated(first)) return window.location.reload();
    batch(() => {
      if (window.early?.token !== keptToken() || !isEarly() || !enterEarly()) return;
      showFirstRows(first.sessions);
      showFirstGroups(first.attention.groups);
    });
  } catch {
    // The connection reports the problem.
  }
}
