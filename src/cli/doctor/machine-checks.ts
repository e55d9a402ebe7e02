// Checks this machine (Node, configuration, store, token), and runs the checks of the other files.
// Levels: `ok` reports a fact, `warning` reports a risk, `problem` reports that something does not work.

import { join } from "node:path";
import { loadSettings } from "../../config.ts";
import { TOKEN_FILE } from "../../contract/protocol.ts";
import type { Settings } from "../../core/shapes/settings/settings.ts";
import { listProxies } from "../../world/proxy.ts";
import { generatedToken } from "../address.ts";
import type { Cli } from "../cli.ts";
import { count } from "../layout.ts";
import { checkPrograms, checkRemotes } from "./agent-checks.ts";
import { checkChannels } from "./channel-checks.ts";
import { checkDatabase } from "./database-checks.ts";
import { checkExec, checkSandbox } from "./exec-checks.ts";
import { checkFiles } from "./file-checks.ts";
import { alteredSchema, type Finding } from "./finding.ts";
import { checkHooks } from "./hook-checks.ts";
import { checkMcp } from "./mcp-checks.ts";
import { checkModels } from "./model-checks.ts";

const NODE_MAJOR_MIN = 24;

function checkNode(version: string): Finding {
  const enough = Number.parseInt(version, 10) >= NODE_MAJOR_MIN;
  const text = `Node ${version}`;
  if (enough) return { name: "node", level: "ok", text };
  return {
    name: "node",
    level: "problem",
    text,
    mend: `Install Node ${NODE_MAJOR_MIN} or newer from https://nodejs.org.`,
  };
}

async function checkStore(cli: Cli, settings: Settings): Promise<{ findings: Finding[]; held: boolean }> {
  const { postgresUrl } = settings.store;
  // For PostgreSQL, `held` is false: other machines may use the store, so it does not show whether a gateway
  // runs here.
  if (postgresUrl !== undefined) {
    return { findings: await checkDatabase(cli, postgresUrl), held: false };
  }
  const report = await cli.parts.checkStore(settings.store);
  const level = report.state === "problem" ? "problem" : "ok";
  const found: Finding =
    report.damage === undefined
      ? { name: "store", level, text: report.text }
      : { name: "store", level: "problem", text: report.damage };
  const altered = alteredSchema(report.differences);
  return { findings: [found, ...altered], held: report.state === "in_use" };
}

async function checkToken(settings: Settings): Promise<Finding> {
  const name = "token";
  const more = settings.gateway.tokens.length;
  const scoped = more === 0 ? "" : `, and ${count(more, "token")} with fewer rights`;
  if (settings.gateway.token !== undefined) {
    return { name, level: "ok", text: `from the configuration or PARLEY_TOKEN${scoped}` };
  }
  const known = (await generatedToken(settings.store.dir)) !== undefined;
  const file = join(settings.store.dir, TOKEN_FILE);
  const text = known
    ? `generated, in ${file}${scoped}`
    : `none yet; the first start generates one in ${file}`;
  return { name, level: "ok", text };
}

/** Names the proxies of the environment, which all requests use. */
function checkProxies(): Finding[] {
  return listProxies().map(({ variable, address, usable }): Finding => {
    const name = "proxy";
    if (usable) return { name, level: "ok", text: `${address}, from ${variable}` };
    const text = `${variable} names ${address}, which is not used: only HTTP proxies are supported`;
    return {
      name,
      level: "warning",
      text,
      mend: "Set it to an address that begins with http:// or https://.",
    };
  });
}

export interface MachineFindings {
  readonly findings: readonly Finding[];
  /** Absent if the configuration is invalid. */
  readonly settings?: Settings;
  /** True if a gateway of this machine uses the store. */
  readonly storeHeld: boolean;
}

/** Reports optional packages that the settings need but that are not installed. */
async function checkInstall(cli: Cli, settings: Settings): Promise<Finding[]> {
  const text = await cli.parts.missingFor?.(settings);
  return text === undefined ? [] : [{ name: "install", level: "problem", text }];
}

/**
 * Checks MCP servers, agents elsewhere and channel accounts. With `offline`, only lists these checks as
 * skipped.
 */
async function checkOutside(cli: Cli, settings: Settings, offline: boolean): Promise<Finding[]> {
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
  if (left.length === 0) return [];
  return [{ name: "outside", level: "ok", text: `${left.join(", ")}: not checked (--offline)` }];
}

/** Runs all checks that need no gateway. With `offline`, nothing outside this machine is called. */
export async function checkMachine(cli: Cli, offline: boolean): Promise<MachineFindings> {
  const { parts, options } = cli;
  const findings: Finding[] = [checkNode(parts.nodeVersion)];
  const named = options.config === undefined ? {} : { configPath: options.config };
  const loaded = loadSettings({ env: parts.env, home: parts.home, ...named });
  if (!loaded.ok) {
    findings.push({
      name: "config",
      level: "problem",
      text: loaded.error,
      mend: "Fix it, then run: npx parley-gateway config check",
    });
    return { findings, storeHeld: false };
  }
  const { settings, warnings, path, exists } = loaded.value;
  findings.push({
    name: "config",
    level: "ok",
    text: exists ? path : `${path} does not exist, so every setting has its default`,
  });
  for (const warning of warnings) findings.push({ name: "config", level: "warning", text: warning });
  const store = await checkStore(cli, settings);
  findings.push(
    ...checkProxies(),
    ...store.findings,
    await checkToken(settings),
    ...(await checkFiles(cli, settings, path)),
    ...(await checkModels(cli, settings, offline)),
    ...(await checkPrograms(cli, settings)),
    ...checkExec(settings),
    ...(await checkSandbox(cli, settings)),
    ...(await checkHooks(settings)),
    ...(await checkInstall(cli, settings)),
    ...(await checkOutside(cli, settings, offline)),
  );
  return { findings, settings, storeHeld: store.held };
}
