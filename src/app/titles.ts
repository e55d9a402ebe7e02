// Lets models write the titles of conversations while the settings request this. Part of the composition
// root.

import { openModelPort } from "../agent/model/port.ts";
import type { Settings } from "../core/shapes/settings/settings.ts";
import type { Engine } from "../engine/engine.ts";
import type { Watch } from "../feature.ts";
import type { World } from "../world.ts";
import { engineSettings } from "./engine-settings.ts";

interface TitleParts {
  readonly settings: Settings;
  readonly world: World;
  readonly engine: Engine;
  readonly watch: Watch;
}

/** Starts or stops the titles, as the settings request. The first start loads their code. */
export function titlesOf({ settings, world, engine, watch }: TitleParts) {
  let stop: (() => Promise<void>) | undefined;
  const close = async (): Promise<void> => {
    await stop?.();
    stop = undefined;
  };
  const apply = async (): Promise<void> => {
    if (settings.titles !== "model") return close();
    if (stop !== undefined) return;
    const { Titles } = await import("../execute/titles.ts");
    const { commit, bus, store } = engine;
    const port = openModelPort(world, watch.modelCalled);
    const limits = engineSettings(settings);
    stop = new Titles({ settings, db: store.db, world, port, commit, limits }).follow(bus);
  };
  return { apply, close };
}
