// Engine, flows, tools and the real executor on a real store, with one scripted model: whole turns, and
// crashes at chosen commits.

import { optional } from "../../src/core/optional.ts";
import type { Run } from "../../src/core/shapes/run.ts";
import type { Route } from "../../src/core/shapes/session.ts";
import type { QueueMode } from "../../src/core/shapes/settings/channels.ts";
import type { Engine } from "../../src/engine/engine.ts";
import type { AcceptRequest } from "../../src/engine/run/accept.ts";
import type { LaneHandle } from "../../src/engine/run/execution.ts";
import { acceptByMode } from "../../src/flows/conversation/direct.ts";
import { getSession } from "../../src/store/queries/sessions/sessions.ts";
import type { Store } from "../../src/store/sql.ts";
import {
  type CrashPoint,
  cleanup,
  crashingStore,
  openStore,
  quietWorld,
  temporaryFolder,
} from "../kit/engine/engine.ts";
import { startRealEngine } from "../kit/engine/real-engine.ts";
import { type ScriptedModel, scriptedModel } from "../kit/scripted-model.ts";
import { hasNoRuns, linesOf, runsOf, untilQuiet } from "../kit/store/store-view.ts";
import { settingsWith } from "../tools/app.ts";

type Script = Parameters<typeof scriptedModel>[0];

export interface TurnApp {
  readonly engine: Engine;
  readonly store: Store;
  readonly model: ScriptedModel;
  /** Sends a person's message from a chat, in a queue mode. */
  says(text: string, at: Route, mode: QueueMode, more?: Partial<AcceptRequest>): Promise<Run>;
  runs(sessionKey: string): Promise<Run[]>;
  texts(sessionKey: string): Promise<string[]>;
  /** Resolves when all runs have ended. */
  quiet(): Promise<void>;
  crashed(): Promise<void>;
  /** Shuts the process down gracefully. */
  stop(): Promise<void>;
}

export interface TurnAppOptions {
  readonly script: Script;
  readonly sessionKey: string;
  readonly dir?: string;
  readonly crash?: CrashPoint;
  /** Wraps the handle that the executor gets. By default the handle is unchanged. */
  readonly handed?: (handle: LaneHandle) => LaneHandle;
}

export async function openTurnApp(options: TurnAppOptions): Promise<TurnApp> {
  const world = quietWorld();
  const disk = await openStore(options.dir ?? temporaryFolder(), world);
  const crashing = crashingStore(disk, options.crash ?? { commit: 0, when: "before" });
  const { store } = crashing;
  const model = scriptedModel(options.script);
  const { handed } = options;
  const engine = await startRealEngine({
    settings: settingsWith(),
    store,
    world,
    port: model,
    ...optional({ handed }),
  });
  cleanup(async () => {
    if (!crashing.hasCrashed()) await engine.stop(0);
  });
  return {
    engine,
    store,
    model,
    async says(text, at, mode, more = {}) {
      const request = { sessionKey: options.sessionKey, input: { text }, route: at, ...more };
      const accepted = await engine.commit((unit) => acceptByMode(engine, unit, request, mode));
      if (!accepted.ok) throw new Error(accepted.error);
      return accepted.value.run;
    },
    runs: (sessionKey) => runsOf(store.db, sessionKey),
    async texts(sessionKey) {
      const { sessionId = "" } = (await getSession(store.db, sessionKey)) ?? {};
      return (await linesOf(store.db, sessionId)).map((line) => line.replace(/^toolResult: .*$/s, "result"));
    },
    quiet: () => untilQuiet(store.db, hasNoRuns),
    async crashed() {
      await crashing.crashed;
      await disk.close();
    },
    async stop() {
      await engine.stop(0);
      await disk.close();
    },
  };
}
