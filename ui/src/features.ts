// Lists the tabs of features. A feature is left out by removing its folder and its lines here.

import { CRON_TAB } from "./features/cron/feature.ts";
import { NODES_TAB } from "./features/nodes/feature.ts";
import type { TabRow } from "./operations/tabs.ts";

export const FEATURE_TABS: readonly TabRow[] = [CRON_TAB, NODES_TAB];
