// A configuration file in a temporary folder, and the functions with which a gateway reads and writes it.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { checkAgain } from "../../src/config/check.ts";
import { openConfigFile } from "../../src/config/editing/editing.ts";
import { loadSettings } from "../../src/config.ts";
import { temporaryFolder } from "./engine/engine.ts";

/** Makes a configuration file with this text, or no file, for a gateway with default settings. */
export function configFileWith(text: string | undefined, env: Readonly<Record<string, string>> = {}) {
  const home = temporaryFolder();
  const path = join(home, "parley.json5");
  const options = { env: { PARLEY_CONFIG: path, ...env }, home };
  const first = loadSettings({ env: {}, home });
  if (!first.ok) throw new Error(first.error);
  const running = first.value.settings;
  if (text !== undefined) writeFileSync(path, text, { mode: 0o600 });
  return {
    path,
    running,
    read: () => readFileSync(path, "utf8"),
    checkConfig: () => checkAgain(options, running),
    configFile: async () => openConfigFile(options, running),
  };
}
