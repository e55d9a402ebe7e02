// Starts and stops each configured MCP server.
// A server that provides no tools is a problem: runs continue, but without the tools that they expect.

import type { Settings } from "../../core/shapes/settings/settings.ts";
import type { Cli } from "../cli.ts";
import type { Finding } from "./finding.ts";

export async function checkMcp(cli: Cli, settings: Settings): Promise<Finding[]> {
  const { inspectMcp } = cli.parts;
  const { servers } = settings.tools.mcp;
  if (inspectMcp === undefined || servers.length === 0) return [];
  const reports = await inspectMcp(settings);
  return reports.map(({ server, usable, text }): Finding => {
    const one = servers.find(({ name }) => name === server);
    const whose = one === undefined || one.agents.length === 0 ? "every agent" : one.agents.join(", ");
    const finding = { name: "mcp", text: `${server}, for ${whose}: ${text}` };
    if (usable) return { ...finding, level: "ok" };
    const mend = `Fix tools.mcp.servers.${server}, or disable it with enabled: false.`;
    return { ...finding, level: "problem", mend };
  });
}
