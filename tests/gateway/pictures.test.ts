// Pictures of people on their way to a model that sees, or to one that doesn't, over the doors of a gateway.

import { expect, test } from "vitest";
import { openModelPort } from "../../src/agent/model/port.ts";
import { PROVIDER_APIS, type ProviderApi } from "../../src/core/shapes/settings/settings.ts";
import { cleanup, quietWorld } from "../kit/engine/engine.ts";
import { startModelServer } from "../kit/model-server/server.ts";
import { PATIENCE_MS } from "../kit/until.ts";
import { agentSettings } from "../tools/app.ts";
import { openAi } from "./clients/openai.ts";
import { type House, openHouse } from "./kit.ts";

const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+M8AAAMBAQDJ/pLvAAAAAElFTkSuQmCC";
const NOTE = "image omitted: model does not support images";
const ATTACHED = { attachments: [{ mimeType: "image/png", content: PIXEL }] };

async function openDoors(api: ProviderApi, images: boolean) {
  const served = await startModelServer(() => "seen");
  cleanup(() => served.close());
  const provider = served.provider(api, { images });
  const agents = [agentSettings("main", { model: `${provider.id}/test-model` })];
  const model = openModelPort(quietWorld());
  const choices = { providers: [provider], agents };
  return { served, house: await openHouse({ model, choices }) };
}

/** Sends a picture over one door, and waits for the answer. */
const DOORS: Record<string, (house: House) => Promise<unknown>> = {
  "chat.send (page, terminal, editors)": async (house) => {
    const client = await house.client();
    const params = { sessionKey: "main", message: "look", idempotencyKey: "k", ...ATTACHED };
    const { runId } = await client.request("chat.send", params);
    return client.request("agent.wait", { runId, timeoutMs: PATIENCE_MS });
  },
  "agent (scripts)": async (house) => {
    const client = await house.client();
    const params = { sessionKey: "main", message: "look", idempotencyKey: "k", ...ATTACHED };
    return (await client.agent(params)).done;
  },
  "OpenAI's chat completions": (house) =>
    openAi(house).chat.completions.create({
      model: "parley/main",
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "look" },
            { type: "image_url", image_url: { url: `data:image/png;base64,${PIXEL}` } },
          ],
        },
      ],
    }),
  "OpenAI's responses": (house) =>
    openAi(house).responses.create({
      model: "parley/main",
      input: [
        {
          role: "user",
          content: [
            { type: "input_text", text: "look" },
            { type: "input_image", image_url: `data:image/png;base64,${PIXEL}`, detail: "auto" },
          ],
        },
      ],
    }),
};

test.each(Object.keys(DOORS))(
  "a picture over %s reaches a model that sees; another gets a note",
  async (door) => {
    for (const sees of [true, false]) {
      const { served, house } = await openDoors("openai-completions", sees);
      await DOORS[door]?.(house);
      const sent = JSON.stringify(served.requests[0]?.body);
      expect({ hasPicture: sent.includes(PIXEL), hasNote: sent.includes(NOTE) }).toEqual({
        ...{ hasPicture: sees, hasNote: !sees },
      });
      expect(sent).toContain("look");
    }
  },
);

test.each(PROVIDER_APIS)("%s: a picture reaches a model that sees; another gets a note", async (api) => {
  for (const sees of [true, false]) {
    const { served, house } = await openDoors(api, sees);
    await DOORS["agent (scripts)"]?.(house);
    const sent = JSON.stringify(served.requests[0]?.body);
    expect({ hasPicture: sent.includes(PIXEL), hasNote: sent.includes(NOTE) }).toEqual({
      ...{ hasPicture: sees, hasNote: !sees },
    });
  }
});
