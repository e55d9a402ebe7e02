// Loses the connection to PostgreSQL at each message of a story in turn, in every way, while the process
// continues. Checks that nothing would have ended the process, and that all work is done.

import { expect, test } from "vitest";
import { sharedWorld } from "../../src/engine/cluster/shared-world.ts";
import { openPostgres } from "../../src/store/postgres/postgres.ts";
import type { Store } from "../../src/store/sql.ts";
import type { World } from "../../src/world.ts";
import { quietWorld } from "../kit/engine/engine.ts";
import { openFlowApp } from "../kit/engine/flow-app.ts";
import { openSpawnApp } from "../kit/engine/spawn-app.ts";
import { noteEscapes } from "../kit/process/escapes.ts";
import { takeSchema } from "../kit/store/postgres.ts";
import { PATIENCE_MS, until } from "../kit/until.ts";
import { CUTS, openTcpProxy } from "../store/postgres/tcp-proxy.ts";
import { MAIN, RESEARCH } from "./conversation/asking.ts";
import { scenario } from "./conversation/story.ts";
import { fanOut } from "./job/fan-out-story.ts";

/** Number of messages of each story at which the connection is lost, each in another way. */
const MESSAGES = 30;

interface App {
  readonly engine: { stop(graceMs: number): Promise<void> };
  tell(name: string): Promise<unknown>;
  isQuiet(): Promise<boolean>;
}

const stories: Record<string, (disk: Store, world: World) => Promise<App>> = {
  async conversation(disk, world) {
    const app = await openFlowApp({ ...scenario(30), disk, world });
    await app.route(MAIN, RESEARCH);
    return { ...app, tell: (name) => app.tell(MAIN, "go", { runId: name }) };
  },
  async "fan-out"(disk, world) {
    const app = await openSpawnApp({ ...fanOut.app, disk, world });
    await app.route(MAIN);
    return { ...app, tell: (name) => app.tell(MAIN, "go", name) };
  },
};

test.each(Object.entries(stories))(
  "no lost connection ends the process during a %s",
  { timeout: PATIENCE_MS },
  async (_name, open) => {
    const escapes = noteEscapes();
    const { url, give } = await takeSchema();
    const { port } = new URL(url);
    const tap = await openTcpProxy(Number(port));
    const world = quietWorld();
    const disk = await openPostgres({ url: url.replace(`:${port}/`, `:${tap.port}/`), world });
    const app = await open(disk, sharedWorld(disk, world));
    const cuts = Object.values(CUTS);
    for (let at = 1; at <= MESSAGES; at += 1) {
      let left = at;
      cuts[at % cuts.length]?.(tap, () => --left === 0);
      const isAccepted = () =>
        app.tell(`go-${at}`).then(
          () => true,
          () => false,
        );
      await until(isAccepted);
      await until(() => app.isQuiet().catch(() => false));
    }
    await app.engine.stop(0);
    await disk.close();
    await tap.close();
    await give();
    expect(await escapes.end()).toEqual([]);
  },
);
