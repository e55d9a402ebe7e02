// The OpenAI routes of a real process, called by the official client, with a fake model server.

import OpenAI from "openai";
import { expect, test } from "vitest";
import { cleanup } from "../kit/engine/engine.ts";
import { startModelServer } from "../kit/model-server/server.ts";
import { call, pause, type Step, text } from "../kit/model-server/steps.ts";
import { type GatewayProcess, startProcess } from "../kit/process/gateway-process.ts";

const MODEL = "parley/main";

async function world(script: Parameters<typeof startModelServer>[0]) {
  const server = await startModelServer(script);
  cleanup(() => server.close());
  const { id: _, ...provider } = server.provider("openai-completions");
  const config = {
    models: { providers: { one: provider } },
    agents: { list: [{ id: "main", default: true, model: "one/test-model" }] },
  };
  return { server, config };
}

function clientOf({ httpUrl, token }: GatewayProcess): OpenAI {
  return new OpenAI({ apiKey: token, baseURL: `${httpUrl}/v1`, maxRetries: 0 });
}

/** Resolves when the sessions of all requests are archived. */
async function untilArchived(gateway: GatewayProcess): Promise<void> {
  const socket = await gateway.connect();
  const list = () => socket.request("sessions.list", { search: "openai" });
  await expect.poll(list).toMatchObject({ sessions: [] });
  await socket.close();
}

test("the official client gets plain and streamed answers, also after a tool call, and each request's session is archived", async () => {
  const { server, config } = await world((request): Step[] =>
    request.toolResults.length > 0
      ? [text("There is one agent, ", 4), text("and it is me.")]
      : [text("Let me look. "), call("agents_list")],
  );
  const gateway = await startProcess({ config });
  const client = clientOf(gateway);
  expect((await client.models.list()).data.map((model) => model.id)).toEqual([MODEL]);
  const messages = [{ role: "user" as const, content: "Who is there?" }];
  const plain = await client.chat.completions.create({ model: MODEL, messages });
  expect(plain.choices[0]?.message.content).toBe("There is one agent, and it is me.");
  expect(plain.usage).toMatchObject({ prompt_tokens: 200, completion_tokens: 40, total_tokens: 240 });
  const runner = client.chat.completions.stream({ model: MODEL, messages });
  expect(await runner.finalContent()).toBe("Let me look. \n\nThere is one agent, and it is me.");
  const response = await client.responses.create({ model: MODEL, input: "Who is there?" });
  expect(response.output_text).toBe("There is one agent, and it is me.");
  expect(server.requests.length).toBe(6);
  await untilArchived(gateway);
  expect(await gateway.end("SIGTERM")).toBe(0);
  expect(gateway.stderr()).not.toMatch(/error/i);
});

test("if a gateway is killed during a request, the same Idempotency-Key gets the answer after the restart", async () => {
  const asked = Promise.withResolvers<void>();
  const never = new Promise(() => {});
  const { config } = await world((_, index) => {
    asked.resolve();
    return index === 0 ? [text("Half an "), pause(never)] : "The whole answer.";
  });
  const first = await startProcess({ config });
  const request = {
    model: MODEL,
    messages: [{ role: "user" as const, content: "Tell me" }],
    stream: true as const,
  };
  const headers = { "Idempotency-Key": "request-1" };
  const stream = await clientOf(first).chat.completions.create(request, { headers });
  const reading = (async () => {
    for await (const _ of stream);
  })().catch((error: unknown) => error);
  await asked.promise;
  await first.end("SIGKILL");
  expect(await reading).toBeInstanceOf(Error);
  const second = await startProcess({ home: first.home });
  const again = clientOf(second).chat.completions.stream(request, { headers });
  expect(await again.finalContent()).toBe("The whole answer.");
  await untilArchived(second);
  expect(await second.end("SIGTERM")).toBe(0);
});
