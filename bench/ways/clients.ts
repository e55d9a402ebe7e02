// Runs the clients that are compared: pi-ai, and the AI SDK with its provider for each API. Both are imported
// from a folder outside of this project, so their types are not known here.

import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { PROVIDER_APIS, type ProviderApi } from "../../src/core/shapes/settings/settings.ts";
import type { Answered } from "./cases.ts";

/** The messages before the answer: one question, a question with a call and its result, or this question. */
type History = "none" | "tools" | (string & {});

export interface Call {
  readonly api: ProviderApi;
  readonly baseUrl: string;
  readonly reasoning: boolean;
  readonly history: History;
  /** A provider for which a client may have a way of its own. */
  readonly vendor?: "mistral" | undefined;
  readonly signal: AbortSignal;
}

export interface WayClient {
  readonly name: string;
  answer(call: Call): Promise<Answered>;
}

// biome-ignore lint/suspicious/noExplicitAny: the packages are not dependencies.
type Foreign = any;

const KEY = "test-key-123456";
const SYSTEM = "You are a test.";
const PARAMETERS = { type: "object", properties: { limit: { type: "number" } } };
export const TOOL = { name: "sessions_list", description: "Lists sessions.", parameters: PARAMETERS };

async function load(packages: string, name: string): Promise<Foreign> {
  try {
    return await import(pathToFileURL(createRequire(`${packages}/x.js`).resolve(name)).href);
  } catch {
    // The package has only files for `import`.
    const { readFileSync } = await import("node:fs");
    const [scope, bare, ...rest] = name.split("/");
    const folder = `${packages}/${scope}/${bare}`;
    const { exports } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
    const entry = exports[`./${rest[0]}/*`]?.import.replace("*", rest.slice(1).join("/"));
    return import(pathToFileURL(`${folder}/${entry ?? exports["."].import}`).href);
  }
}

function piMessages(history: History): object[] {
  const now = 1;
  const user = { role: "user", content: history === "none" || history === "tools" ? "go" : history };
  if (history !== "tools") return [{ ...user, timestamp: now }];
  const call = { type: "toolCall", id: "call_1|fc_1", name: TOOL.name, arguments: { limit: 1 } };
  const result = { toolCallId: call.id, toolName: TOOL.name, content: [{ type: "text", text: "none" }] };
  return [
    { ...user, timestamp: now },
    { role: "assistant", content: [call], stopReason: "toolUse", usage: NO_USAGE, timestamp: now },
    { role: "toolResult", ...result, isError: false, timestamp: now },
  ];
}

const MISTRAL_API = "mistral-conversations";
const NO_COST = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
const NO_USAGE = { ...NO_COST, totalTokens: 0, cost: { ...NO_COST, total: 0 } };

/** Returns pi-ai as it is, without corrections. */
export async function piClient(packages: string): Promise<WayClient> {
  const { normalizeContext } = await load(packages, "@earendil-works/pi-ai/utils/transcript");
  const { isContextOverflow } = await load(packages, "@earendil-works/pi-ai/utils/overflow");
  const streams = new Map<string, Foreign>();
  for (const api of [...PROVIDER_APIS, MISTRAL_API])
    streams.set(api, await load(packages, `@earendil-works/pi-ai/api/${api}`));
  return {
    name: "pi-ai",
    async answer({ api: wanted, vendor, baseUrl, reasoning, history, signal }) {
      const api = vendor === "mistral" ? MISTRAL_API : wanted;
      const isShort = api === "anthropic-messages" || vendor === "mistral";
      const model = {
        ...{ id: "test-model", name: "test", api, provider: "local", reasoning, input: ["text"] },
        baseUrl: isShort ? baseUrl.replace(/\/v1$/, "") : baseUrl,
        ...{ cost: NO_COST, contextWindow: 100_000, maxTokens: 4_000 },
      };
      const earlier = { api: "openai-responses", provider: "other", model: "other" };
      const messages = piMessages(history).map((one) => ({ ...one, ...earlier }));
      const context = normalizeContext({ systemPrompt: SYSTEM, messages, tools: [TOOL] });
      const more = { apiKey: KEY, maxRetries: 0, signal, ...(reasoning ? { reasoning: "high" } : {}) };
      const message = await streams.get(api).streamSimple(model, context, more).result();
      return { ...readPi(message), isOverflow: isContextOverflow(message, model.contextWindow) };
    },
  };
}

function readPi(message: Foreign): Answered {
  const texts = (type: string, field: string): string =>
    message.content.flatMap((one: Foreign) => (one.type === type ? [one[field]] : [])).join("");
  const calls = message.content.filter(({ type }: Foreign) => type === "toolCall");
  return {
    text: texts("text", "text"),
    thinking: texts("thinking", "thinking"),
    calls: calls.map((one: Foreign) => ({
      name: one.name,
      arguments: one.argumentsError === undefined ? one.arguments : undefined,
    })),
    stop: message.stopReason,
    ...(message.errorMessage === undefined ? {} : { error: message.errorMessage }),
  };
}

function sdkMessages(history: History): object[] {
  const user = { role: "user", content: history === "none" || history === "tools" ? "go" : history };
  if (history !== "tools") return [user];
  const named = { toolCallId: "call_1", toolName: TOOL.name };
  return [
    user,
    { role: "assistant", content: [{ type: "tool-call", ...named, input: { limit: 1 } }] },
    { role: "tool", content: [{ type: "tool-result", ...named, output: { type: "text", value: "none" } }] },
  ];
}

/** Returns the AI SDK with the provider that its documentation names for each API. */
export async function aiSdkClient(packages: string): Promise<WayClient> {
  const { streamText, jsonSchema, tool } = await load(packages, "ai");
  const [compatible, openAi, anthropic, google, mistral] = await Promise.all(
    ["openai-compatible", "openai", "anthropic", "google", "mistral"].map((name) =>
      load(packages, `@ai-sdk/${name}`),
    ),
  );
  const modelFor = ({ api, baseUrl: baseURL, vendor }: Call): Foreign => {
    if (vendor === "mistral") return mistral.createMistral({ baseURL, apiKey: KEY })("test-model");
    const access = { baseURL, apiKey: KEY, name: "local" };
    if (api === "openai-completions")
      return compatible.createOpenAICompatible({ ...access, includeUsage: true })("test-model");
    if (api === "openai-responses") return openAi.createOpenAI(access).responses("test-model");
    return api === "anthropic-messages"
      ? anthropic.createAnthropic(access)("test-model")
      : google.createGoogle(access)("test-model");
  };
  const tools = { [TOOL.name]: tool({ description: TOOL.description, inputSchema: jsonSchema(PARAMETERS) }) };
  return {
    name: "AI SDK",
    async answer(call) {
      const { fullStream } = streamText({
        ...{ model: modelFor(call), instructions: SYSTEM, messages: sdkMessages(call.history), tools },
        ...{ maxRetries: 0, maxOutputTokens: 4_000, abortSignal: call.signal, onError: () => {} },
        ...(call.reasoning ? { reasoning: "high" } : {}),
      });
      return readSdk(fullStream);
    },
  };
}

async function readSdk(parts: AsyncIterable<Foreign>): Promise<Answered> {
  const answered = { text: "", thinking: "", calls: [] as Foreign[], stop: "", error: undefined as Foreign };
  for await (const part of parts) {
    if (part.type === "text-delta") answered.text += part.text;
    if (part.type === "reasoning-delta") answered.thinking += part.text;
    if (part.type === "tool-call") {
      const given = part.invalid === true ? undefined : part.input;
      answered.calls.push({ name: part.toolName, arguments: given });
    }
    if (part.type === "finish") answered.stop = STOPS[part.finishReason] ?? part.finishReason;
    if (part.type === "error") answered.error = wordsIn(part.error);
  }
  const { error, ...rest } = answered;
  return { ...rest, ...(error === undefined ? {} : { error }) };
}

/** A reason that the AI SDK does not know is no error: a caller may take it as a stop. */
const STOPS: Readonly<Record<string, string>> = { "tool-calls": "toolUse", other: "stop", unknown: "stop" };

function wordsIn(error: Foreign): string {
  const cause = error?.cause?.message ?? error?.cause?.code ?? "";
  return `${error?.message ?? JSON.stringify(error)} ${error?.responseBody ?? ""} ${cause}`.trim();
}
