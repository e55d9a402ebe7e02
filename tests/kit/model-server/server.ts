// A model server that tests script: real HTTP, and the real streaming formats of the four provider APIs. It
// answers by the script, records requests, and converts each to one common form. const server = await
// startModelServer((request) => request.step === "reply" ? "REPLY_SKIP" : "Hello"); settings.providers =
// [server.provider("anthropic-messages")]; // model ref: "anthropic/test-model" ...
// server.requests.at(-1)?.lastUserText ... await server.close();

import type { IncomingMessage, ServerResponse } from "node:http";
import type {
  ModelSettings,
  ProviderApi,
  ProviderSettings,
} from "../../../src/core/shapes/settings/settings.ts";
import { serveHttp } from "../loopback.ts";
import { normalise, type ServedRequest } from "./requests.ts";
import type { HttpError, Step } from "./steps.ts";
import { WRITERS } from "./writers.ts";

/** One answer of the server. A string is short for `[text(...)]`. */
export type Answer = string | readonly Step[] | HttpError;
export type Script = (request: ServedRequest, index: number) => Answer | Promise<Answer>;

export interface ModelServer {
  readonly url: string;
  /** Every request so far, oldest first. */
  readonly requests: ServedRequest[];
  /** Replaces the script. */
  script(script: Script): void;
  /**
   * Returns provider settings that point at this server. The provider id is the API's first word, such as
   * "anthropic".
   */
  provider(api: ProviderApi, model?: Partial<ModelSettings>): ProviderSettings;
  /** Closes every connection. */
  close(): Promise<void>;
}

export const TEST_MODEL: ModelSettings = {
  id: "test-model",
  contextWindow: 100_000,
  maxOutputTokens: 4_000,
  reasoning: true,
  images: true,
  cost: { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 },
};

const PROVIDERS: Record<ProviderApi, { id: string; path: string }> = {
  "openai-completions": { id: "openai", path: "/openai/v1" },
  "openai-responses": { id: "responses", path: "/responses-api/v1" },
  "anthropic-messages": { id: "anthropic", path: "/anthropic" },
  "google-generative-ai": { id: "google", path: "/google/v1beta" },
};

const MALFORMED = 'event: content_block_start\ndata: {"type": "content_block_start", nonsense\n\n';

export async function startModelServer(first: Script): Promise<ModelServer> {
  let script = first;
  const requests: ServedRequest[] = [];
  const { origin, close } = await serveHttp((incoming, outgoing) => {
    serve(incoming, outgoing, requests, (request, index) => script(request, index)).catch(
      (error: unknown) => {
        outgoing.destroy(error instanceof Error ? error : new Error(String(error)));
      },
    );
  });
  return {
    url: origin,
    requests,
    script: (next) => {
      script = next;
    },
    provider: (api, model = {}) => ({
      id: PROVIDERS[api].id,
      api,
      baseUrl: `${origin}${PROVIDERS[api].path}`,
      apiKey: "test-key-123456",
      headers: {},
      connectTimeoutSeconds: 10,
      idleTimeoutSeconds: 600,
      maxRetries: 4,
      models: [{ ...TEST_MODEL, ...model }],
    }),
    close,
  };
}

async function serve(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  requests: ServedRequest[],
  script: Script,
): Promise<void> {
  let text = "";
  for await (const chunk of incoming) text += String(chunk);
  if (incoming.method === "GET" && incoming.url === "/v1/models") {
    const data = [{ id: TEST_MODEL.id }, { id: "text-embedding" }];
    outgoing.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ data }));
    return;
  }
  const api = apiOf(incoming.url ?? "");
  if (api === undefined) {
    outgoing
      .writeHead(404, { "content-type": "application/json" })
      .end(`{"error":{"message":"no such path"}}`);
    return;
  }
  const gone = new Promise<void>((resolve) => outgoing.on("close", () => resolve()));
  const body = JSON.parse(text) as Record<string, unknown>;
  const request = normalise(api, incoming.url ?? "", body, incoming.headers, gone);
  requests.push(request);
  const answer = await script(request, requests.length - 1);
  if (typeof answer === "string")
    return stream(api, request, outgoing, [{ step: "text", text: answer, chunks: 3 }]);
  if ("status" in answer) return refuse(api, outgoing, answer);
  return stream(api, request, outgoing, answer);
}

function apiOf(path: string): ProviderApi | undefined {
  if (path.includes("/chat/completions")) return "openai-completions";
  if (path.includes("/responses-api/v1/responses")) return "openai-responses";
  if (path.includes("/v1/messages")) return "anthropic-messages";
  return path.includes(":streamGenerateContent") ? "google-generative-ai" : undefined;
}

function refuse(api: ProviderApi, outgoing: ServerResponse, answer: HttpError): void {
  const { status, headers, body } = answer;
  const made = typeof body === "function" ? body(api) : body;
  outgoing.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(made));
}

async function stream(
  api: ProviderApi,
  request: ServedRequest,
  outgoing: ServerResponse,
  steps: readonly Step[],
): Promise<void> {
  outgoing.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  outgoing.flushHeaders();
  const writer = WRITERS[api](request, (chunk) => outgoing.write(chunk));
  for (const step of steps) {
    switch (step.step) {
      case "drop":
        // Without this pause, the broken connection would discard text that was written before.
        await new Promise((resolve) => setImmediate(resolve));
        outgoing.destroy();
        return;
      case "hang":
        await request.gone;
        return;
      case "pause":
        await Promise.race([step.until, request.gone]);
        break;
      case "mark":
        step.reached();
        break;
      case "malformed":
        outgoing.write(api === "google-generative-ai" ? `data: {"a" nonsense\r\n\r\n` : MALFORMED);
        break;
      case "cut":
        outgoing.end();
        return;
      default:
        writer.write(step);
    }
  }
  writer.end();
  outgoing.end();
}
