// A whole gateway that follows its configuration file.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openApp } from "../../../src/app.ts";
import { checkAgain } from "../../../src/config/check.ts";
import { openConfigFile } from "../../../src/config/editing/editing.ts";
import { createReload } from "../../../src/config/reload.ts";
import { loadSettings } from "../../../src/config.ts";
import { connect } from "../../../src/contract/client/node.ts";
import type { EventPayloads } from "../../../src/contract/events.ts";
import { optional } from "../../../src/core/optional.ts";
import { liveSettings } from "../../../src/core/shapes/settings/live.ts";
import { cleanup, putEmptyStore, quietWorld, temporaryFolder } from "../../kit/engine/engine.ts";
import { checkEvent } from "../../kit/event-check.ts";
import { type ModelServer, type Script, startModelServer } from "../../kit/model-server/server.ts";
import { fakeWorld } from "../../kit/world.ts";

export type Json = Record<string, unknown>;
export const TOKEN = "a-token-that-is-for-tests";
const KEY = "sk-test-0123456789-of-the-model";

export function fileOf(url: string, more: Json): string {
  const models = [{ id: "one" }, { id: "two" }];
  const local = { api: "openai-completions", baseUrl: `${url}/openai/v1`, apiKey: KEY, models };
  return JSON.stringify({
    gateway: { port: 0, auth: { token: TOKEN } },
    models: { providers: { local } },
    agents: { defaults: { model: "local/one" } },
    ...more,
  });
}

/** Opens a gateway that follows its file. `put` saves other settings; `meanwhile` does so during the start. */
export async function openFollowing(script: Script, first: Json = {}, meanwhile?: Json) {
  const model = await startModelServer(script);
  cleanup(() => model.close());
  return openWith(model, first, optional({ meanwhile }));
}

/** No model server of this machine is found at its usual address. */
const NO_OLLAMA = { OLLAMA_HOST: "127.0.0.1:9" };

interface Opening {
  readonly meanwhile?: Json;
  readonly env?: Record<string, string>;
  /** The folder of its file. Default: one of its own. */
  readonly home?: string;
}

/** Opens a gateway with the file of `first`. */
export async function openWith(
  model: ModelServer,
  first: Json = {},
  { meanwhile, env = NO_OLLAMA, home = temporaryFolder() }: Opening = {},
) {
  const path = join(home, ".parley", "parley.json5");
  mkdirSync(join(home, ".parley"), { recursive: true });
  const put = (more: Json): void => writeFileSync(path, fileOf(model.url, more), { mode: 0o600 });
  put(first);
  const options = { env: {}, home };
  const loaded = loadSettings(options);
  if (!loaded.ok) throw new Error(loaded.error);
  if (meanwhile !== undefined) put(meanwhile);
  const live = liveSettings(loaded.value.settings);
  const { settings } = live;
  await putEmptyStore(settings.store.dir);
  const { log, logged: lines, redactor } = fakeWorld();
  const opened = await openApp({
    settings,
    world: { ...quietWorld(), log, redactor },
    version: "1.2.3",
    environment: env,
    configPath: path,
    checkConfig: () => checkAgain(options, settings),
    configFile: async () => openConfigFile(options, settings),
    reload: createReload({
      ...{ options, live, loaded: loaded.value },
      learn: (found) => redactor.learn(found),
      hide: (tree) => redactor.json(tree),
    }),
  });
  if (!opened.ok) throw new Error(opened.error);
  const app = opened.value;
  cleanup(() => app.close(0));
  const client = await connect({ url: `ws://127.0.0.1:${app.port}`, token: TOKEN, reconnect: false });
  cleanup(() => client.close());
  const told: EventPayloads["config"][] = [];
  client.on("config", (event: EventPayloads["config"]) => {
    checkEvent({ type: "event", event: "config", payload: event } as object);
    told.push(event);
  });
  /** Sends a message. Resolves with the answer when the run has ended. */
  const says = async (message: string): Promise<string> => {
    const idempotencyKey = crypto.randomUUID();
    const accepted = await client.agent({ message, sessionKey: "main", idempotencyKey });
    const done = await accepted.done;
    return done.result?.text ?? done.summary;
  };
  return { app, client, model, home, path, put, told, lines, says, reload: () => app.reload?.() };
}
