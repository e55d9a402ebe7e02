// The view of the tabs for operators, which `tabs.ts` lists.

import { FEATURE_TABS } from "../features.ts";
import { hrefOf, route } from "../route.ts";
import { ChannelsTab } from "./channels.tsx";
import { ConfigurationTab } from "./configuration.tsx";
import { DeliveriesTab } from "./deliveries.tsx";
import { LogTab } from "./log.tsx";
import { PermissionsTab } from "./permissions.tsx";
import { RightsTab } from "./rights.tsx";
import { RunsTab } from "./running/tab.tsx";
import { ServersTab } from "./servers/tab.tsx";
import { StatusTab } from "./status.tsx";
import { GROUPS, offeredTabs, type TabRow, type TabTitle } from "./tabs.ts";
import { TokensTab } from "./tokens/tab.tsx";
import { BackupsTab } from "./upkeep/backups.tsx";
import { UsageTab } from "./usage/tab.tsx";

type Tab = TabRow["Tab"];

const KERNEL_TABS: Readonly<Record<TabTitle, Tab>> = {
  Status: StatusTab,
  Runs: RunsTab,
  Usage: UsageTab,
  Deliveries: DeliveriesTab,
  Channels: ChannelsTab,
  Rights: RightsTab,
  Permissions: PermissionsTab,
  Tokens: TokensTab,
  Servers: ServersTab,
  Backups: BackupsTab,
  Log: LogTab,
  Configuration: ConfigurationTab,
};
const CONTENT: Readonly<Record<string, Tab>> = {
  ...KERNEL_TABS,
  ...Object.fromEntries(FEATURE_TABS.map(({ title, Tab: its }) => [title, its])),
};

type Offered = ReturnType<typeof offeredTabs>;

const addressOf = (name = ""): string => hrefOf({ view: "operations", tab: name });

/**
 * Shows the tabs by group. A narrow window has no room for all of them: it shows links to the groups, each of
 * which opens the first tab of the group, and the tabs of the current group.
 */
function Tabs({ offered, current }: { offered: Offered; current: Offered[number] }) {
  const groups = GROUPS.map((title) => ({
    title,
    tabs: offered.filter(({ group }) => group === title),
  })).filter(({ tabs }) => tabs.length > 0);
  return (
    <nav class="strip tabs" aria-label="Operations">
      <div class="tab-groups">
        {groups.map(({ title, tabs: [first] }) => (
          <a
            key={title}
            href={addressOf(first?.name)}
            aria-current={title === current.group ? "true" : undefined}
          >
            {title}
          </a>
        ))}
      </div>
      {groups.map(({ title, tabs }) => (
        <ul key={title} class={`tab-group ${title === current.group ? "current" : ""}`} aria-label={title}>
          <li class="tab-group-name" aria-hidden="true">
            {title}
          </li>
          {tabs.map((tab) => (
            <li key={tab.title}>
              <a href={addressOf(tab.name)} aria-current={tab.title === current.title ? "page" : undefined}>
                {tab.title}
              </a>
            </li>
          ))}
        </ul>
      ))}
    </nav>
  );
}

export function OperationsView() {
  const at = route.value;
  if (at.view !== "operations") return null;
  const offered = offeredTabs();
  const current = offered.find(({ name }) => name === at.tab) ?? offered[0];
  if (current === undefined)
    return <p class="empty">This token has no access to operations. Sign in with another one.</p>;
  const Shown = CONTENT[current.title] ?? StatusTab;
  return (
    <div class="operations">
      <Tabs offered={offered} current={current} />
      <div class="tab-body">
        <Shown key={current.title} about={at.about} />
      </div>
    </div>
  );
}
