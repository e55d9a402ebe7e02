// Opens an engine with default settings, ordinary sessions, and a model that answers at once.

import { tmpdir } from "node:os";
import type { ModelPort, WrittenMessage } from "../src/agent/model/model.ts";
import { loadSettings } from "../src/config.ts";
import { ok } from "../src/core/shapes/errors.ts";
import { type Entry, ZERO_USAGE } from "../src/core/shapes/message.ts";
import { NOT_YET_USED, type Session } from "../src/core/shapes/session.ts";
import type { Settings } from "../src/core/shapes/settings/settings.ts";
import { Engine } from "../src/engine/engine.ts";
import { createExecutor } from "../src/execute.ts";
import { ensureMainSessions } from "../src/flows/session/lifecycle.ts";
import { createSuccessors } from "../src/flows/successors.ts";
import type { Store } from "../src/store/sql.ts";
import type { World } from "../src/world.ts";

/** Returns the settings of an empty configuration file in `home`. */
export function benchSettings(home: string = tmpdir()): Settings {
  const loaded = loadSettings({ env: {}, home });
  if (!loaded.ok) throw new Error(loaded.error);
  return loaded.value.settings;
}

/**
 * Returns a model that answers at once. `answers`: returns the content of the answer for a transcript.
 * Default: one text.
 */
export function instantModel(
  world: World,
  answers: (entries: readonly Entry[]) => WrittenMessage["content"] = () => [{ type: "text", text: "done" }],
): ModelPort {
  return {
    async call({ model, entries }) {
      const content = answers(entries);
      const message = {
        role: "assistant" as const,
        content,
        timestamp: world.clock.now(),
        api: "bench",
        provider: "bench",
        model: model.settings.id,
        usage: { ...ZERO_USAGE, input: 10, output: 1, totalTokens: 11 },
        stopReason: content.some(({ type }) => type === "toolCall") ? "toolUse" : "stop",
      };
      return { kind: "message", message };
    },
  };
}

/** Returns the row of a session of the agent `main`. */
export function sessionRow(key: string, at: number): Session {
  return {
    key,
    sessionId: `session-${at}`,
    agentId: "main",
    kind: "other",
    label: `conversation ${at}`,
    createdAt: at,
    updatedAt: 1_700_000_000_000 + at,
    spawnDepth: 0,
    external: false,
    ...NOT_YET_USED,
    systemSent: true,
  };
}

/**
 * Opens the real engine, flows and agent loop over a store. `port`: the model. Default: a model that
 * answers with a text.
 */
export async function instantEngine(parts: {
  store: Store;
  world: World;
  settings: Settings;
  maxConcurrent: number;
  port?: ModelPort;
}): Promise<Engine> {
  const { store, world, settings, maxConcurrent, port = instantModel(world) } = parts;
  const engine: Engine = new Engine({
    store,
    world,
    settings: { ...settings.session, ...settings.session.agentToAgent, maxConcurrent },
    successors: createSuccessors({
      settings,
      transcriptPath: (sessionId) => store.transcriptPath(sessionId),
    }),
    executor: createExecutor({
      settings,
      store,
      world,
      port,
      sandboxFor: async () => ok(undefined),
      engine: () => engine,
    }),
  });
  await ensureMainSessions({ engine, settings });
  await engine.start();
  return engine;
}

/** Returns the key of the session with this number. */
export function chatKey(at: number): string {
  return `agent:main:chat:${String(at).padStart(8, "0")}-0000-4000-8000-000000000000`;
}

/** Accepts a message and waits for the end of its run, as a waiting caller does. Throws if the run fails. */
export async function oneRun(
  engine: Engine,
  sessionKey: string,
  withinMs: number,
  text = "hello",
): Promise<void> {
  const accepted = await engine.accept({ sessionKey, input: { text } });
  if (!accepted.ok) throw new Error(accepted.error);
  const run = await engine.waitForRun(accepted.value.run.runId, engine.now() + withinMs);
  if (run?.state !== "ok") throw new Error(`run ended ${run?.state}: ${run?.error}`);
}
