// Opens a whole gateway in this process for benchmarks.

import { type App, openApp } from "../src/app.ts";
import { loadSettings } from "../src/config.ts";
import type { Settings } from "../src/core/shapes/settings/settings.ts";
import { world } from "./engine-alone.ts";
import { inFolder } from "./in-folder.ts";

/** Opens a gateway over a new store. `adjust` changes the default settings. */
export async function withApp<T>(
  work: (app: App, settings: Settings) => Promise<T>,
  adjust: (settings: Settings) => Settings = (settings) => settings,
): Promise<T> {
  return inFolder(async (home) => {
    const loaded = loadSettings({ env: {}, home, overrides: { port: 0 } });
    if (!loaded.ok) throw new Error(loaded.error);
    const settings = adjust(loaded.value.settings);
    const app = await openApp({ settings, world, version: "bench", environment: {} });
    if (!app.ok) throw new Error(app.error);
    try {
      return await work(app.value, settings);
    } finally {
      await app.value.close(0);
    }
  });
}
