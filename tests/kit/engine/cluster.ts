// Engines of several simulated gateways on one store. Each one can crash, pause, or lose the answer to a
// commit.

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

/** The shared store of a cluster. Each call of `open` gives one process its own connection. */
export interface Ground {
  open(world: World): Promise<Store>;
  /** Starts or stops dropping the hints between processes. */
  cutWire(cut: boolean): void;
  /** Tells every process that hints may have been lost. */
  gap(): void;
}

export type OpenGround = () => Promise<Ground>;

/** Makes an embedded store that several engines share. The test controls the hints between them. */
export async function embeddedGround(): Promise<Ground> {
  const world = quietWorld();
  const disk = await openStore(temporaryFolder(), world);
  const wire = fakeWire();
  return { open: async (own) => wire.join(disk, own.clock), cutWire: wire.cut, gap: wire.gap };
}

export interface ClusterProcess extends MortalProcess {
  readonly app: FlowApp;
  /** Shuts the process down gracefully. */
  stop(): Promise<void>;
  /** Holds the hints of this process. The returned function releases them in order. */
  holdHints(): () => void;
  /** Makes the process fail to send hints, or send them again. */
  refuseHints(refuses: boolean): void;
}

export interface Cluster {
  readonly ground: Ground;
  /**
   * Adds a process. `world` has its clock and ids; by default these are real. `through` wraps its store; by
   * default the store is unchanged.
   */
  join(
    options: FlowAppOptions,
    world?: World,
    through?: (shared: SharedStore) => SharedStore,
  ): Promise<ClusterProcess>;
}

/** Wraps a store so that its hints can be delayed or refused. */
function withHeldHints(
  store: Store,
  through: (shared: SharedStore) => SharedStore,
): Pick<ClusterProcess, "store" | "holdHints" | "refuseHints"> {
  const { shared } = store;
  if (shared === undefined) throw new Error("a cluster's store is shared");
  let passing: Promise<void> = Promise.resolve();
  let isRefusing = false;
  const notify: typeof shared.notify = async (...message) => {
    await passing;
    if (isRefusing) throw new StoreProblem("unreachable", "store");
    await shared.notify(...message);
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

/** The whole server is removed after the test, so its schema need not be removed. */
const schemaOn = (server: string) => ({ ...freshSchema(server), give: async () => {} });

/**
 * Makes a PostgreSQL schema for a cluster, in which every process has its own connections. `server` is the
 * address of a server; by default it is the server of the test run.
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
          async notify(...message) {
            if (!isCut) await shared.notify(...message);
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
