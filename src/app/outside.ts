// Opens the MCP servers of the settings. Part of the composition root. Their code is loaded once a server is
// configured.

import { fail } from "../core/shapes/errors.ts";
import type { OutsideParts, OutsideServers } from "../tools/mcp/servers.ts";
import type { OutsideTools } from "../tools/tool.ts";

export function outsideOf(parts: OutsideParts) {
  let opened: OutsideServers | undefined;
  const tools: OutsideTools = {
    forSession: async (...asked) => (await opened?.forSession(...asked)) ?? { tools: [], missing: [] },
    knownNames: () => opened?.knownNames() ?? [],
    statuses: () => opened?.statuses() ?? [],
    toolsOf: (name) => opened?.toolsOf(name) ?? { tools: [], leftOut: [] },
    test: async (name, signal) =>
      (await opened?.test(name, signal)) ?? fail("mcp_unavailable", "it is not configured"),
    signIn: (name) => opened?.signIn(name),
  };
  const apply = async (): Promise<void> => {
    if (opened !== undefined) opened.apply();
    else if (parts.settings.tools.mcp.servers.length > 0)
      opened = (await import("../tools/mcp/servers.ts")).openOutsideServers(parts);
  };
  return { tools, apply, close: async () => opened?.close() };
}
