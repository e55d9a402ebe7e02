// The tabs for operators.
// OP1: a tab is offered only if the token has its scope.

import { coversAll, has, may } from "../gateway.ts";

/**
 * The gateway must support the method. `whole`: the tab shows data of all sessions, so the token must cover
 * all of them.
 */
const TABS = [
  { title: "Status", scope: "operator.read", method: "status" },
  { title: "Runs", scope: "operator.read", method: "runs.list" },
  { title: "Usage", scope: "operator.read", method: "usage" },
  { title: "Agents", scope: "operator.read", method: "agents.describe" },
  { title: "Schedules", scope: "operator.read", method: "cron.list" },
  { title: "Deliveries", scope: "operator.admin", method: "deliveries.list" },
  { title: "Channels", scope: "operator.read", method: "channels.status" },
  { title: "Rights", scope: "operator.read", method: "tools.catalog" },
  { title: "Permissions", scope: "operator.read", method: "permissions.list" },
  { title: "Tokens", scope: "operator.admin", method: "tokens.list" },
  { title: "Nodes", scope: "operator.admin", method: "node.pair.list" },
  { title: "Servers", scope: "operator.read", method: "servers.list", whole: true },
  { title: "Backups", scope: "operator.admin", method: "store.backups", whole: true },
  { title: "Doctor", scope: "operator.admin", method: "doctor", whole: true },
  { title: "Log", scope: "operator.admin", method: "logs.tail", whole: true },
  { title: "Configuration", scope: "operator.admin", method: "config.check", whole: true },
] as const satisfies readonly {
  readonly title: string;
  readonly scope: Parameters<typeof may>[0];
  readonly method: string;
  readonly whole?: true;
}[];

export type TabTitle = (typeof TABS)[number]["title"];

/** Returns the tabs that the reader may open, with their names in the address. */
export function offeredTabs(): { title: TabTitle; name: string }[] {
  return TABS.filter((tab) => may(tab.scope) && has(tab.method) && (!("whole" in tab) || coversAll())).map(
    ({ title }) => ({ title, name: title.toLowerCase() }),
  );
}
