// Helpers for the tests of the model client, which run it against a server that answers with given bytes.

import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import type { ProviderModel } from "../../src/agent/model/call.ts";
import { type ModelRequest, resolveModel } from "../../src/agent/model/model.ts";
import { type RequestOutcome, requestOnce } from "../../src/agent/model/provider-request.ts";
import {
  ANSWER_LIMITS,
  type ModelSettings,
  type ProviderSettings,
} from "../../src/core/shapes/settings/settings.ts";
import { cleanup } from "../kit/engine/engine.ts";
import { collectTexts } from "../kit/live-text.ts";
import { serveHttp } from "../kit/loopback.ts";
import { TEST_MODEL } from "../kit/model-server/server.ts";
import { fakeWorld } from "../kit/world.ts";

export const WIRE_APIS = ["openai-completions", "anthropic-messages"] as const;
export type WireApi = (typeof WIRE_APIS)[number];

type Json = Record<string, unknown>;

export interface Sent {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Json;
}

export interface RawServer {
  readonly url: string;
  readonly sent: Sent[];
  /** All connections so far, open or closed. */
  readonly connections: Set<unknown>;
  answer(how: Answers): void;
  close(): Promise<void>;
}

export type Answers = (response: ServerResponse, api: WireApi) => unknown;

/** Starts a server that sends these answers, for example byte by byte. It is closed after the test. */
export async function rawServer(first: Answers): Promise<RawServer> {
  let how = first;
  const sent: Sent[] = [];
  const connections = new Set<unknown>();
  const { origin, close } = await serveHttp(async (request, response) => {
    connections.add(request.socket);
    let text = "";
    for await (const chunk of request) text += String(chunk);
    const path = request.url ?? "";
    sent.push({ path, headers: request.headers, body: JSON.parse(text) as Json });
    await how(response, path.includes("/chat/completions") ? "openai-completions" : "anthropic-messages");
  });
  cleanup(close);
  return {
    ...{ url: origin, sent, connections, close },
    answer: (next) => {
      how = next;
    },
  };
}

/** Returns an answer that sends the given bytes as an event stream. */
export function streaming(...parts: readonly (string | Uint8Array)[]): Answers {
  return async (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const part of parts) {
      response.write(part);
      if (parts.length > 1) await new Promise((resolve) => setImmediate(resolve));
    }
    response.end();
  };
}

export function providerAt(
  url: string,
  api: WireApi,
  more: Partial<ProviderSettings> = {},
): ProviderSettings {
  return {
    id: api === "openai-completions" ? "openai" : "anthropic",
    ...{ api, baseUrl: url, apiKey: "test-key-123456", headers: {} },
    ...{ connectTimeoutSeconds: 10, idleTimeoutSeconds: 600, maxRetries: 0, models: [TEST_MODEL] },
    ...more,
  };
}

export function modelOf(provider: ProviderSettings, settings: Partial<ModelSettings> = {}): ProviderModel {
  const model = { ...TEST_MODEL, ...settings };
  const found = resolveModel([{ ...provider, models: [model] }], `${provider.id}/${model.id}`);
  if (!found.ok || found.value.kind !== "provider") throw new Error(JSON.stringify(found));
  return found.value;
}

export const ECHO = {
  name: "echo",
  description: "Gives back what it is given.",
  parameters: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
  parallel: true,
  idempotent: true,
};

export function requestFor(model: ProviderModel, more: Partial<ModelRequest> = {}): ModelRequest {
  return {
    ...{ model, system: "You are a test.", tools: [ECHO], thinking: "off", sessionId: "s1" },
    entries: [{ id: "u1", role: "user", content: [{ type: "text", text: "hello" }], timestamp: 1 }],
    limits: ANSWER_LIMITS,
    ...more,
  };
}

export interface Made {
  readonly outcome: RequestOutcome;
  /** The last text that the client reported while it streamed. */
  readonly text: string;
  /** Number of texts that the client reported. */
  readonly reports: number;
}

export async function made(request: ModelRequest, signal?: AbortSignal): Promise<Made> {
  const texts: string[] = [];
  const model = request.model as ProviderModel;
  const abort = signal ?? new AbortController().signal;
  const outcome = await requestOnce(fakeWorld(), model, request, collectTexts(texts), abort);
  return { outcome, text: texts.at(-1) ?? "", reports: texts.length };
}
