// Checks this machine (Node, configuration, store, token), and runs the checks of the other files.
// Levels: `ok` reports a fact, `warning` reports a risk, `problem` reports that something does not work.

import { join } from "node:path";
import { generatedToken } from "../../../cli/address.ts";
import { type Cli, loadOptionsOf } from "../../../cli/cli.ts";
import { count } from "../../../cli/layout.ts";
import { loadSettings } from "../../../config.ts";
import { TOKEN_FILE } from "../../../contract/protocol.ts";
import type { Settings } from "../../../core/shapes/settings/settings.ts";
import type { Finding } from "../../../feature.ts";
import { listProxies } from "../../../world/proxy.ts";
import { checkDatabase } from "./database-checks.ts";
import { checkExec, checkSandbox } from "./exec-checks.ts";
import { checkFiles } from "./file-checks.ts";
import { alteredSchema, bad, good, risk } from "./finding.ts";
import { checkModels } from "./model-checks.ts";
import { checkFeatures, checkOutside } from "./outside-checks.ts";

const NODE_MAJOR_MIN = 24;

/** Checks the store as a start does, and reads it whole. `held`: a gateway of this machine uses it. */
export async function checkStore(
  cli: Cli,
  settings: Settings,
): Promise<{ findings: Finding[]; held: boolean }> {
  const { postgresUrl } = settings.store;
  // For PostgreSQL, `held` is false: other machines may use the store, so it does not show whether a gateway
  // runs here.
  if (postgresUrl !== undefined) return { findings: await checkDatabase(cli, postgresUrl), held: false };
  const { state, text, damage, differences } = (await import("../../../store/inspect.ts")).checkStoreDir(
    settings.store,
  );
  const isBad = damage !== undefined || state === "problem";
  const found = (isBad ? bad : good)("store", damage ?? text);
  return { findings: [found, ...alteredSchema(differences)], held: state === "in_use" };
}

async function checkToken({ gateway, store }: Settings): Promise<Finding> {
  const more = gateway.tokens.length;
  const scoped = more === 0 ? "" : `, and ${count(more, "token")} with fewer rights`;
  if (gateway.token !== undefined) return good("token", `from the configuration or PARLEY_TOKEN${scoped}`);
  const file = join(store.dir, TOKEN_FILE);
  const isKnown = (await generatedToken(store.dir)) !== undefined;
  const text = isKnown
    ? `generated, in ${file}${scoped}`
    : `none yet; the first start generates one in ${file}`;
  return good("token", text);
}

export interface MachineFindings {
  readonly findings: readonly Finding[];
  /** Absent if the configuration is invalid. */
  readonly settings?: Settings;
  /** True if a gateway of this machine uses the store. */
  readonly storeHeld: boolean;
}

/** Runs all checks that need no gateway. With `offline`, nothing outside this machine is called. */
export async function checkMachine(cli: Cli, offline: boolean): Promise<MachineFindings> {
  const { parts } = cli;
  const mend = `Install Node ${NODE_MAJOR_MIN} or newer from https://nodejs.org.`;
  const isEnough = Number.parseInt(parts.nodeVersion, 10) >= NODE_MAJOR_MIN;
  const findings: Finding[] = [
    isEnough ? good("node", `Node ${parts.nodeVersion}`) : bad("node", `Node ${parts.nodeVersion}`, mend),
  ];
  const loaded = loadSettings(loadOptionsOf(cli));
  if (!loaded.ok) {
    findings.push(bad("config", loaded.error, "Fix it, then run: npx parley-gateway config check"));
    return { findings, storeHeld: false };
  }
  const { settings, warnings, path, exists } = loaded.value;
  const text = exists ? path : `${path} does not exist, so every setting has its default`;
  findings.push(good("config", text));
  for (const warning of warnings) findings.push({ name: "config", level: "warning", text: warning });
  const store = await checkStore(cli, settings);
  // Optional packages that the settings need but that are not installed.
  const missing = await parts.missingFor?.(settings);
  findings.push(
    ...listProxies().map(({ variable, address, usable }) => {
      if (usable) return good("proxy", `${address}, from ${variable}`);
      const text = `${variable} names ${address}, which is not used: only HTTP proxies are supported`;
      return risk("proxy", text, "Set it to an address that begins with http:// or https://.");
    }),
    ...store.findings,
    await checkToken(settings),
    ...(await checkFiles(cli, settings, path)),
    ...(await checkModels(cli, settings, offline)),
    ...checkExec(settings),
    ...(await checkFeatures(cli, settings, false)),
    ...(await checkSandbox(cli, settings)),
    ...(missing === undefined ? [] : [bad("install", missing)]),
    ...(await checkOutside(cli, settings, offline)),
  );
  return { findings, settings, storeHeld: store.held };
}
