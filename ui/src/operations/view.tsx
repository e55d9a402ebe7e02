// The tabs for operators. Each tab is an entry of `TABS`.
// OP1: a tab is shown only if the token has its scope.

import type { ComponentType } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { coversAll, has, may } from "../gateway.ts";
import { hrefOf, route } from "../route.ts";
import { AgentsTab } from "./agents/tab.tsx";
import { ChannelsTab } from "./channels.tsx";
import { ConfigurationTab } from "./configuration.tsx";
import { DeliveriesTab } from "./deliveries.tsx";
import { LogTab } from "./log.tsx";
import { NodesTab } from "./nodes/tab.tsx";
import { PermissionsTab } from "./permissions.tsx";
import { RightsTab } from "./rights.tsx";
import { RunsTab } from "./running/tab.tsx";
import { SchedulesTab } from "./schedules/tab.tsx";
import { StatusTab } from "./status.tsx";
import { TokensTab } from "./tokens/tab.tsx";
import { BackupsTab } from "./upkeep/backups.tsx";
import { DoctorTab } from "./upkeep/doctor.tsx";
import { UsageTab } from "./usage/tab.tsx";

interface Tab {
  readonly title: string;
  readonly scope: Parameters<typeof may>[0];
  /** Method that the gateway must support. */
  readonly method: string;
  /** True if the tab shows data of all sessions. Then the token must cover all sessions. */
  readonly whole?: true;
  /** `about` is the rest of the address, for example the key of a session. */
  readonly component: ComponentType<{ about: string | undefined }>;
}

const TABS: readonly Tab[] = [
  { title: "Status", scope: "operator.read", method: "status", component: StatusTab },
  { title: "Runs", scope: "operator.read", method: "runs.list", component: RunsTab },
  { title: "Usage", scope: "operator.read", method: "usage", component: UsageTab },
  { title: "Agents", scope: "operator.read", method: "agents.describe", component: AgentsTab },
  { title: "Schedules", scope: "operator.read", method: "cron.list", component: SchedulesTab },
  { title: "Deliveries", scope: "operator.admin", method: "deliveries.list", component: DeliveriesTab },
  { title: "Channels", scope: "operator.read", method: "channels.status", component: ChannelsTab },
  { title: "Rights", scope: "operator.read", method: "tools.catalog", component: RightsTab },
  { title: "Permissions", scope: "operator.read", method: "permissions.list", component: PermissionsTab },
  { title: "Tokens", scope: "operator.admin", method: "tokens.list", component: TokensTab },
  { title: "Nodes", scope: "operator.admin", method: "node.pair.list", component: NodesTab },
  { title: "Backups", scope: "operator.admin", method: "store.backups", whole: true, component: BackupsTab },
  { title: "Doctor", scope: "operator.admin", method: "doctor", whole: true, component: DoctorTab },
  { title: "Log", scope: "operator.admin", method: "logs.tail", whole: true, component: LogTab },
  {
    title: "Configuration",
    scope: "operator.admin",
    method: "config.check",
    whole: true,
    component: ConfigurationTab,
  },
];

/** Returns the name that the tab has in the address. */
const nameOf = ({ title }: Tab): string => title.toLowerCase();

export function OperationsView() {
  const at = route.value;
  const tabs = useRef<HTMLElement>(null);
  const shown = at.view === "operations" ? at.tab : undefined;
  // On a phone not all tabs fit. Scrolls to the current one.
  useEffect(() => {
    tabs.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [shown]);
  if (at.view !== "operations") return null;
  const offered = TABS.filter(
    ({ scope, method, whole }) => may(scope) && has(method) && (whole !== true || coversAll()),
  );
  const current = offered.find((tab) => nameOf(tab) === at.tab) ?? offered[0];
  if (current === undefined)
    return <p class="empty">This token has no access to operations. Sign in with another one.</p>;
  const Shown = current.component;
  return (
    <div class="operations">
      <nav ref={tabs} class="tabs" aria-label="Operations">
        {offered.map((tab) => (
          <a
            key={tab.title}
            href={hrefOf({ view: "operations", tab: nameOf(tab) })}
            aria-current={tab === current ? "page" : undefined}
          >
            {tab.title}
          </a>
        ))}
      </nav>
      <div class="tab-body">
        <Shown key={current.title} about={at.about} />
      </div>
    </div>
  );
}
