// Opens one gateway whose providers are the servers of all dialects. Each capability talks with a model of its
// own, so that a gateway learns nothing from the others. Needs no test runner.

import { openModelPort } from "../../../src/agent/model/port.ts";
import type { Message } from "../../../src/core/shapes/message.ts";
import type { ModelSettings, ProviderSettings } from "../../../src/core/shapes/settings/settings.ts";
import type { World } from "../../../src/world.ts";
import { openHouse } from "../../gateway/kit.ts";
import { agentSettings } from "../../tools/app.ts";
import { cleanup, quietWorld } from "../engine/engine.ts";
import type { Dialect } from "./dialect.ts";
import { type Conversation, type Reply, startDialectServer } from "./server.ts";

export const PIXEL =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+M8AAAMBAQDJ/pLvAAAAAElFTkSuQmCC";

/** The clock of model calls runs faster by this factor, so that pauses before retries take no time. */
const SPEED = 20;

export interface Said {
  readonly status: "ok" | "error";
  /** The answer that the caller of the gateway gets. */
  readonly text: string;
  /** The error of a failed run. */
  readonly error: string;
}

/** A session with one model of one dialect. */
export interface Talk extends Conversation {
  says(message: string, picture?: string): Promise<Said>;
  /** Returns the transcript. */
  history(): Promise<readonly Message[]>;
}

export interface Ground {
  talk(dialect: Dialect, model: string, reply: Reply, thinking?: "medium"): Promise<Talk>;
}

/** Returns a world whose time passes faster. */
export function fastWorld(): World {
  const world = quietWorld();
  const { clock } = world;
  const begun = clock.now();
  const begunMonotonic = clock.monotonic();
  const now = (): number => begun + (clock.now() - begun) * SPEED;
  return {
    ...world,
    clock: {
      ...clock,
      now,
      monotonic: () => begunMonotonic + (clock.monotonic() - begunMonotonic) * SPEED,
      at: (atMs, fire, keep) => clock.after(Math.max(0, atMs - now()) / SPEED, fire, keep),
      after: (ms, fire, keep) => clock.after(ms / SPEED, fire, keep),
    },
  };
}

function modelSettings(id: string, { can }: Dialect): ModelSettings {
  const cost = { input: 1, output: 1, cacheRead: 0, cacheWrite: 0 };
  return {
    ...{ id, contextWindow: 100_000, maxOutputTokens: 4_000, cost },
    ...{ reasoning: can.think, images: can.see },
  };
}

/** Opens the gateway. `models`: ids of the models of each dialect. */
export async function openDialects(
  dialects: readonly Dialect[],
  models: readonly string[],
  more: Partial<ProviderSettings> = {},
): Promise<Ground> {
  const server = await startDialectServer(dialects);
  cleanup(() => server.close());
  const providers = dialects.map(
    (dialect): ProviderSettings => ({
      ...{ id: dialect.id, api: dialect.api, baseUrl: server.baseUrl(dialect), headers: {} },
      ...{ apiKey: "test-key-123456", connectTimeoutSeconds: 60, idleTimeoutSeconds: 90, maxRetries: 2 },
      models: models.map((id) => modelSettings(id, dialect)),
      ...more,
    }),
  );
  const listed = providers.flatMap((provider) =>
    provider.models.map((model) => ({ ...model, name: model.id, provider: provider.id })),
  );
  const house = await openHouse({
    model: openModelPort(fastWorld()),
    models: listed,
    choices: {
      ...{ providers, maxConcurrent: 16 },
      agents: [agentSettings("main", { model: `${dialects[0]?.id}/${models[0]}` })],
    },
  });
  const client = await house.client();
  let sessions = 0;
  return {
    async talk(dialect, model, reply, thinking) {
      const conversation = server.script(dialect, model, reply);
      sessions += 1;
      const { key } = await client.request("sessions.create", {
        ...{ key: `talk-${sessions}`, idempotencyKey: crypto.randomUUID() },
      });
      const thinkingLevel = thinking ?? "off";
      await client.request("sessions.patch", { key, model: `${dialect.id}/${model}`, thinkingLevel });
      return {
        ...conversation,
        async says(message, picture) {
          const attachments = picture === undefined ? [] : [{ mimeType: "image/png", content: picture }];
          const call = client.agent({
            ...{ sessionKey: key, message, idempotencyKey: crypto.randomUUID() },
            ...(attachments.length === 0 ? {} : { attachments }),
          });
          const { status, result, summary } = await call.done;
          return { status, text: result?.text ?? "", error: status === "error" ? summary : "" };
        },
        history: async () => (await client.request("chat.history", { sessionKey: key })).messages,
      };
    },
  };
}
