// Formats of answers: from OpenAI's client to the request that the model's provider gets.

import OpenAI from "openai";
import { expect, test } from "vitest";
import { openModelPort } from "../../../src/agent/model/port.ts";
import { PROVIDER_APIS, type ProviderApi } from "../../../src/core/shapes/settings/settings.ts";
import { listRuns } from "../../../src/store/queries/runs/runs.ts";
import { openAi, said } from "../../gateway/clients/openai.ts";
import { openHouse } from "../../gateway/kit.ts";
import { cleanup, quietWorld, temporaryFolder } from "../../kit/engine/engine.ts";
import { type Script, startModelServer } from "../../kit/model-server/server.ts";
import { call, hang, httpError, text } from "../../kit/model-server/steps.ts";
import { until } from "../../kit/until.ts";
import { agentSettings } from "../../tools/app.ts";
import { openAiSessions } from "./kit.ts";

const MODEL = "parley/main";
const schema = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
};
const named = { name: "place", schema, strict: true };
const flat = { type: "json_schema", ...named } as const;
const nested = { type: "json_schema", json_schema: named } as const;
const JSON_OBJECT = { type: "json_object" } as const;
const ANSWER = '{"city":"Paris"}';

type Other = [ProviderApi, { id: string }];

async function openFormats(api: ProviderApi, script: Script, id = "test-model", others: Other[] = []) {
  const served = await startModelServer(script);
  cleanup(() => served.close());
  const provider = served.provider(api, { id });
  const world = quietWorld();
  const dir = temporaryFolder();
  const open = (more: Parameters<typeof agentSettings>[1] = {}) => {
    const agents = [agentSettings("main", { model: `${provider.id}/${id}`, ...more })];
    const providers = [provider, ...others.map((other) => served.provider(...other))];
    return openHouse({ world, dir, model: openModelPort(world), choices: { providers, agents } });
  };
  return { requests: served.requests, open, house: await open() };
}

const SENT: Record<ProviderApi, object> = {
  "openai-completions": { response_format: nested },
  "openai-responses": { text: { format: flat } },
  "anthropic-messages": { output_config: { format: { type: "json_schema", schema } } },
  "google-generative-ai": {
    generationConfig: { responseMimeType: "application/json", responseJsonSchema: schema },
  },
};

test.each(PROVIDER_APIS)("a schema reaches %s in each request, and tools work in between", async (api) => {
  const { house, requests } = await openFormats(api, (_, index) =>
    index === 0 ? [text("Looking"), call("agents_list")] : ANSWER,
  );
  const asked = { model: MODEL, messages: [said("Where?")], response_format: nested };
  const stream = await openAi(house).chat.completions.create({ ...asked, stream: true });
  let streamed = "";
  for await (const chunk of stream) streamed += chunk.choices[0]?.delta.content ?? "";
  expect(JSON.parse(streamed)).toEqual({ city: "Paris" });
  expect(requests).toHaveLength(2);
  for (const { body, toolNames } of requests) {
    expect(body).toMatchObject(SENT[api]);
    expect(toolNames).toContain("agents_list");
  }
});

test("a response repeats its format, also when it is fetched later", async () => {
  const { house, requests } = await openFormats("openai-completions", () => ANSWER);
  const client = openAi(house);
  const done = await client.responses.create({ model: MODEL, input: "Where?", text: { format: flat } });
  expect(done.text).toEqual({ format: flat });
  expect((await client.responses.retrieve(done.id)).text).toEqual({ format: flat });
  await client.responses.create({ model: MODEL, input: "Where?", text: { format: JSON_OBJECT } });
  await client.responses.create({ model: MODEL, input: "Where?", text: { format: { type: "text" } } });
  expect(requests.map(({ body }) => body.response_format)).toEqual([nested, JSON_OBJECT, undefined]);
});

test("a run that is resumed by another process keeps its format", async () => {
  const { house, open, requests } = await openFormats("openai-completions", (_, index) =>
    index === 0 ? [hang()] : ANSWER,
  );
  const asked = { model: MODEL, messages: [said("Where?")], user: "anne", response_format: nested };
  const headers = { "idempotency-key": "once" };
  const cutOff = openAi(house)
    .chat.completions.create(asked, { headers })
    .catch(() => undefined);
  await until(async () => requests.length === 1);
  await house.stop();
  await cutOff;
  const done = await openAi(await open()).chat.completions.create(asked, { headers });
  expect(done.choices[0]?.message.content).toBe(ANSWER);
  expect(requests.map(({ body }) => body.response_format)).toEqual([nested, nested]);
});

const LACKING: [string, ProviderApi | undefined, string, typeof nested | typeof JSON_OBJECT, RegExp][] = [
  ["the offline model", undefined, "", nested, /offline\/rehearsal can't guarantee.*not a model of a conf/],
  ["json_object of Anthropic", "anthropic-messages", "claude", JSON_OBJECT, /has only json_schema/],
  ["an old Gemini", "google-generative-ai", "gemini-2.5-pro", nested, /can't combine a format with tools/],
];
test.each(LACKING)("%s is refused before a run begins", async (_, api, id, format, words) => {
  const house = api === undefined ? await openHouse() : (await openFormats(api, () => ANSWER, id)).house;
  const asked = { model: MODEL, messages: [said("Where?")], response_format: format };
  const refused = await openAi(house)
    .chat.completions.create(asked)
    .catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(OpenAI.APIError);
  expect(refused).toMatchObject({ status: 400, message: expect.stringMatching(words) });
  expect(String(refused)).toContain("Select another model");
  expect(await openAiSessions(house)).toEqual([]);
  expect(await listRuns(house.store.db, { sessionKey: "agent:main:main", limit: 5 })).toEqual([]);
});

test("a resumed run whose model can't guarantee its format any more fails with a clear error", async () => {
  const { house, open, requests } = await openFormats("openai-completions", () => [hang()]);
  const asked = { model: MODEL, messages: [said("Where?")], user: "anne", response_format: nested };
  const headers = { "idempotency-key": "once" };
  const cutOff = openAi(house)
    .chat.completions.create(asked, { headers })
    .catch(() => undefined);
  await until(async () => requests.length === 1);
  await house.stop();
  await cutOff;
  const other = await open({ model: "offline/rehearsal" });
  const failed = openAi(other).chat.completions.create(asked, { headers });
  await expect(failed).rejects.toThrow(/offline\/rehearsal can't guarantee the format json_schema/);
});

test("a fallback model that can't guarantee the format is skipped", async () => {
  const others: Other[] = [
    ["google-generative-ai", { id: "gemini-2.5-pro" }],
    ["anthropic-messages", { id: "claude" }],
  ];
  const script: Script = ({ api }) => (api === "openai-completions" ? httpError(401, "no such key") : ANSWER);
  const { house, open, requests } = await openFormats("openai-completions", script, "test-model", others);
  await house.stop();
  const skips = await open({ fallbackModels: ["google/gemini-2.5-pro", "anthropic/claude"] });
  const asked = { model: MODEL, messages: [said("Where?")], response_format: nested };
  const done = await openAi(skips).chat.completions.create(asked);
  expect(done.choices[0]?.message.content).toBe(ANSWER);
  expect(requests.map(({ api }) => api)).toEqual(["openai-completions", "anthropic-messages"]);
});
