// Several processes over one store, of which each can lose its connection to the database for a time.

import type { ModelPort } from "../../../src/agent/model/model.ts";
import { ok } from "../../../src/core/shapes/errors.ts";
import type { LaneHandle } from "../../../src/engine/run/execution.ts";
import { createExecutor, type ExecuteParts } from "../../../src/execute.ts";
import { answerPermission } from "../../../src/flows/permission.ts";
import type { Sandbox } from "../../../src/sandbox/sandbox.ts";
import { StoreProblem } from "../../../src/store/problems.ts";
import { getRun } from "../../../src/store/queries/runs/runs.ts";
import type { SharedStore } from "../../../src/store/sql.ts";
import { until as pollUntil } from "../until.ts";
import { type FakeWorld, fakeWorld } from "../world.ts";
import { type Cluster, type ClusterProcess, embeddedGround, openCluster } from "./cluster.ts";
import { cleanup } from "./engine.ts";
import type { Play } from "./flow-app.ts";

/** The connection of a process to the database. */
export interface Link {
  /** Whether heartbeats pass, are refused, or get no answer. */
  beats: "pass" | "fail" | "hang";
  through(shared: SharedStore): SharedStore;
}

export function link(): Link {
  const waiting = new Set<() => void>();
  let beats: Link["beats"] = "pass";
  return {
    get beats() {
      return beats;
    },
    set beats(value) {
      beats = value;
      if (value !== "hang") for (const goOn of waiting) goOn();
      waiting.clear();
    },
    through: (shared) => ({
      ...shared,
      async urgently(work) {
        if (beats === "hang") await new Promise<void>((resolve) => waiting.add(resolve));
        if (beats === "fail") throw new StoreProblem("unreachable", "store", { detail: "it is away" });
        return shared.urgently(work);
      },
    }),
  };
}

/** Returns a turn that waits until the test releases it, and the handle of the turn's run. */
export function midway(then: (handle: LaneHandle) => Promise<string> = async () => "done") {
  const began = Promise.withResolvers<LaneHandle>();
  const goOn = Promise.withResolvers<void>();
  const play: Play = async ({ handle }) => {
    began.resolve(handle);
    await goOn.promise;
    return then(handle);
  };
  return { play, began: began.promise, goOn: () => goOn.resolve() };
}

export interface Stage {
  readonly world: FakeWorld;
  readonly cluster: Cluster;
  /** Advances the clock in small steps, so that callers that wait for the store get their answers. */
  pass(ms: number): Promise<void>;
  /** Waits until it is so. Each look advances the clock, because a beat of a busy machine may come late. */
  until(isSo: () => Promise<boolean> | boolean): Promise<void>;
}

export async function openStage(): Promise<Stage> {
  const world = fakeWorld();
  const ground = await openCluster(embeddedGround);
  // Processes cannot stop while the clock stands still, so it advances automatically at the end of the test.
  let isOver = false;
  cleanup(() => {
    isOver = true;
  });
  const run = (): void => {
    if (!isOver) void world.advance(50).then(() => setImmediate(run));
  };
  const cluster: Cluster = {
    ...ground,
    async join(...how) {
      const process = await ground.join(...how);
      cleanup(run);
      return process;
    },
  };
  const pass = async (ms: number): Promise<void> => {
    for (let left = ms; left > 0; left -= 50) await world.advance(Math.min(50, left));
  };
  const until: Stage["until"] = async (isSo) => {
    const look = async (): Promise<boolean> => {
      if (await isSo()) return true;
      await pass(50);
      return false;
    };
    await pollUntil(look);
  };
  return { world, cluster, pass, until };
}

export const ended = async (process: ClusterProcess, runId: string): Promise<boolean> =>
  (await getRun(process.app.store.db, runId))?.endedAt !== undefined;
export const runOf = (process: ClusterProcess, runId: string) => getRun(process.app.store.db, runId);
/** Returns a turn that counts how often it begins. */
export function counted(reply: string) {
  let begun = 0;
  const play: Play = () => {
    begun += 1;
    return reply;
  };
  return { play, begun: () => begun };
}

/** Returns a turn that the real executor makes with this model. Commands run in `sandbox`. */
export function executed(
  process: () => ClusterProcess,
  port: ModelPort,
  { sandbox, ...more }: { readonly sandbox?: Sandbox } & Pick<ExecuteParts, "runtimes" | "outside"> = {},
): Play {
  return async ({ handle }) => {
    const { app, world } = process();
    const executor = createExecutor({
      ...{ settings: app.settings, store: app.store, world, port },
      sandboxFor: async () => ok(sandbox),
      engine: () => app.engine,
      ...more,
    });
    const { state, error } = await executor.execute(handle);
    if (state !== "ok") throw new Error(error);
    return "";
  };
}

/** Allows what an agent asks for, as an owner does. */
export async function allow({ app }: ClusterProcess, id: string): Promise<void> {
  const given = { id, decision: "allow", scope: "once", by: "ann" } as const;
  const rights = { covers: () => true, everySession: true };
  await app.engine.commit((unit) => answerPermission(unit, given, rights));
}
