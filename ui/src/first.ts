// Shows rows before the connection is open: after a reload at once those that the tab has shown last, then
// those that early/request.ts has requested. If the answer is late or refused, nothing is lost: the
// connection reads everything again, and tells the reader about problems.

import { batch } from "@preact/signals";
import { agents } from "./agents/known.ts";
import { now } from "./clock.ts";
import { inDemo } from "./demo/scene.ts";
import type { First } from "./early/draw.ts";
import { enterEarly } from "./gateway.ts";
import { groups, showFirstGroups } from "./inbox/model.ts";
import { route } from "./route.ts";
import { type FirstRows, showFirstRows, shownRows } from "./sessions/model.ts";
import { keepRows, keptRows, keptToken } from "./token.ts";

/** Age from which kept rows are not shown. A reload takes seconds. */
const KEPT_MS = 60_000;

interface Rows {
  readonly sessions: FirstRows;
  readonly attention: Pick<First["attention"], "groups">;
  readonly agents?: First["agents"] | undefined;
}

interface KeptRows extends Rows {
  readonly token: string | undefined;
  readonly at: number;
}

const [start] = performance.getEntriesByType("navigation") as PerformanceNavigationTiming[];
const isReload = start?.type === "reload";

function show({ sessions, attention, agents: named }: Rows): void {
  batch(() => {
    const { view } = route.value;
    if (inDemo || (view !== "inbox" && view !== "sessions") || !enterEarly()) return;
    agents.value ??= named;
    showFirstRows(sessions);
    showFirstGroups(attention.groups);
  });
}

/** Shows the rows that are there, and those of the first answer when it arrives. */
export async function showFirst(): Promise<void> {
  const { early } = window;
  if (early === undefined) return;
  early.started = true;
  try {
    if (isReload && early.first === undefined) {
      const kept: KeptRows | null = JSON.parse(keptRows() ?? "null");
      if (kept !== null && kept.token === keptToken() && now() - kept.at < KEPT_MS) show(kept);
    }
    const first = early.first ?? (await early.answer);
    if (first === undefined) return;
    // The browser has shown a page from its cache that the gateway has replaced.
    if (first.script !== undefined && !import.meta.url.endsWith(first.script) && !isReload)
      return window.location.reload();
    if (early.token === keptToken()) show(first);
  } catch {
    // The connection reports the problem.
  }
}

window.addEventListener("pagehide", () => {
  const sessions = shownRows();
  if (inDemo || sessions === undefined || groups.value === undefined) return;
  const rows: Rows = { sessions, attention: { groups: groups.value }, agents: agents.value };
  const kept: KeptRows = { token: keptToken(), at: now(), ...rows };
  keepRows(JSON.stringify(kept));
});
