// Adds the tab of the doctor.

import type { TabRow } from "../../operations/tabs.ts";
import { lazy } from "../../parts/lazy.tsx";

export const DOCTOR_TAB: TabRow = {
  title: "Doctor",
  group: "Upkeep",
  after: "Backups",
  scope: "operator.admin",
  method: "doctor",
  whole: true,
  Tab: lazy(async () => (await import("./tab.tsx")).DoctorTab),
};
