// A gateway whose provider refuses requests for what they contain, as real providers do.

import { openModelPort } from "../../../src/agent/model/port.ts";
import type { Message } from "../../../src/core/shapes/message.ts";
import type { ModelSettings, ProviderApi } from "../../../src/core/shapes/settings/settings.ts";
import { cleanup, endOf, quietWorld } from "../../kit/engine/engine.ts";
import type { ServedRequest } from "../../kit/model-server/requests.ts";
import { type ModelServer, type Script, startModelServer } from "../../kit/model-server/server.ts";
import type { HttpError } from "../../kit/model-server/steps.ts";
import { agentSettings } from "../../tools/app.ts";
import { type House, openHouse } from "../kit.ts";

export const PIXEL =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+M8AAAMBAQDJ/pLvAAAAAElFTkSuQmCC";

/** Returns the whole request as text. */
export const bodyOf = (request: ServedRequest | undefined): string => JSON.stringify(request?.body);
export const asksSummary = (request: ServedRequest): boolean =>
  request.lastUserText.includes("Condense this");

/** Answers with the words of a provider, as it would send them. */
export function refusal(status: number, words: string): HttpError {
  try {
    return { status, headers: {}, body: JSON.parse(words) };
  } catch {
    return { status, headers: {}, body: { error: { message: words } } };
  }
}

export interface Talk {
  readonly served: ModelServer;
  readonly house: House;
  /** Sends a message, with a picture if there is one, and returns the end of its run. */
  say(message: string, picture?: string): Promise<{ state: string; reply?: string; error?: string }>;
  history(): Promise<Message[]>;
  /** Restarts the gateway on the same store. */
  restart(): Promise<void>;
}

export async function openTalk(
  api: ProviderApi,
  script: Script,
  model: Partial<ModelSettings> = {},
  agent: Parameters<typeof agentSettings>[1] = {},
): Promise<Talk> {
  const served = await startModelServer(script);
  cleanup(() => served.close());
  const provider = served.provider(api, model);
  const agents = [agentSettings("main", { model: `${provider.id}/test-model`, ...agent })];
  const open = (dir?: string): Promise<House> =>
    openHouse({
      model: openModelPort(quietWorld()),
      choices: { providers: [provider], agents },
      ...(dir === undefined ? {} : { dir }),
    });
  let house = await open();
  let count = 0;
  return {
    served,
    get house() {
      return house;
    },
    async say(message, picture) {
      count += 1;
      const client = await house.client();
      const attachments = picture === undefined ? [] : [{ mimeType: "image/png", content: picture }];
      const params = { sessionKey: "main", message, idempotencyKey: `message-${count}`, attachments };
      const { runId } = await client.request("chat.send", params);
      return endOf(house.engine, runId);
    },
    async history() {
      const client = await house.client();
      return (await client.request("chat.history", { sessionKey: "main" })).messages as Message[];
    },
    async restart() {
      const { dir } = house;
      await house.stop();
      house = await open(dir);
    },
  };
}
