// The view of the tabs for operators, which `tabs.ts` lists.

import type { ComponentType } from "preact";
import { useEffect, useRef } from "preact/hooks";
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
import { ServersTab } from "./servers/tab.tsx";
import { StatusTab } from "./status.tsx";
import { offeredTabs, type TabTitle } from "./tabs.ts";
import { TokensTab } from "./tokens/tab.tsx";
import { BackupsTab } from "./upkeep/backups.tsx";
import { DoctorTab } from "./upkeep/doctor.tsx";
import { UsageTab } from "./usage/tab.tsx";

/** The content of each tab. `about` is the rest of the address, for example the key of a session. */
const CONTENT: Readonly<Record<TabTitle, ComponentType<{ about: string | undefined }>>> = {
  Status: StatusTab,
  Runs: RunsTab,
  Usage: UsageTab,
  Agents: AgentsTab,
  Schedules: SchedulesTab,
  Deliveries: DeliveriesTab,
  Channels: ChannelsTab,
  Rights: RightsTab,
  Permissions: PermissionsTab,
  Tokens: TokensTab,
  Nodes: NodesTab,
  Servers: ServersTab,
  Backups: BackupsTab,
  Doctor: DoctorTab,
  Log: LogTab,
  Configuration: ConfigurationTab,
};

export function OperationsView() {
  const at = route.value;
  const tabs = useRef<HTMLElement>(null);
  const shown = at.view === "operations" ? at.tab : undefined;
  // Scroll to the current tab, because not all tabs fit on a phone.
  useEffect(() => {
    tabs.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [shown]);
  if (at.view !== "operations") return null;
  const offered = offeredTabs();
  const current = offered.find(({ name }) => name === at.tab) ?? offered[0];
  if (current === undefined)
    return <p class="empty">This token has no access to operations. Sign in with another one.</p>;
  const Shown = CONTENT[current.title];
  return (
    <div class="operations">
      <nav ref={tabs} class="tabs" aria-label="Operations">
        {offered.map((tab) => (
          <a
            key={tab.title}
            href={hrefOf({ view: "operations", tab: tab.name })}
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
