// Connections that fail: the error names the innermost cause, for each API.

import { expect, test } from "vitest";
import type { ProviderApi } from "../../../src/core/shapes/settings/settings.ts";
import { PROVIDER_APIS } from "../../../src/core/shapes/settings/settings.ts";
import { openTalks, PROVIDER } from "../../kit/dialects/house.ts";
import { cleanup } from "../../kit/engine/engine.ts";
import { freePort, serveHttp } from "../../kit/loopback.ts";
import { TEST_MODEL } from "../../kit/model-server/server.ts";

async function errorAt(api: ProviderApi, baseUrl: string): Promise<string> {
  const provider = { ...PROVIDER, id: "local", api, baseUrl, maxRetries: 0, models: [TEST_MODEL] };
  const { open } = await openTalks([provider]);
  const talk = await open(`local/${TEST_MODEL.id}`);
  return (await talk.says("go")).error;
}

test.each(PROVIDER_APIS)("%s: a closed port is named by its cause", async (api) => {
  const error = await errorAt(api, `http://127.0.0.1:${await freePort()}/v1`);
  expect(error).toContain("ECONNREFUSED");
});

test.each(PROVIDER_APIS)("%s: a name that cannot be resolved is named by its cause", async (api) => {
  // Without a network the resolver answers EAI_AGAIN.
  expect(await errorAt(api, "http://model.invalid/v1")).toMatch(/ENOTFOUND|EAI_AGAIN/);
});

test.each(PROVIDER_APIS)(
  "%s: a server without TLS behind an https address is named by its cause",
  async (api) => {
    const { port, close } = await serveHttp((_, response) => void response.end());
    cleanup(close);
    const error = await errorAt(api, `https://127.0.0.1:${port}/v1`);
    expect(error).toMatch(/SSL|TLS|wrong version|packet length/i);
  },
);
