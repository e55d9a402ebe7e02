// The four provider APIs over real HTTP: requests, answers and failures.

import { afterEach, expect } from "vitest";
import type { ModelOutcome, ModelRequest } from "../../src/agent/model/model.ts";
import { resolveModel, UNREADABLE_ARGUMENTS } from "../../src/agent/model/model.ts";
import { openModelPort } from "../../src/agent/model/port.ts";
import type { Entry } from "../../src/core/shapes/message.ts";
import { ANSWER_LIMITS, PROVIDER_APIS, type ProviderApi } from "../../src/core/shapes/settings/settings.ts";
import { both, share, test } from "../kit/deep.ts";
import { cleanup } from "../kit/engine/engine.ts";
import { collectTexts } from "../kit/live-text.ts";
import { deafServer } from "../kit/loopback.ts";
import { type ModelServer, type Script, startModelServer } from "../kit/model-server/server.ts";
import {
  call,
  cut,
  drop,
  hang,
  httpError,
  malformed,
  overloaded,
  pause,
  rateLimited,
  serverError,
  stop,
  text,
  thinking,
  usage,
} from "../kit/model-server/steps.ts";
import { until } from "../kit/until.ts";
import { type FakeWorld, fakeWorld, settableWorld } from "../kit/world.ts";

let server: ModelServer | undefined;
afterEach(async () => {
  await server?.close();
  server = undefined;
});

async function serve(script: Script): Promise<ModelServer> {
  server = await startModelServer(script);
  return server;
}

function said(text: string): Entry {
  return { id: "u1", role: "user", content: [{ type: "text", text }], timestamp: 1 };
}

const ECHO = {
  name: "echo",
  description: "Gives back what it is given.",
  parameters: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
  parallel: true,
  idempotent: true,
};

function requestTo(api: ProviderApi, from: ModelServer, more: Partial<ModelRequest> = {}): ModelRequest {
  const provider = from.provider(api);
  const model = resolveModel([provider], `${provider.id}/test-model`);
  if (!model.ok) throw new Error(model.error);
  return {
    model: model.value,
    system: "You are a test.",
    limits: ANSWER_LIMITS,
    entries: [said("hello")],
    tools: [ECHO],
    thinking: "off",
    sessionId: "s1",
    ...more,
  };
}

interface Asked {
  /** The thinking so far, after each piece. */
  readonly thoughts: string[];
  readonly outcome: Promise<ModelOutcome>;
  readonly texts: string[];
  readonly abort: AbortController;
  readonly world: FakeWorld;
}

function ask(request: ModelRequest, world: FakeWorld = fakeWorld()): Asked {
  const texts: string[] = [];
  const thoughts: string[] = [];
  const abort = new AbortController();
  const asked = { ...request, onThinking: collectTexts(thoughts) };
  const outcome = openModelPort(world).call(asked, collectTexts(texts), abort.signal);
  return { outcome, texts, thoughts, abort, world };
}

/** Skips every backoff and records its duration. */
const END_WAIT_MS = 1_000;

async function withBackoffs(asked: Asked): Promise<{ outcome: ModelOutcome; delays: number[] }> {
  const delays: number[] = [];
  let over = false;
  const outcome = asked.outcome.finally(() => {
    over = true;
  });
  const drive = async (): Promise<void> => {
    while (!over) {
      const delay = await Promise.race([asked.world.timerWithin(300_000), outcome.then(() => undefined)]);
      if (delay === undefined) return;
      // A provider that sends nothing more after the reason of its end has a second for that.
      if (delay !== END_WAIT_MS) delays.push(delay);
      await asked.world.advance(delay);
    }
  };
  await Promise.all([outcome, drive()]);
  return { outcome: await outcome, delays };
}

async function messageOf(outcome: Promise<ModelOutcome>) {
  const settled = await outcome;
  if (settled.kind !== "message") throw new Error(JSON.stringify(settled));
  return settled.message;
}

test.each(PROVIDER_APIS)(
  "%s: text streams in growing pieces, and the message has usage and price",
  async (api) => {
    const served = await serve(() => [
      usage({ input: 1000, output: 200, cacheRead: 500 }),
      text("Hello there, world", 3),
    ]);
    const { outcome, texts } = ask(requestTo(api, served));
    const message = await messageOf(outcome);
    expect(message.content).toMatchObject([{ type: "text", text: "Hello there, world" }]);
    // Texts that arrived together are reported together.
    expect(texts.at(-1)).toBe("Hello there, world");
    for (const [at, longer] of texts.entries()) expect(longer.startsWith(texts[at - 1] ?? "")).toBe(true);
    expect(message).toMatchObject({ stopReason: "stop", api, model: "test-model" });
    expect(message.usage).toMatchObject({ input: 1000, output: 200, cacheRead: 500, totalTokens: 1700 });
    expect(message.usage.cost.total).toBeCloseTo((1000 * 3 + 200 * 15 + 500 * 0.3) / 1e6, 9);
    expect(served.requests[0]).toMatchObject({
      system: "You are a test.",
      lastUserText: "hello",
      toolNames: ["echo"],
      model: "test-model",
    });
  },
);

test.each(PROVIDER_APIS)(
  "%s: an answer that exceeds its byte limit is cut, and not read further",
  async (api) => {
    const served = await serve(() => [text("many words ".repeat(1_000), 500)]);
    const limits = { maxAnswerBytes: 2_000, maxAnswerToolCalls: 2 };
    const { outcome, texts } = ask(requestTo(api, served, { limits }));
    const settled = await outcome;
    expect(settled).toMatchObject({
      kind: "failed",
      code: "answer_too_large",
      error: expect.stringMatching(/more than 2000 bytes \(agents\.defaults\.maxAnswerBytes/),
      partial: { stopReason: "error", errorCode: "answer_too_large" },
    });
    expect(texts.at(-1)?.length).toBeLessThan("many words ".length * 1_000);
    expect(served.requests).toHaveLength(1);
  },
);

test.each(PROVIDER_APIS)("%s: if an answer has too many tool calls, none of them is made", async (api) => {
  const calls = Array.from({ length: 5 }, (_, at) => call("echo", { text: "a" }, `id_${at}`));
  const served = await serve(() => [text("I begin."), ...calls]);
  const limits = { maxAnswerBytes: 100_000, maxAnswerToolCalls: 4 };
  const settled = await ask(requestTo(api, served, { limits })).outcome;
  expect(settled).toMatchObject({
    kind: "failed",
    code: "answer_too_large",
    error: expect.stringContaining("more than 4 tool calls"),
    partial: { content: [{ type: "text", text: "I begin." }] },
  });
});

test.each(PROVIDER_APIS)("%s: usage that is not a number counts as missing", async (api) => {
  const odd = { input: "many", output: null, cacheRead: -5 } as unknown as Parameters<typeof usage>[0];
  const served = await serve(() => [usage(odd), text("hello")]);
  const { cost, ...tokens } = (await messageOf(ask(requestTo(api, served)).outcome)).usage;
  for (const value of [...Object.values(tokens), ...Object.values(cost)]) {
    expect(value).toBeTypeOf("number");
    expect(value).toBeGreaterThanOrEqual(0);
  }
});

test.each(PROVIDER_APIS)(
  "%s: thinking is passed on while it is written, and starts again after a retry",
  async (api) => {
    const heard = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
    const scripts = [
      [thinking("first"), pause(heard[0].promise), drop()],
      [thinking("let me"), pause(heard[1].promise), thinking(" see"), text("42")],
    ];
    const served = await serve(() => scripts.shift() ?? "no more");
    const asked = ask(requestTo(api, served, { thinking: "high" }));
    const settled = withBackoffs(asked);
    for (const [at, text] of ["first", "let me"].entries()) {
      await until(() => asked.thoughts.includes(text));
      heard[at]?.resolve();
    }
    expect((await settled).outcome.kind).toBe("message");
    expect(asked.thoughts.at(-1)).toMatch(/^let me\n? see$/);
    expect(asked.texts.at(-1)).toBe("42");
  },
);

test.each([
  ["openai-completions", { reasoning_effort: "high" }],
  ["openai-responses", { reasoning: { effort: "high" } }],
  ["anthropic-messages", { thinking: { type: "enabled" } }],
  ["google-generative-ai", { generationConfig: { thinkingConfig: { includeThoughts: true } } }],
] as const)("%s: the thinking level reaches the provider", async (api, expected) => {
  const served = await serve(() => "ok");
  await ask(requestTo(api, served, { thinking: "high" })).outcome;
  expect(served.requests[0]?.body).toMatchObject(expected);
});

test.each(PROVIDER_APIS)(
  "%s: if a model cannot think, its request contains no thinking level",
  async (api) => {
    const served = await serve(() => "ok");
    const provider = served.provider(api, { reasoning: false });
    const model = resolveModel([provider], `${provider.id}/test-model`);
    if (!model.ok) throw new Error(model.error);
    const bodies = [];
    for (const thinking of ["off", "minimal", "high", "max"] as const) {
      await messageOf(ask(requestTo(api, served, { model: model.value, thinking })).outcome);
      bodies.push(served.requests.at(-1)?.body);
    }
    expect(JSON.stringify(bodies[0])).not.toMatch(/thinking|reasoning|effort/);
    for (const body of bodies) expect(body).toEqual(bodies[0]);
  },
);

test.each(["openai-completions", "openai-responses", "anthropic-messages"] as const)(
  "%s: apiKey is not needed if a header contains the key",
  async (api) => {
    const served = await serve(() => "ok");
    const { apiKey: _, ...keyless } = served.provider(api);
    const provider = { ...keyless, headers: { Authorization: "Bearer of-its-own", "X-Extra": "1" } };
    const model = resolveModel([provider], `${provider.id}/test-model`);
    if (!model.ok) throw new Error(model.error);
    expect((await ask(requestTo(api, served, { model: model.value })).outcome).kind).toBe("message");
    expect(served.requests[0]?.headers).toMatchObject({ authorization: "Bearer of-its-own", "x-extra": "1" });
    served.script(() => httpError(401, "invalid key of-its-own", {}, "authentication_error"));
    const refused = await ask(requestTo(api, served, { model: model.value })).outcome;
    expect(refused).toMatchObject({ kind: "failed", error: expect.stringContaining("invalid key ***") });
  },
);

test.each(PROVIDER_APIS)(
  "%s: 429, 500, 529 and an error in the stream are retried, up to five attempts",
  async (api) => {
    const answers = [rateLimited(), serverError(), overloaded(), httpError(503, "unavailable")];
    const served = await serve((_, index) => answers[index] ?? "at last");
    const { outcome, delays } = await withBackoffs(ask(requestTo(api, served)));
    expect(outcome).toMatchObject({ kind: "message" });
    expect(delays).toHaveLength(4);
    delays.forEach((delay, at) => {
      expect(delay).toBeGreaterThanOrEqual(250 * 2 ** at);
      expect(delay).toBeLessThanOrEqual(500 * 2 ** at);
    });
    served.script(() => serverError());
    const failing = await withBackoffs(ask(requestTo(api, served)));
    expect(failing.outcome).toMatchObject({ kind: "failed" });
    expect(failing.outcome).toHaveProperty("error", expect.stringContaining("given up after 5 tries"));
    expect(served.requests).toHaveLength(10);
  },
);

test.each(PROVIDER_APIS)(
  "%s: the time in retry-after is respected; if it exceeds five minutes, the call fails",
  async (api) => {
    const served = await serve((_, index) => (index === 0 ? rateLimited(42) : "ok"));
    const first = await withBackoffs(ask(requestTo(api, served)));
    expect(first).toMatchObject({ outcome: { kind: "message" }, delays: [42_000] });
    served.script(() => rateLimited(900));
    const second = await withBackoffs(ask(requestTo(api, served)));
    expect(second.delays).toEqual([]);
    expect(second.outcome).toHaveProperty("error", expect.stringContaining("asks to wait 900 s"));
  },
);

test.each(PROVIDER_APIS)("%s: a stream that breaks before any text has arrived is retried", async (api) => {
  const served = await serve((_, index) => (index === 0 ? [drop()] : "fine"));
  const early = await withBackoffs(ask(requestTo(api, served)));
  expect(early.outcome).toMatchObject({ kind: "message" });
  served.script(() => [text("half of it "), drop()]);
  const late = ask(requestTo(api, served));
  expect(await late.outcome).toMatchObject({ kind: "failed", partial: { stopReason: "error" } });
  expect(served.requests).toHaveLength(3);
  served.script(() => [call("echo", { text: "x" }), drop()]);
  expect(await ask(requestTo(api, served)).outcome).toMatchObject({ kind: "failed" });
  expect(served.requests).toHaveLength(4);
});

test.each(PROVIDER_APIS)(
  "%s: malformed events and a response without an end are reported as failures",
  async (api) => {
    const served = await serve(() => [malformed()]);
    const broken = await withBackoffs(ask(requestTo(api, served)));
    expect(broken.outcome.kind).toBe("failed");
    served.script(() => [text("begun"), cut()]);
    expect((await withBackoffs(ask(requestTo(api, served)))).outcome).toMatchObject({ kind: "failed" });
  },
);

test.each(PROVIDER_APIS)(
  "%s: a filtered answer gives a clear error with its text, and an unknown reason is no error",
  async (api) => {
    const served = await serve(() => [text("so "), stop("filtered")]);
    const filtered = await ask(requestTo(api, served)).outcome;
    expect(filtered).toMatchObject({ kind: "failed", partial: { content: [{ text: "so " }] } });
    served.script(() => [text("so "), stop("strange")]);
    const strange = await ask(requestTo(api, served)).outcome;
    expect(strange).toMatchObject({ kind: "message", message: { content: [{ text: "so " }] } });
  },
);

test.each(PROVIDER_APIS)(
  "%s: an abort ends the call during the request, the stream and a backoff",
  async (api) => {
    const served = await serve(() => [hang()]);
    const waiting = ask(requestTo(api, served));
    await until(() => served.requests.length === 1);
    waiting.abort.abort();
    expect(await waiting.outcome).toEqual({ kind: "aborted" });

    served.script(() => [text("begun", 1), hang()]);
    const streaming = ask(requestTo(api, served));
    await until(() => streaming.texts.length === 1);
    streaming.abort.abort();
    expect(await streaming.outcome).toMatchObject({
      kind: "aborted",
      partial: { content: [{ text: "begun" }], stopReason: "aborted" },
    });

    served.script(() => serverError());
    const backingOff = ask(requestTo(api, served));
    await backingOff.world.timerWithin(30_000);
    backingOff.abort.abort();
    expect(await backingOff.outcome).toEqual({ kind: "aborted" });
    expect(backingOff.world.pendingDelays()).toEqual([]);
  },
);

test.each(PROVIDER_APIS)(
  "%s: an invalid request, an unknown model, a wrong key and missing credit each fail without a retry",
  async (api) => {
    const served = await serve(() => "");
    const wrongKey = httpError(401, "invalid key test-key-123456", {}, "authentication_error");
    const noModel = httpError(404, "no such model", {}, "not_found_error");
    for (const refused of [
      noModel,
      httpError(400, "bad request", {}, "invalid_request_error"),
      wrongKey,
      httpError(429, "You exceeded your current quota, check your billing", {}, "insufficient_quota"),
    ]) {
      served.script(() => refused);
      const outcome = await ask(requestTo(api, served)).outcome;
      const codes = new Map([
        [wrongKey, "model_unauthorized"],
        [noModel, "invalid_model"],
      ]);
      const code = codes.get(refused);
      expect([outcome.kind, outcome.kind === "failed" && outcome.code]).toEqual(["failed", code]);
      expect(JSON.stringify(outcome)).not.toContain("test-key-123456");
    }
    expect(served.requests).toHaveLength(4);
  },
);

test.each(["openai-completions", "openai-responses", "anthropic-messages"] as const)(
  "%s: tool arguments that are not a JSON object are kept unchanged and marked",
  async (api) => {
    const served = await serve(() => [call("echo", '{"text": "unfin'), call("echo", "[1]")]);
    const message = await messageOf(ask(requestTo(api, served)).outcome);
    expect(message.content).toMatchObject([
      { arguments: { [UNREADABLE_ARGUMENTS]: '{"text": "unfin' } },
      { arguments: { [UNREADABLE_ARGUMENTS]: "[1]" } },
    ]);
  },
);

test.each(PROVIDER_APIS)(
  "%s: a redirect to another origin is refused, and nothing is sent to that origin",
  async (api) => {
    const other = await serve(() => "stolen");
    const headers = { location: `${other.url}/v1/elsewhere` };
    const served = await startModelServer(() => ({ status: 307, headers, body: {} }));
    try {
      const { outcome } = await withBackoffs(ask(requestTo(api, served)));
      expect(outcome).toMatchObject({ kind: "failed" });
      expect(outcome).toHaveProperty("error", expect.stringContaining(`redirects to ${other.url}, and`));
      expect(other.requests).toEqual([]);
      expect(served.requests).toHaveLength(1);
    } finally {
      await served.close();
    }
  },
);

test.each(PROVIDER_APIS)(
  "%s: if a connection breaks during an answer, the error is clear, and the text so far is kept",
  async (api) => {
    const served = await serve(() => [text("half of it ", 1), drop()]);
    const outcome = await ask(requestTo(api, served)).outcome;
    expect(outcome).toMatchObject({ kind: "failed", partial: { content: [{ text: "half of it " }] } });
    const error = outcome.kind === "failed" ? outcome.error : "";
    const words = "the answer broke off before its end. Send another message to continue";
    expect(error).toMatch(new RegExp(`^${words} \\(model `));
    served.script(() => [drop()]);
    const early = await withBackoffs(ask(requestTo(api, served)));
    expect(early.outcome).toHaveProperty(
      "error",
      expect.stringMatching(
        /^the connection was closed before the answer began \(.*\) \(given up after 5 tries\)$/,
      ),
    );
  },
);

test("with `maxRetries: 0` a request is tried once; if no data follows the first text for idleTimeoutSeconds, it ends", async () => {
  const served = await serve((_, index) => (index === 0 ? serverError() : [text("a", 1), hang()]));
  const request = requestTo("openai-completions", served);
  if (request.model.kind !== "provider") throw new Error("no provider");
  const provider = { ...request.model.provider, maxRetries: 0, idleTimeoutSeconds: 7 };
  const impatient = { ...request, model: { ...request.model, provider } };
  expect(await ask(impatient).outcome).toMatchObject({ kind: "failed" });
  expect(served.requests).toHaveLength(1);
  const asked = ask(impatient);
  await until(() => asked.texts.length === 1);
  await asked.world.advance(7_001);
  expect(await asked.outcome).toHaveProperty("error", expect.stringContaining("idleTimeoutSeconds"));
});

const [ONE_API, ...OTHER_APIS] = PROVIDER_APIS;

both.each(share([ONE_API], OTHER_APIS))(
  "%s: a request without a connection fails after connectTimeoutSeconds and is retried",
  async (api) => {
    const deaf = await deafServer();
    cleanup(() => deaf.close());
    const served = await serve(() => "never");
    const request = requestTo(api, served);
    if (request.model.kind !== "provider") throw new Error("no provider");
    const patience = { maxRetries: 1, connectTimeoutSeconds: 1 };
    const provider = { ...request.model.provider, ...patience, baseUrl: `${deaf.url}/v1` };
    const asked = ask({ ...request, model: { ...request.model, provider } });
    const { outcome, delays } = await withBackoffs(asked);
    expect(delays).toHaveLength(1);
    expect(deaf.connections()).toBe(2);
    const words = `${deaf.url}/v1 accepted no connection within 1 s (models.providers.${provider.id}.connectTimeoutSeconds)`;
    expect(outcome).toHaveProperty("error", expect.stringContaining(words));
  },
);

test("P2: an abort ends a request even if the HTTP library ignores the signal", async () => {
  const served = await serve(() => [hang()]);
  const asked = ask(requestTo("openai-responses", served));
  const realFetch = globalThis.fetch;
  // This replacement of fetch does not pass on the abort.
  globalThis.fetch = (input, init) => realFetch(input, { ...init, signal: null });
  try {
    await until(() => served.requests.length === 1);
    asked.abort.abort();
    expect(await asked.outcome).toEqual({ kind: "aborted" });
  } finally {
    globalThis.fetch = realFetch;
  }
});

test.each([
  ["keeps its time", 0],
  ["is set forward", 86_400_000],
  ["is set back", -86_400_000],
])("the idle time counts from the last byte, not from the first, if the clock %s", async (_what, stepMs) => {
  const { world, set } = settableWorld();
  const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
  const served = await serve(() => [
    text("a", 1),
    pause(gates[0].promise),
    text("b", 1),
    pause(gates[1].promise),
    text("c", 1),
  ]);
  const asked = ask(requestTo("openai-completions", served), world);
  for (const [at, gate] of gates.entries()) {
    await until(() => asked.texts.length === at + 1);
    set(stepMs);
    await world.advance(6 * 60_000);
    gate.resolve();
  }
  expect((await messageOf(asked.outcome)).content).toMatchObject([{ text: "abc" }]);
});
