// Adds the tab of paired devices, and answers to their requests in the inbox.

import { ask } from "../../gateway.ts";
import type { TabRow } from "../../operations/tabs.ts";
import { lazy } from "../../parts/lazy.tsx";

export const NODES_TAB: TabRow = {
  title: "Nodes",
  group: "Connections",
  scope: "operator.admin",
  method: "node.pair.list",
  Tab: lazy(async () => (await import("./tab.tsx")).NodesTab),
  decide: {
    node: (requestId, approves) => ask(approves ? "node.pair.approve" : "node.pair.reject", { requestId }),
  },
};
