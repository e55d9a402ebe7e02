// A whole gateway with traces, a scripted model server and a fake trace collector, all over real sockets.

import { openApp } from "../../src/app.ts";
import { loadSettings } from "../../src/config.ts";
import { connect } from "../../src/contract/client/node.ts";
import type { World } from "../../src/world.ts";
import { cleanup, putEmptyStore, quietWorld, temporaryFolder } from "../kit/engine/engine.ts";
import { type Script, startModelServer } from "../kit/model-server/server.ts";
import { type Collector, startCollector } from "../kit/otlp-collector.ts";
import { TOKEN, writeHome } from "../kit/process/fleet.ts";
import { PATIENCE_MS, until } from "../kit/until.ts";

type Json = Record<string, unknown>;

export interface StageOptions {
  readonly script: Script;
  readonly traces?: Json;
  /** Settings to add to the default configuration. */
  readonly config?: Json;
  readonly home?: string;
  readonly collector?: Collector;
  readonly world?: World;
}

/** Returns a configuration with two agents that may talk to each other, and a model at this address. */
export function configOf(modelUrl: string, collectorUrl: string, traces: Json = {}): Json {
  return {
    gateway: { port: 0, auth: { token: TOKEN } },
    models: {
      providers: {
        local: {
          api: "openai-completions",
          baseUrl: `${modelUrl}/openai/v1`,
          apiKey: "test-key-123456",
          models: [{ id: "test-model", contextWindow: 100_000, cost: { input: 3, output: 15 } }],
        },
      },
    },
    agents: {
      defaults: { subagents: { allowAgents: ["*"] } },
      list: [{ id: "main", default: true }, { id: "research" }],
    },
    tools: { sessions: { visibility: "all" }, agentToAgent: { enabled: true } },
    session: { agentToAgent: { maxPingPongTurns: 2 } },
    telemetry: { traces: { enabled: true, endpoint: collectorUrl, ...traces } },
  };
}

export async function openStage(options: StageOptions) {
  const home = options.home ?? temporaryFolder();
  const collector = options.collector ?? (await startCollector());
  const model = await startModelServer(options.script);
  cleanup(() => model.close());
  writeHome(home, { ...configOf(model.url, collector.url, options.traces), ...options.config });
  const loaded = loadSettings({ env: {}, home });
  if (!loaded.ok) throw new Error(loaded.error);
  await putEmptyStore(loaded.value.settings.store.dir);
  const opened = await openApp({
    settings: loaded.value.settings,
    world: options.world ?? quietWorld(),
    version: "1.2.3",
    environment: {},
  });
  if (!opened.ok) throw new Error(opened.error);
  const app = opened.value;
  let stopped: Promise<void> | undefined;
  const stop = (): Promise<void> => {
    stopped ??= app.close(0);
    return stopped;
  };
  cleanup(() => stop());
  const client = await connect({ url: `ws://127.0.0.1:${app.port}`, token: TOKEN, reconnect: false });
  cleanup(() => client.close());
  const { db } = app.store;
  const left = async (): Promise<number> => {
    const active = ["queued", "running", "waiting"];
    const runs = await db.selectFrom("runs").select("run_id").where("state", "in", active).execute();
    const flows = await db.selectFrom("flows").select("flow_id").where("state", "=", "open").execute();
    return runs.length + flows.length;
  };
  return {
    home,
    /** Folder of the store. */
    dir: loaded.value.settings.store.dir,
    app,
    client,
    collector,
    model,
    stop,
    /** Sends a message. Resolves when it is accepted. */
    async says(message: string, sessionKey = "main"): Promise<string> {
      const idempotencyKey = crypto.randomUUID();
      await client.call("chat.send", { sessionKey, message, idempotencyKey });
      return idempotencyKey;
    },
    /** Resolves when no run and no flow is unfinished. */
    async quiet(): Promise<void> {
      const deadline = Date.now() + PATIENCE_MS;
      await until(async () => {
        if ((await left()) === 0) return true;
        if (Date.now() > deadline) throw new Error("work is left that nobody does");
        return false;
      });
    },
  };
}
