// A provider that fails temporarily: clients that follow the run get an event for each retry.

import { expect, test } from "vitest";
import { openModelPort } from "../../src/agent/model/port.ts";
import { retryWords } from "../../src/core/shapes/model-retry.ts";
import { cleanup, quietWorld } from "../kit/engine/engine.ts";
import { startModelServer } from "../kit/model-server/server.ts";
import { agentSettings } from "../tools/app.ts";
import { joined, openHouse } from "./kit.ts";

const KEY = "sk-proj-Abc123Def456Ghi789Jkl012";

test("each retry of a model call is published as an event with its number, the maximum and its time", async () => {
  let calls = 0;
  const served = await startModelServer(() => {
    calls += 1;
    if (calls > 2) return "at last";
    const body = { error: { message: `overloaded, key ${KEY}`, type: "overloaded" } };
    return { status: 529, headers: { "retry-after-ms": "20" }, body };
  });
  cleanup(() => served.close());
  const model = { id: "m", contextWindow: 100_000, maxOutputTokens: 4_000, reasoning: false, images: false };
  const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
  const provider = {
    ...{ id: "local", api: "openai-completions" as const, baseUrl: `${served.url}/v1`, headers: {} },
    ...{
      connectTimeoutSeconds: 10,
      idleTimeoutSeconds: 90,
      maxRetries: 3,
      apiKey: "k",
      models: [{ ...model, cost }],
    },
  };
  const house = await openHouse({
    model: openModelPort(quietWorld()),
    choices: { providers: [provider], agents: [agentSettings("main", { model: "local/m" })] },
  });
  const raw = await joined(house);
  const params = { sessionKey: "main", message: "hello", idempotencyKey: "r1" };
  raw.send({ type: "req", id: "1", method: "chat.send", params });
  await raw.next(({ event, payload }) => event === "chat" && payload.state === "final");
  const told = raw.frames.flatMap(({ event, payload }) =>
    event === "agent" && payload.stream === "retry" ? [payload.data] : [],
  );
  expect(told).toMatchObject([
    { attempt: 1, of: 3, delayMs: 20 },
    { attempt: 2, of: 3, delayMs: 20 },
  ]);
  expect(told[0].error).toContain("overloaded");
  expect(JSON.stringify(told)).not.toContain(KEY);
});

test("a retry is described in words: its number, the maximum, its time and the reason", () => {
  const words = retryWords({ attempt: 2, of: 3, delayMs: 3_200, error: "529 overloaded" });
  expect(words).toBe("retrying, 2 of 3, in 4 s: 529 overloaded");
});
