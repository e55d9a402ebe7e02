// Checks what Parley calls outside of itself: channel accounts, MCP servers, and what features add.
// An account to which anybody may write is always reported, even if it is intended. A server without tools is
// a problem, because runs continue without the tools that they expect.

import type { Cli } from "../../../cli/cli.ts";
import { FEATURE_CHECKS } from "../../../cli/run.ts";
import type { Settings } from "../../../core/shapes/settings/settings.ts";
import type { Finding } from "../../../feature.ts";
import { silenced } from "../../../world.ts";
import { bad, good, risk } from "./finding.ts";

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

/** Runs the checks of features. `isOutside`: those that reach beyond this machine, or the others. */
export async function checkFeatures(cli: Cli, settings: Settings, isOutside: boolean): Promise<Finding[]> {
  const checks = FEATURE_CHECKS.filter(
    (one) => one.isOutside === isOutside && one.subjects(settings).length > 0,
  );
  const findings = await Promise.all(checks.map(async ({ load }) => (await load()).check(cli, settings)));
  return findings.flat();
}

/**
 * Checks MCP servers, agents elsewhere and channel accounts. With `offline`, only lists these checks as
 * skipped.
 */
export async function checkOutside(cli: Cli, settings: Settings, offline: boolean): Promise<Finding[]> {
  if (!offline)
    return [
      ...(await checkMcp(cli, settings)),
      ...(await checkFeatures(cli, settings, true)),
      ...(await checkChannels(cli, settings)),
    ];
  const left = [
    ...settings.tools.mcp.servers.map((one) => one.name),
    ...FEATURE_CHECKS.flatMap((one) => (one.isOutside ? one.subjects(settings) : [])),
    ...settings.channels.map(({ channel, accountId }) => `${channel}:${accountId}`),
  ];
  return left.length === 0 ? [] : [good("outside", `${left.join(", ")}: not checked (--offline)`)];
}
