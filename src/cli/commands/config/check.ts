// Implements `parley config check`: reports every problem of the configuration, or prints a summary.

import { loadSettings } from "../../../config.ts";
import { storeName } from "../../../core/shapes/settings/settings.ts";
import { safeLine } from "../../../core/text/safe-text.ts";
import { type Cli, EXIT, loadOptionsOf } from "../../cli.ts";

export async function checkConfig(cli: Cli): Promise<number> {
  const { parts } = cli;
  const loaded = loadSettings(loadOptionsOf(cli));
  if (!loaded.ok) return cli.fail(loaded);
  const { settings, path, exists } = loaded.value;
  const missing = await parts.missingFor?.(settings);
  const warnings = [...loaded.value.warnings, ...(missing === undefined ? [] : [missing])];
  const { host, port } = settings.gateway;
  const { visibility, agentToAgent } = settings.tools;
  const agents = settings.agents.map(({ id, model }) => ({ id, model }));
  const { enabled, allow } = agentToAgent;
  const between = enabled
    ? `agents can reach each other (${allow.length === 0 ? "all agents" : allow.join(", ")})`
    : "agents cannot reach sessions of other agents";
  const lines = [
    `${path}: ${exists ? "no problem found" : "this file does not exist, so every setting has its default"}.`,
    `agents   ${agents.map(({ id, model }) => `${id} on ${model}`).join(", ")}`,
    `gateway  ${host}:${port}`,
    `store    ${storeName(settings.store)}`,
    `tools    visibility "${visibility}", ${between}`,
  ];
  for (const line of lines) cli.say(line);
  for (const warning of warnings) cli.note(`warning: ${safeLine(warning)}`);
  cli.document({
    ok: true,
    path,
    exists,
    warnings,
    gateway: { host, port },
    storeDir: settings.store.dir,
    store: storeName(settings.store),
    agents,
    visibility,
    agentToAgent,
  });
  return EXIT.done;
}
