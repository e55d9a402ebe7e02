// Our model clients send the same requests as the library pi-ai. A table of cases and a seeded random test
// compare the two.

import { builtinProviders } from "@earendil-works/pi-ai/providers/all";
import { ANTHROPIC_MODELS } from "@earendil-works/pi-ai/providers/anthropic.models";
import { OPENAI_MODELS } from "@earendil-works/pi-ai/providers/openai.models";
import { afterAll, beforeAll, describe, expect } from "vitest";
import { clientKind } from "../../src/agent/model/clients.ts";
import type { ModelRequest } from "../../src/agent/model/model.ts";
import { type Entry, ZERO_USAGE } from "../../src/core/shapes/message.ts";
import { THINKING_LEVELS } from "../../src/core/shapes/settings/settings.ts";
import { both, rounds, share, test } from "../kit/deep.ts";
import { type Dice, dice } from "../kit/dice.ts";
import {
  CLIENTS,
  ECHO,
  made,
  modelOf,
  providerAt,
  type RawServer,
  rawServer,
  requestFor,
  type Sent,
  streaming,
  WIRE_APIS,
  type WireApi,
} from "./clients-kit.ts";

const END: Record<WireApi, string> = {
  "openai-completions":
    'data: {"choices":[{"delta":{"content":"ok"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
  "anthropic-messages":
    'event: message_start\ndata: {"type":"message_start","message":{"model":"m","usage":{"input_tokens":1}}}\n\n' +
    'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{}}\n\n' +
    'event: message_stop\ndata: {"type":"message_stop"}\n\n',
};

let server: RawServer;
beforeAll(async () => {
  server = await rawServer((response, api) => streaming(END[api])(response, api));
});
afterAll(() => server.close());

/** Request headers that a provider reads. */
const NAMED = [
  "authorization",
  "x-api-key",
  "anthropic-beta",
  "anthropic-version",
  "content-type",
  "x-own",
] as const;

const meant = ({ path, headers, body }: Sent) => ({
  path,
  body,
  headers: Object.fromEntries(NAMED.map((name) => [name, headers[name]])),
});

async function sentBy(api: WireApi, kind: "ours" | "pi", request: ModelRequest) {
  const { outcome } = await made(CLIENTS[api][kind], request);
  expect(outcome).toMatchObject({ kind: "message" });
  const last = server.sent.at(-1);
  if (last === undefined) throw new Error("nothing was sent");
  return meant(last);
}

async function expectSame(api: WireApi, request: ModelRequest): Promise<void> {
  expect(await sentBy(api, "ours", request)).toEqual(await sentBy(api, "pi", request));
}

const PICTURE = { type: "image", mimeType: "image/png", data: "iVBORw0KGgo=" } as const;
const TEXTS = [
  "hello",
  "",
  "  ",
  "line\nline",
  "half \uD83D of a pair",
  "whole 🙈",
  "ünï",
  "x".repeat(3_000),
];
const IDS = [
  "call_1",
  "toolu_2",
  "a|b",
  `call_3|${"x+/=".repeat(20)}`,
  "id with spaces",
  `long_${"y".repeat(80)}`,
];
const DETAILS = '[{"type":"reasoning.text","text":"why","signature":"sig","index":0}]';
const SIGNATURES = ["reasoning_content", "reasoning", "c2ln", "", DETAILS, "[1]"];

function history(roll: Dice, api: WireApi, modelId: string): Entry[] {
  const entries: Entry[] = [];
  const blocks = () =>
    Array.from({ length: 1 + roll.below(3) }, () =>
      roll.chance(0.2) ? PICTURE : ({ type: "text", text: roll.of(TEXTS) } as const),
    );
  for (let turn = 0; turn < 1 + roll.below(5); turn += 1) {
    const own = roll.chance(0.6);
    const signature = roll.chance(0.8) ? { thinkingSignature: roll.of(SIGNATURES) } : {};
    const calls = Array.from({ length: roll.below(3) }, (_, at) => ({
      ...({ type: "toolCall", id: `${roll.of(IDS)}${turn}${at}`, name: "echo" } as const),
      arguments: roll.chance(0.5) ? { text: roll.of(TEXTS) } : {},
    }));
    const redacted = roll.chance(0.1) ? { redacted: true } : {};
    const thought = { type: "thinking", thinking: roll.of(TEXTS), ...signature, ...redacted } as const;
    const text = { type: "text", text: roll.of(TEXTS) } as const;
    const who = own
      ? { api, provider: api === "openai-completions" ? "openai" : "anthropic", model: modelId }
      : { api: "openai-responses", provider: "elsewhere", model: "other" };
    const timestamp = turn * 10;
    const tokens = roll.of([0, 0, 500, 99_000]);
    entries.push(
      { id: `u${turn}`, role: "user", content: blocks(), timestamp },
      {
        ...{ id: `a${turn}`, role: "assistant", ...who, timestamp: timestamp + 1 },
        content: [...(roll.chance(0.4) ? [thought] : []), ...(roll.chance(0.7) ? [text] : []), ...calls],
        usage: { ...ZERO_USAGE, input: tokens, totalTokens: tokens },
        stopReason: roll.of(["stop", "toolUse", "length", "error", "injected"]),
      },
      ...calls
        .filter(() => roll.chance(0.8))
        .map(
          (call): Entry => ({
            ...{ id: `r${call.id}`, role: "toolResult", toolCallId: call.id, toolName: "echo" },
            ...{ content: blocks(), isError: roll.chance(0.2), timestamp: timestamp + 2 },
          }),
        ),
    );
  }
  if (roll.chance(0.8)) entries.push({ id: "last", role: "user", content: blocks(), timestamp: 1_000 });
  return entries;
}

function randomRequest(roll: Dice, api: WireApi, modelId: string): ModelRequest {
  const hosts = ["/v1", "/v1/", "/api.openai.com/v1", "/deep/path"];
  const provider = providerAt(`${server.url}${roll.of(hosts)}`, api, {
    ...(roll.chance(0.2) ? { headers: { "X-Own": "1", "Anthropic-Beta": "one,two" } } : {}),
    ...(roll.chance(0.2) ? { headers: { Authorization: "Bearer of-its-own" }, apiKey: "" } : {}),
  });
  const model = modelOf(provider, {
    id: modelId,
    reasoning: roll.chance(0.7),
    images: roll.chance(0.5),
    maxOutputTokens: roll.of([100, 4_000, 64_000]),
  });
  return requestFor(model, {
    entries: history(roll, api, modelId),
    thinking: roll.of(THINKING_LEVELS),
    tools: roll.of([[], [ECHO], [ECHO, { ...ECHO, name: "echo_2", parameters: { type: "object" } }]]),
    system: roll.of(["", "You are a test.", "half \uDE48 of a pair"]),
    sessionId: roll.of(["s1", "long-".repeat(30)]),
  });
}

const SEED = "bodies-1";
const RANDOM = rounds(30, 150);

describe.each(WIRE_APIS)("%s", (api) => {
  test.each(THINKING_LEVELS)(
    "our client sends the same body as pi-ai at thinking level %s",
    async (thinking) => {
      for (const reasoning of [true, false]) {
        const model = modelOf(providerAt(`${server.url}/v1`, api), { reasoning });
        await expectSame(api, requestFor(model, { thinking }));
      }
    },
  );

  test("tools that share their parameters are sent with their own names and descriptions, at each place", async () => {
    const other = { ...ECHO, name: "echo_2" };
    const reworded = { ...ECHO, description: "Repeats a text." };
    const model = modelOf(providerAt(`${server.url}/v1`, api));
    for (const tools of [[ECHO, other], [other, ECHO], [reworded, other], [ECHO]])
      await expectSame(api, requestFor(model, { tools }));
  });

  both(
    `our client sends the same body and headers as pi-ai for ${RANDOM} random requests (seed ${SEED})`,
    async () => {
      const roll = dice(`${SEED} ${api}`);
      for (let round = 0; round < RANDOM; round += 1)
        await expectSame(api, randomRequest(roll, api, "test-model"));
    },
    120_000,
  );
});

both(
  "anthropic-messages: for each model in pi-ai's catalogue our client sends the same body and headers",
  async () => {
    const api = "anthropic-messages";
    const roll = dice(SEED);
    for (const id of Object.keys(ANTHROPIC_MODELS)) {
      for (const thinking of share(["off", "high"], THINKING_LEVELS)) {
        for (const reasoning of [true, false]) {
          const model = modelOf(providerAt(`${server.url}/v1`, api), { id, reasoning });
          await expectSame(api, requestFor(model, { thinking, tools: roll.of([[], [ECHO]]) }));
        }
      }
      for (let round = 0; round < rounds(1, 5); round += 1)
        await expectSame(api, randomRequest(roll, api, id));
    }
  },
  120_000,
);

test("for each provider in pi-ai's catalogue, requests go through pi-ai, or our client sends the same body", async () => {
  const kinds = new Map<string, string>();
  for (const provider of builtinProviders()) {
    for (const { api: spoken, baseUrl, id } of provider.getModels()) {
      const api = WIRE_APIS.find((one) => one === spoken);
      const place = `${provider.id} ${spoken} ${baseUrl}`;
      if (api === undefined || kinds.has(place)) continue;
      const address = `${server.url}/${baseUrl.replace(/^https?:\/\//, "").replace(/[{}]/g, "")}`;
      const settings = providerAt(address, api, { id: provider.id });
      const kind = clientKind(settings);
      kinds.set(place, kind);
      if (kind === "pi-ai") continue;
      for (const thinking of ["off", "low", "max"] as const)
        await expectSame(api, requestFor(modelOf(settings, { id }), { thinking }));
    }
  }
  expect([...kinds.values()]).toContain("openai");
  expect([...kinds.values()]).toContain("anthropic");
});

test("pi-ai's catalogue has no OpenAI model with chat completions, and our client relies on that", () => {
  const apis = Object.values(OPENAI_MODELS).map((model): string => model.api);
  expect(apis).not.toContain("openai-completions");
});

test.each([
  ["openai-completions", "mine", "http://127.0.0.1:11434/v1", "openai"],
  ["openai-completions", "openai", "https://api.openai.com/v1", "openai"],
  ["openai-completions", "openrouter", "https://example.org/v1", "pi-ai"],
  ["openai-completions", "mine", "https://openrouter.ai/api/v1", "pi-ai"],
  ["openai-completions", "mine", "https://api.deepseek.com", "pi-ai"],
  ["anthropic-messages", "anthropic", "https://api.anthropic.com", "anthropic"],
  ["openai-responses", "openai", "https://api.openai.com/v1", "pi-ai"],
] as const)("API %s, provider %s, address %s: the client is %s", (api, id, baseUrl, kind) => {
  expect(clientKind({ ...providerAt(baseUrl, "openai-completions"), api, id })).toBe(kind);
});

test("requests to Anthropic with a subscription token go through pi-ai", () => {
  const provider = providerAt("https://api.anthropic.com", "anthropic-messages", {
    apiKey: "sk-ant-oat01-x",
  });
  expect(clientKind(provider)).toBe("pi-ai");
});
