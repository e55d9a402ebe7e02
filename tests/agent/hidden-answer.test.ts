// Models that write their thinking into the text of their answer, with the four provider APIs and the agent
// loop.

import { afterEach, expect, test } from "vitest";
import { resolveModel } from "../../src/agent/model/model.ts";
import { openModelPort } from "../../src/agent/model/port.ts";
import type { Message } from "../../src/core/shapes/message.ts";
import { PROVIDER_APIS, type ProviderApi } from "../../src/core/shapes/settings/settings.ts";
import { type ModelServer, type Script, startModelServer } from "../kit/model-server/server.ts";
import { call, text } from "../kit/model-server/steps.ts";
import { fakeWorld } from "../kit/world.ts";
import { startTurn, type TurnSetup, toolSpec, userSays } from "./turn-kit.ts";

let server: ModelServer | undefined;
afterEach(async () => {
  await server?.close();
  server = undefined;
});

async function serve(api: ProviderApi, script: Script) {
  server = await startModelServer(script);
  const provider = server.provider(api);
  const model = resolveModel([provider], `${provider.id}/test-model`);
  if (!model.ok) throw new Error(model.error);
  const world = fakeWorld();
  const port = openModelPort(world);
  const turn = (setup: Partial<TurnSetup> = {}) =>
    startTurn({ port, more: { model: model.value, world, ...setup.more }, ...setup });
  return { server, turn };
}

const contentOf = (entry: unknown) => (entry as Message).content;

test.each(PROVIDER_APIS)(
  "%s: thinking inside the text becomes a thinking block, even if a chunk ends within its tags",
  async (api) => {
    const said = "<think>the secret plan</think>\n\nIt is `<think>` that opens it.";
    for (const chunks of [1, 7, said.length]) {
      const { turn } = await serve(api, () => [text(said, chunks)]);
      const { end, texts, entries } = turn();
      expect(await end).toMatchObject({ kind: "ok", text: "It is `<think>` that opens it." });
      expect(texts.filter((one) => !"It is `<think>` that opens it.".startsWith(one))).toEqual([]);
      expect(contentOf(entries.at(-1))).toMatchObject([
        { type: "thinking", thinking: "the secret plan" },
        { type: "text", text: "It is `<think>` that opens it." },
      ]);
      await server?.close();
    }
  },
);

test.each(PROVIDER_APIS)(
  "%s: thinking that was found in an answer's text is not sent to the model again",
  async (api) => {
    const { server, turn } = await serve(api, (request) =>
      request.toolResults.length === 0
        ? [text("<think>secret one</think>Looking."), call("t")]
        : "<think>secret two</think>Done",
    );
    const setup = { tools: [toolSpec("t")], callTool: async () => ({ text: "x", isError: false }) };
    const first = turn(setup);
    expect(await first.end).toMatchObject({ kind: "ok", text: "Done" });
    const second = turn({ ...setup, entries: [...first.entries, userSays("again", "u2")] });
    await second.end;
    expect(server.requests).toHaveLength(4);
    const sent = JSON.stringify(server.requests.map((request) => request.messages));
    expect(sent).toContain("Looking.");
    expect(sent).not.toContain("secret");
  },
);

test("if the model's template opens the thinking tag, thinking is shown and withdrawn once, and held back in later answers", async () => {
  const { turn } = await serve("openai-completions", () => [text("secret words first</think>Hi", 9)]);
  const first = turn();
  expect(await first.end).toMatchObject({ kind: "ok", text: "Hi" });
  expect(first.texts.at(-1)).toBe("Hi");
  const second = turn();
  expect(await second.end).toMatchObject({ kind: "ok", text: "Hi" });
  expect(second.texts.join()).not.toContain("secret");
  expect(second.texts.at(-1)).toBe("Hi");
});

test("a tool call written as text is removed, and an answer that contains nothing else has no text", async () => {
  const { turn } = await serve("openai-completions", () => [
    text('<tool_call>\n{"name": "exec", "arguments": {}}\n</tool_call>', 5),
  ]);
  const { end, texts, entries } = turn();
  expect(await end).toMatchObject({ kind: "error", error: expect.stringContaining("answered without text") });
  expect(texts).toEqual([]);
  expect(contentOf(entries.at(-1))).toMatchObject([{ type: "thinking" }]);
});
