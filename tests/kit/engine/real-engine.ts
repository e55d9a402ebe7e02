// An engine whose runs are real turns: flows, tools and the executor, with a scripted model.

import { ok } from "../../../src/core/shapes/errors.ts";
import type { Settings } from "../../../src/core/shapes/settings/settings.ts";
import { Engine } from "../../../src/engine/engine.ts";
import type { LaneHandle } from "../../../src/engine/run/execution.ts";
import { createExecutor, type ExecuteParts } from "../../../src/execute.ts";
import { ensureMainSessions } from "../../../src/flows/session/lifecycle.ts";
import { createSuccessors } from "../../../src/flows/successors.ts";
import type { Store, Tx } from "../../../src/store/sql.ts";
import { Crash, quietWorld } from "./engine.ts";

export interface RealEngineParts extends Pick<ExecuteParts, "store" | "port"> {
  readonly settings: Settings;
  readonly world?: ExecuteParts["world"];
  readonly outside?: ExecuteParts["outside"];
  readonly maxConcurrent?: number;
  /** Wraps the handle that the executor gets. By default the handle is unchanged. */
  readonly handed?: (handle: LaneHandle) => LaneHandle;
}

/** Starts the engine and makes the main sessions. The caller stops it. */
export async function startRealEngine(parts: RealEngineParts): Promise<Engine> {
  const { settings, store, port, outside, handed = (handle: LaneHandle) => handle } = parts;
  const { world = quietWorld(), maxConcurrent = 8 } = parts;
  const executor = createExecutor({
    ...{ settings, store, world, port, ...(outside === undefined ? {} : { outside }) },
    sandboxFor: async () => ok(undefined),
    engine: () => engine,
  });
  const engine: Engine = new Engine({
    store,
    world,
    settings: { ...settings.session, ...settings.session.agentToAgent, maxConcurrent },
    successors: createSuccessors({ settings, transcriptPath: () => undefined }),
    executor: { execute: (handle) => executor.execute(handed(handle)) },
  });
  await ensureMainSessions({ engine, settings });
  await engine.start();
  return engine;
}

/** Returns a store whose process dies in the first transaction after which `dies` is true. */
export function dyingStore(
  disk: Store,
  dies: (tx: Tx) => Promise<boolean>,
): { readonly store: Store; readonly died: Promise<void> } {
  const died = Promise.withResolvers<void>();
  let dead = false;
  const store: Store = {
    ...disk,
    transaction: (work) =>
      disk.transaction(async (tx) => {
        if (dead) throw new Crash("the process is dead");
        const value = await work(tx);
        if (!(await dies(tx))) return value;
        dead = true;
        died.resolve();
        throw new Crash("the process dies");
      }),
  };
  return { store, died: died.promise };
}
