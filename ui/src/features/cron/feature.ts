// Adds the tab of scheduled jobs.

import type { TabRow } from "../../operations/tabs.ts";
import { lazy } from "../../parts/lazy.tsx";

export const CRON_TAB: TabRow = {
  title: "Schedules",
  group: "Now",
  scope: "operator.read",
  method: "cron.list",
  Tab: lazy(async () => (await import("./tab.tsx")).SchedulesTab),
};
