// Owns what the doctor finds on this machine: Node, configuration, store, files' permissions, token,
// models. What agents may run, and whether that is contained, is in exec-checks.ts.
// HC1: a finding that is no more than a fact is `ok`; what may surprise is a warning; what keeps it from
//      working a problem.

import { stat } from "node:fs/promises";
import { join } from "node:path";
import { loadSettings } from "../../config.ts";
import type { Settings } from "../../core/settings.ts";
import { TOKEN_FILE } from "../../gateway/protocol.ts";
import { generatedToken } from "../address.ts";
import type { Cli } from "../cli.ts";
import { count } from "../layout.ts";
import { checkChannels } from "./channel-checks.ts";
import { checkDatabase } from "./database-checks.ts";
import { checkExec, checkSandbox } from "./exec-checks.ts";
import type { Finding } from "./finding.ts";
import { checkHooks } from "./hook-checks.ts";
import { checkMcp } from "./mcp-checks.ts";

const NODE_MAJOR_MIN = 24;
const OTHERS = 0o077;

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

/** A file or directory that only its owner should read. */
async function checkPrivate(file: string): Promise<Finding[]> {
  const found = await stat(file).catch(() => undefined);
  if (found === undefined || process.platform === "win32" || (found.mode & OTHERS) === 0) return [];
  const mode = (found.mode & 0o777).toString(8);
  const wanted = found.isDirectory() ? "700" : "600";
  const text = `${file} has mode ${mode}: other users of this machine may read it`;
  return [{ name: "permissions", level: "warning", text, mend: `chmod ${wanted} ${file}` }];
}

async function checkStore(cli: Cli, settings: Settings): Promise<{ findings: Finding[]; held: boolean }> {
  const { dir, postgresUrl } = settings.store;
  const parts = [await checkPrivate(dir), await checkPrivate(join(dir, TOKEN_FILE))].flat();
  // Whether a gateway of a cluster runs here is not to be seen from the store.
  if (postgresUrl !== undefined) {
    return { findings: [...(await checkDatabase(cli, postgresUrl)), ...parts], held: false };
  }
  const report = await cli.parts.inspectStore(dir);
  const level = report.state === "problem" ? "problem" : "ok";
  const found = { name: "store", level, text: report.text } as const;
  return { findings: [found, ...parts], held: report.state === "in_use" };
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
    : `none yet: the first start generates one in ${file}`;
  return { name, level: "ok", text };
}

function checkModels(settings: Settings): Finding[] {
  const { providers, agents } = settings;
  const used = [...new Set(agents.map((agent) => agent.model))];
  const offline = used.every((model) => model.startsWith("offline/"));
  const known = providers.map(({ id, models }) => `${id} (${count(models.length, "model")})`).join(", ");
  const text = `${providers.length === 0 ? "no provider" : known}; agents use ${used.join(", ")}`;
  if (!offline) return [{ name: "models", level: "ok", text }];
  const mend = "Set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or configure models.providers.";
  return [{ name: "models", level: "warning", text: `${text}: nobody answers but the offline model`, mend }];
}

export interface House {
  readonly findings: readonly Finding[];
  /** Absent when the configuration is wrong. */
  readonly settings?: Settings;
  /** A gateway holds the store. */
  readonly storeHeld: boolean;
}

export async function checkHouse(cli: Cli): Promise<House> {
  const { parts, options } = cli;
  const findings: Finding[] = [checkNode(parts.nodeVersion)];
  const named = options.config === undefined ? {} : { configPath: options.config };
  const loaded = loadSettings({ env: parts.env, home: parts.home, ...named });
  if (!loaded.ok) {
    findings.push({
      name: "config",
      level: "problem",
      text: loaded.error,
      mend: "Mend it, then: parley config check",
    });
    return { findings, storeHeld: false };
  }
  const { settings, warnings, path, exists } = loaded.value;
  findings.push({
    name: "config",
    level: "ok",
    text: exists ? path : `${path} does not exist: everything has its default`,
  });
  for (const warning of warnings) findings.push({ name: "config", level: "warning", text: warning });
  const store = await checkStore(cli, settings);
  findings.push(
    ...store.findings,
    await checkToken(settings),
    ...checkModels(settings),
    ...checkExec(settings),
    ...(await checkSandbox(cli, settings)),
    ...(await checkHooks(settings)),
    ...(await checkMcp(cli, settings)),
    ...(await checkChannels(cli, settings)),
  );
  return { findings, settings, storeHeld: store.held };
}
