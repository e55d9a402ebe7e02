// Opens one gateway whose providers are the servers of all dialects. Each capability talks with a model of its
// own, so that a gateway learns nothing from the others.

import type { ModelSettings, ProviderSettings } from "../../../src/core/shapes/settings/settings.ts";
import { cleanup } from "../engine/engine.ts";
import type { Dialect } from "./dialect.ts";
import { openTalks, PROVIDER, type Talk } from "./house.ts";
import { type Conversation, type Reply, startDialectServer } from "./server.ts";

/** A session with one model of one dialect. */
export interface DialectTalk extends Talk, Conversation {}

export interface Ground {
  talk(dialect: Dialect, model: string, reply: Reply, thinking?: "medium"): Promise<DialectTalk>;
}

function modelSettings(id: string, { can }: Dialect): ModelSettings {
  const cost = { input: 1, output: 1, cacheRead: 0, cacheWrite: 0 };
  return {
    ...{ id, contextWindow: 100_000, maxOutputTokens: 4_000, cost },
    ...{ reasoning: can.think, images: can.see },
  };
}

/** Opens the gateway. `models`: ids of the models of each dialect. */
export async function openDialects(dialects: readonly Dialect[], models: readonly string[]): Promise<Ground> {
  const server = await startDialectServer(dialects);
  cleanup(() => server.close());
  const providers = dialects.map(
    (dialect): ProviderSettings => ({
      ...PROVIDER,
      ...{ id: dialect.id, api: dialect.api, baseUrl: server.baseUrl(dialect) },
      models: models.map((id) => modelSettings(id, dialect)),
    }),
  );
  const talks = await openTalks(providers);
  return {
    async talk(dialect, model, reply, thinking) {
      const conversation = server.script(dialect, model, reply);
      return { ...conversation, ...(await talks.open(`${dialect.id}/${model}`, thinking)) };
    },
  };
}
