// The tabs for operators.
// OP1: a tab is offered only if the token has its scope.

import type { ComponentType } from "preact";
import { FEATURE_TABS } from "../features.ts";
import { coversAll, has, may } from "../gateway.ts";

export const GROUPS = ["Now", "Access", "Connections", "Upkeep"] as const;

interface TabFacts {
  readonly title: string;
  readonly group: (typeof GROUPS)[number];
  readonly scope: Parameters<typeof may>[0];
  /** A method that the gateway must support. */
  readonly method: string;
  /** Set if the tab shows data of all sessions, so the token must cover all of them. */
  readonly whole?: true;
}

/** The tab of a feature. `about` is the rest of the address, for example the key of a session. */
export interface TabRow extends TabFacts {
  /** The title of the tab after which it stands. Default: the last of its group. */
  readonly after?: string;
  readonly Tab: ComponentType<{ about: string | undefined }>;
  /** Answers an item of the inbox, by the kind of the item. */
  readonly decide?: Readonly<Record<string, (ref: string, approves: boolean) => Promise<unknown>>>;
}

const TABS = [
  { title: "Status", group: "Now", scope: "operator.read", method: "status" },
  { title: "Runs", group: "Now", scope: "operator.read", method: "runs.list" },
  { title: "Usage", group: "Now", scope: "operator.read", method: "usage" },
  { title: "Deliveries", group: "Connections", scope: "operator.admin", method: "deliveries.list" },
  { title: "Channels", group: "Connections", scope: "operator.read", method: "channels.status" },
  { title: "Rights", group: "Access", scope: "operator.read", method: "tools.catalog" },
  { title: "Permissions", group: "Access", scope: "operator.read", method: "permissions.list" },
  { title: "Tokens", group: "Access", scope: "operator.admin", method: "tokens.list" },
  { title: "Servers", group: "Connections", scope: "operator.read", method: "servers.list", whole: true },
  { title: "Backups", group: "Upkeep", scope: "operator.admin", method: "store.backups", whole: true },
  { title: "Log", group: "Upkeep", scope: "operator.admin", method: "logs.tail", whole: true },
  { title: "Configuration", group: "Upkeep", scope: "operator.admin", method: "config.check", whole: true },
] as const satisfies readonly TabFacts[];

export type TabTitle = (typeof TABS)[number]["title"];

/** Returns the tabs that the reader may open, with their names in the address. */
export function offeredTabs() {
  const behind = (title?: string) => FEATURE_TABS.filter(({ after }) => after === title);
  const rows: readonly TabFacts[] = [...TABS.flatMap((tab) => [tab, ...behind(tab.title)]), ...behind()];
  return rows
    .filter(({ scope, method, whole }) => may(scope) && has(method) && (whole !== true || coversAll()))
    .map(({ title, group }) => ({ title, group, name: title.toLowerCase() }));
}
