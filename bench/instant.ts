// What the benchmarks stand on: a model that answers at once, default settings, plain sessions.

import { tmpdir } from "node:os";
import type { ModelPort } from "../src/agent/model.ts";
import { loadSettings } from "../src/config.ts";
import { ZERO_USAGE } from "../src/core/message.ts";
import type { Session } from "../src/core/session.ts";
import type { Settings } from "../src/core/settings.ts";
import type { World } from "../src/world.ts";

/** The settings of an empty configuration file in `home`. */
export function benchSettings(home: string = tmpdir()): Settings {
  const loaded = loadSettings({ env: {}, home });
  if (!loaded.ok) throw new Error(loaded.error);
  return loaded.value.settings;
}

/** A model that answers at once. */
export function instantModel(world: World): ModelPort {
  return {
    async call({ model }) {
      const message = {
        role: "assistant" as const,
        content: [{ type: "text" as const, text: "done" }],
        timestamp: world.clock.now(),
        api: "bench",
        provider: "bench",
        model: model.settings.id,
        usage: { ...ZERO_USAGE, input: 10, output: 1, totalTokens: 11 },
        stopReason: "stop",
      };
      return { kind: "message", message };
    },
  };
}

/** A conversation with the agent `main`. */
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
    systemSent: true,
    abortedLastRun: false,
    inputTokens: 0,
    outputTokens: 0,
    totalTokens: 0,
    contextTokens: 0,
  };
}
