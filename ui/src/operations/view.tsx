// Owns the set of tabs for whoever runs the gateway. A tab is one entry of `TABS`.
// OP1: a tab is offered only where the token may do what it shows.

import type { ComponentType } from "preact";
import { has, may } from "../gateway.ts";
import { hrefOf, route } from "../route.ts";
import { SchedulesTab } from "./schedules/tab.tsx";
import { StatusTab } from "./status.tsx";

interface Tab {
  /** In the address. */
  readonly name: string;
  readonly title: string;
  readonly scope: Parameters<typeof may>[0];
  /** What the gateway must have for it. */
  readonly method: string;
  /** `about`: the rest of the address, such as a session's key. */
  readonly component: ComponentType<{ about: string | undefined }>;
}

const TABS: readonly Tab[] = [
  { name: "status", title: "Status", scope: "operator.read", method: "status", component: StatusTab },
  {
    name: "schedules",
    title: "Schedules",
    scope: "operator.read",
    method: "cron.list",
    component: SchedulesTab,
  },
];

export function OperationsView() {
  const at = route.value;
  if (at.view !== "operations") return null;
  const offered = TABS.filter(({ scope, method }) => may(scope) && has(method));
  const current = offered.find(({ name }) => name === at.tab) ?? offered[0];
  if (current === undefined) return <p class="empty">This token may do nothing here.</p>;
  const Shown = current.component;
  return (
    <div class="operations">
      <nav class="tabs" aria-label="Operations">
        {offered.map(({ name, title }) => (
          <a
            key={name}
            href={hrefOf({ view: "operations", tab: name })}
            aria-current={name === current.name ? "page" : undefined}
          >
            {title}
          </a>
        ))}
      </nav>
      <div class="tab-body">
        <Shown key={current.name} about={at.about} />
      </div>
    </div>
  );
}
