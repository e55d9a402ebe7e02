// Pictures that an agent sends during a run, in the answers of the OpenAI-compatible routes.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openAi, said } from "../../gateway/clients/openai.ts";
import { openHouse } from "../../gateway/kit.ts";
import { temporaryFolder } from "../../kit/engine/engine.ts";
import { doing, talkingModel } from "../../kit/talking-model.ts";
import { agentSettings } from "../../tools/app.ts";

const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+M8AAAMBAQDJ/pLvAAAAAElFTkSuQmCC";
const DATA_URL = `data:image/png;base64,${PIXEL}`;
const ASKED = doing(
  { name: "send_file", arguments: { path: "plot.png" } },
  { name: "send_file", arguments: { path: "notes.txt" } },
);

async function open() {
  const workspace = join(temporaryFolder(), "workspace");
  mkdirSync(workspace);
  writeFileSync(join(workspace, "plot.png"), Buffer.from(PIXEL, "base64"));
  writeFileSync(join(workspace, "notes.txt"), "no picture");
  const agents = [agentSettings("main", { workspace })];
  return openHouse({ model: talkingModel(), choices: { agents } });
}

test("a chat completion has the agent's pictures, streamed or not", async () => {
  const client = openAi(await open());
  const request = { model: "parley/main", messages: [said(ASKED)] };
  const { choices } = await client.chat.completions.create(request);
  const image = { index: 0, type: "image_url", image_url: { url: DATA_URL } };
  expect(choices[0]?.message).toMatchObject({ images: [image] });
  const shown: unknown[] = [];
  for await (const { choices: parts } of await client.chat.completions.create({ ...request, stream: true }))
    for (const { delta } of parts) if ("images" in delta) shown.push(delta.images);
  expect(shown).toEqual([[image]]);
  const plain = await client.chat.completions.create({ ...request, messages: [said("hello")] });
  expect(plain.choices[0]?.message).not.toHaveProperty("images");
});

test("a response has the agent's pictures: at once, streamed and fetched later, each once", async () => {
  const client = openAi(await open());
  const request = { model: "parley/main", input: ASKED };
  const first = await client.responses.create(request);
  const picture = { type: "image_generation_call", status: "completed", result: PIXEL, output_format: "png" };
  expect(first.output).toMatchObject([{ type: "message" }, picture]);
  expect((await client.responses.retrieve(first.id)).output).toEqual(first.output);
  const next = await client.responses.create({ ...request, input: "hello", previous_response_id: first.id });
  expect(next.output).toMatchObject([{ type: "message" }]);
  const items: unknown[] = [];
  for await (const event of await client.responses.create({ ...request, stream: true }))
    if (event.type === "response.output_item.done") items.push(event.item);
    else if (event.type === "response.completed") expect(event.response.output).toEqual(items);
  expect(items).toMatchObject([{ type: "message" }, picture]);
});
