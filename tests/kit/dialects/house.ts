// Opens a gateway whose providers are servers of a test, and talks with it. Needs no test runner.

import { openModelPort } from "../../../src/agent/model/port.ts";
import type { Message } from "../../../src/core/shapes/message.ts";
import type { AgentSettings, ProviderSettings } from "../../../src/core/shapes/settings/settings.ts";
import type { World } from "../../../src/world.ts";
import { type House, openHouse } from "../../gateway/kit.ts";
import { agentSettings } from "../../tools/app.ts";
import { quietWorld } from "../engine/engine.ts";

/** A picture of one pixel. */
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

/** A session of the agent `main`. */
export interface Talk {
  readonly key: string;
  says(message: string, picture?: string): Promise<Said>;
  /** Returns the transcript. */
  history(): Promise<readonly Message[]>;
  /** Continues with another model. */
  useModel(model: string): Promise<void>;
}

export interface TalkHouse {
  readonly house: House;
  /** Opens a session with this model, `<provider>/<model>`. */
  open(model: string, thinking?: "medium"): Promise<Talk>;
}

/** Returns a world whose time passes faster. */
export function fastWorld(speed = SPEED): World {
  const world = quietWorld();
  const { clock } = world;
  const begun = clock.now();
  const begunMonotonic = clock.monotonic();
  const now = (): number => begun + (clock.now() - begun) * speed;
  return {
    ...world,
    clock: {
      ...clock,
      now,
      monotonic: () => begunMonotonic + (clock.monotonic() - begunMonotonic) * speed,
      at: (atMs, fire, keep) => clock.after(Math.max(0, atMs - now()) / speed, fire, keep),
      after: (ms, fire, keep) => clock.after(ms / speed, fire, keep),
    },
  };
}

/** The settings of a provider that are the same in all of these tests. */
export const PROVIDER = {
  ...{ apiKey: "test-key-123456", headers: {} },
  ...{ connectTimeoutSeconds: 60, idleTimeoutSeconds: 90, maxRetries: 2 },
} as const;

export interface TalkOptions {
  readonly agent?: Partial<AgentSettings>;
  /** Further agents. */
  readonly agents?: readonly AgentSettings[];
  /** World of the model calls. Default: one whose time passes faster. */
  readonly world?: World;
}

/** Opens the gateway. The first model of the first provider is the one of the agent `main`. */
export async function openTalks(
  providers: readonly ProviderSettings[],
  { agent = {}, agents = [], world = fastWorld() }: TalkOptions = {},
): Promise<TalkHouse> {
  const models = providers.flatMap((provider) =>
    provider.models.map((model) => ({ ...model, name: model.id, provider: provider.id })),
  );
  const model = `${models[0]?.provider}/${models[0]?.id}`;
  const house = await openHouse({
    ...{ model: openModelPort(world), models },
    choices: {
      ...{ providers, maxConcurrent: 16 },
      agents: [agentSettings("main", { model, ...agent }), ...agents],
    },
  });
  const client = await house.client();
  let sessions = 0;
  return {
    house,
    async open(name, thinking) {
      sessions += 1;
      const idempotencyKey = crypto.randomUUID();
      const { key } = await client.request("sessions.create", { key: `talk-${sessions}`, idempotencyKey });
      const thinkingLevel = thinking ?? "off";
      await client.request("sessions.patch", { key, model: name, thinkingLevel });
      return {
        key,
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
        useModel: async (next) => void (await client.request("sessions.patch", { key, model: next })),
      };
    },
  };
}
