// Engines of several gateways over one store, each acting as its own process: it can crash, pause, or lose an
// answer.

import { sharedWorld } from "../../../src/engine/cluster/shared-world.ts";
import { openPostgres } from "../../../src/store/postgres/postgres.ts";
import { StoreProblem } from "../../../src/store/problems.ts";
import type { SharedStore, Store } from "../../../src/store/sql.ts";
import type { World } from "../../../src/world.ts";
import { freshSchema, takeSchema } from "../store/postgres.ts";
import { cleanup, openStore, quietWorld, temporaryFolder } from "./engine.ts";
import { fakeWire } from "./fake-shared.ts";
import { type FlowApp, type FlowAppOptions, openFlowApp } from "./flow-app.ts";
import { type MortalProcess, mortalProcess } from "./mortal-store.ts";

/** The store of a cluster: each call opens one process's connection. */
export interface Ground {
  open(world: World): Promise<Store>;
  /** Hints between processes are lost, or delivered again. */
  cutWire(cut: boolean): void;
  /** Signals to every process that it may have missed something. */
  gap(): void;
}

export type OpenGround = () => Promise<Ground>;

/** An embedded store that several engines share, with hints that the test controls. */
export async function embeddedGround(): Promise<Ground> {
  const world = quietWorld();
  const disk = await openStore(temporaryFolder(), world);
  const wire = fakeWire();
  return { open: async (own) => wire.join(disk, own.clock), cutWire: wire.cut, gap: wire.gap };
}

export interface ClusterProcess extends MortalProcess {
  readonly app: FlowApp;
  /** Stops as planned. */
  stop(): Promise<void>;
  /** Holds the hints of this process. The returned function releases them in order. */
  holdHints(): () => void;
  /** Makes the hints of this process fail, or work again. */
  refuseHints(refuses: boolean): void;
}

export interface Cluster {
  readonly ground: Ground;
  /**
   * `world`: the clock and ids of this process. Default: the real ones. `through`: wraps the store for this
   * process. Default: unchanged.
   */
  join(
    options: FlowAppOptions,
    world?: World,
    through?: (shared: SharedStore) => SharedStore,
  ): Promise<ClusterProcess>;
}

/** A store whose hints can be held. */
function withHeldHints(
  store: Store,
  through: (shared: SharedStore) => SharedStore,
): Pick<ClusterProcess, "store" | "holdHints" | "refuseHints"> {
  const { shared } = store;
  if (shared === undefined) throw new Error("a cluster's store is shared");
  let passing: Promise<void> = Promise.resolve();
  let isRefusing = false;
  const notify: typeof shared.notify = async (texts) => {
    await passing;
    if (isRefusing) throw new StoreProblem("unreachable", "store");
    await shared.notify(texts);
  };
  return {
    store: { ...store, shared: { ...through(shared), notify } },
    holdHints() {
      const opened = Promise.withResolvers<void>();
      passing = opened.promise;
      return opened.resolve;
    },
    refuseHints(refuses) {
      isRefusing = refuses;
    },
  };
}

export async function openCluster(openGround: OpenGround): Promise<Cluster> {
  const ground = await openGround();
  return {
    ground,
    async join(options, world = quietWorld(), through = (shared) => shared) {
      const { store, holdHints, refuseHints } = withHeldHints(await ground.open(world), through);
      const mortal = mortalProcess(store, sharedWorld(store, world));
      const app = await openFlowApp({ ...options, disk: mortal.store, world: mortal.world, dies: true });
      let state: "alive" | "dead" | "over" = "alive";
      const stop = async (): Promise<void> => {
        const was = state;
        state = "over";
        if (was === "dead") await store.close();
        if (was !== "alive") return;
        mortal.goOn();
        await app.stop(0);
      };
      cleanup(stop);
      const die = (): void => {
        state = "dead";
        mortal.die();
      };
      return { ...mortal, app, stop, die, holdHints, refuseHints };
    },
  };
}

/** On a server that is removed after the test. */
const schemaOn = (server: string) => ({ ...freshSchema(server), give: async () => {} });

/**
 * A separate PostgreSQL schema; every process has its own connections. `server`: the address of another
 * server than the run's.
 */
export async function postgresGround(server?: string): Promise<Ground> {
  const { url, give } = server === undefined ? await takeSchema() : schemaOn(server);
  const members = new Set<() => void>();
  let isCut = false;
  const gap = (): void => {
    for (const onGap of members) onGap();
  };
  cleanup(give);
  return {
    async open(world) {
      const store = await openPostgres({ url, world });
      cleanup(() => store.close());
      const { shared } = store;
      if (shared === undefined) throw new Error("a PostgreSQL store is shared");
      return {
        ...store,
        shared: {
          ...shared,
          async notify(texts) {
            if (!isCut) await shared.notify(texts);
          },
          listen(onText, onGap) {
            members.add(onGap);
            return shared.listen((text) => isCut || onText(text), onGap);
          },
        },
      };
    },
    cutWire(cut) {
      isCut = cut;
      if (!cut) gap();
    },
    gap,
  };
}
