// Checks what Parley calls outside of itself: channel accounts, MCP servers, agents with a `runtime`.
// An account to which anybody may write is always reported, even if it is intended. A server without tools is
// a problem, because runs continue without the tools that they expect.

import type { Cli } from "../../../cli/cli.ts";
import { programOf, type Settings } from "../../../core/shapes/settings/settings.ts";
import type { Finding } from "../../../feature.ts";
import { isProgram, SEARCH_PATH } from "../../../world/programs.ts";
import { silenced } from "../../../world.ts";
import { bad, good, risk } from "./finding.ts";

/** Looks for each program in the PATH of its runs: the agent's own PATH, else that of this process. */
export async function checkPrograms({ parts }: Cli, { agents }: Settings): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const agent of agents) {
    const { id, workspace } = agent;
    const runtime = programOf(agent);
    const [program] = runtime?.command ?? [];
    if (runtime === undefined || program === undefined) continue;
    const path = runtime.env.PATH ?? parts.env.PATH ?? SEARCH_PATH;
    const isThere = await isProgram(program, { path, cwd: runtime.cwd ?? workspace });
    const missing = `agent ${id}: program ${JSON.stringify(program)} not found, so its runs fail`;
    const mend = "Install it, or set its full path in agents.list[].runtime.command.";
    findings.push(
      isThere ? good("programs", `agent ${id}: found ${program}`) : bad("programs", missing, mend),
    );
  }
  return findings;
}

/** Reads the card of each agent elsewhere. */
async function checkRemotes({ parts }: Cli, { agents }: Settings): Promise<Finding[]> {
  const world = silenced(parts.world);
  const found = agents.map(async ({ id, runtime }): Promise<Finding[]> => {
    if (runtime?.type !== "a2a") return [];
    const { inspectRemote } = await import("../../../agent/a2a/remote.ts");
    const { usable, text } = await inspectRemote(runtime, world);
    const mend = `Check card, key and token in agents.list[${id}].runtime.`;
    return [usable ? good("a2a", `agent ${id}: ${text}`) : bad("a2a", `agent ${id}: ${text}`, mend)];
  });
  return (await Promise.all(found)).flat();
}

/** Starts and stops each configured MCP server. */
async function checkMcp({ parts }: Cli, settings: Settings): Promise<Finding[]> {
  const { servers } = settings.tools.mcp;
  if (servers.length === 0) return [];
  const { openOutsideServers } = await import("../../../tools/mcp/servers.ts");
  const { env: environment, machine } = parts;
  const world = silenced(parts.world);
  const outside = openOutsideServers({ settings, world, version: machine.version, environment });
  const reports = await outside.inspect().finally(() => outside.close());
  return reports.map(({ server, usable, text }) => {
    const { agents = [] } = servers.find(({ name }) => name === server) ?? {};
    const about = `${server}, for ${agents.length === 0 ? "every agent" : agents.join(", ")}: ${text}`;
    const mend = `Fix tools.mcp.servers.${server}, or disable it with enabled: false.`;
    return usable ? good("mcp", about) : bad("mcp", about, mend);
  });
}

/** Tests each channel account. Warns if anybody may write to one, or if several people share a session. */
async function checkChannels({ parts }: Cli, { channels, session }: Settings): Promise<Finding[]> {
  const { inspectChannels } = parts;
  if (channels.length === 0 || inspectChannels === undefined) return [];
  const findings = (await inspectChannels(channels)).map(({ account, usable, text }) => {
    const page = `docs/${account.split(":")[0]?.toUpperCase()}.md`;
    const mend = `See ${page}, then run: npx parley-gateway channels test`;
    return usable ? good("channels", `${account}: ${text}`) : bad("channels", `${account}: ${text}`, mend);
  });
  const open = channels.filter(({ dmPolicy, allowFrom }) => dmPolicy === "open" || allowFrom.includes("*"));
  if (open.length > 0) {
    const names = open.map(({ channel, accountId }) => `${channel}:${accountId}`).join(", ");
    const text = `anybody may write to ${names}, and an agent acts on the messages`;
    const mend = 'Set dmPolicy to "pairing" and remove "*" from allowFrom, unless this is intended.';
    findings.push(risk("channels", text, mend));
  }
  const isShared = open.length > 0 || channels.some(({ allowFrom }) => allowFrom.length > 1);
  if (session.dmScope === "main" && isShared) {
    const text = "several people share one main session, so the agent may tell one what another wrote";
    const mend = 'Set session.dmScope to "per-peer", unless they may all read each other\'s messages.';
    findings.push(risk("channels", text, mend));
  }
  return findings;
}

/**
 * Checks MCP servers, agents elsewhere and channel accounts. With `offline`, only lists these checks as
 * skipped.
 */
export async function checkOutside(cli: Cli, settings: Settings, offline: boolean): Promise<Finding[]> {
  if (!offline)
    return [
      ...(await checkMcp(cli, settings)),
      ...(await checkRemotes(cli, settings)),
      ...(await checkChannels(cli, settings)),
    ];
  const left = [
    ...settings.tools.mcp.servers.map((one) => one.name),
    ...settings.agents.flatMap(({ id, runtime }) => (runtime?.type === "a2a" ? [`agent ${id}`] : [])),
    ...settings.channels.map(({ channel, accountId }) => `${channel}:${accountId}`),
  ];
  return left.length === 0 ? [] : [good("outside", `${left.join(", ")}: not checked (--offline)`)];
}
