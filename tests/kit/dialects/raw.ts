// A model server that sends exactly the bytes of a test, a gateway in front of it, and the pieces of streams.

import type { ModelSettings, ProviderApi } from "../../../src/core/shapes/settings/settings.ts";
import { cleanup } from "../engine/engine.ts";
import { serveHttp } from "../loopback.ts";
import { normalise, type ServedRequest } from "../model-server/requests.ts";
import { TEST_MODEL } from "../model-server/server.ts";
import type { Json } from "./dialect.ts";
import { openTalks, PROVIDER, type Talk, type TalkHouse, type TalkOptions } from "./house.ts";

export interface RawReply {
  /** Default 200. */
  readonly status?: number;
  /** Default: an event stream. */
  readonly type?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly pieces?: readonly string[];
  /** True if the connection stays open behind the last piece. */
  readonly isOpen?: boolean;
  /** True if the connection breaks behind the last piece. */
  readonly isBroken?: boolean;
}

/** Answers a request. `at`: its number among those of its model. */
export type RawScript = (request: ServedRequest, at: number) => RawReply;

export interface RawTalk extends Talk {
  readonly requests: readonly ServedRequest[];
}

export interface RawHouse extends TalkHouse {
  /** Opens a session with a model that answers by this script. */
  talk(model: string, script: RawScript, thinking?: "medium"): Promise<RawTalk>;
  /** Scripts a model without a session. */
  script(model: string, script: RawScript): void;
}

export interface RawOptions extends TalkOptions {
  readonly api?: ProviderApi;
  /** Id of the provider. Default: one that the gateway does not know. */
  readonly id?: string;
  /** Ids of the models. Default: `m`. */
  readonly models?: readonly string[];
  readonly settings?: Partial<ModelSettings>;
  readonly maxRetries?: number;
}

const PATHS: Record<ProviderApi, string> = {
  "openai-completions": "/v1",
  "openai-responses": "/v1",
  "anthropic-messages": "",
  "google-generative-ai": "/v1beta",
};

export async function openRaw(options: RawOptions = {}): Promise<RawHouse> {
  const { api = "openai-completions", id = "local", models = ["m"], maxRetries = 2 } = options;
  const scripts = new Map<string, RawScript>();
  const requests = new Map<string, ServedRequest[]>();
  const { origin, close } = await serveHttp(async (incoming, outgoing) => {
    let text = "";
    for await (const chunk of incoming) text += String(chunk);
    const gone = new Promise<void>((resolve) => outgoing.on("close", () => resolve()));
    const request = normalise(api, incoming.url ?? "", JSON.parse(text), incoming.headers, gone);
    const known = requests.get(request.model) ?? [];
    requests.set(request.model, known);
    known.push(request);
    const reply = scripts.get(request.model)?.(request, known.length - 1) ?? { status: 404 };
    const { status = 200, type = "text/event-stream", headers = {}, pieces = [] } = reply;
    outgoing.writeHead(status, { "content-type": type, ...headers });
    for (const piece of pieces) outgoing.write(piece);
    if (reply.isBroken === true) setImmediate(() => outgoing.destroy());
    else if (reply.isOpen !== true) outgoing.end();
  });
  cleanup(close);
  const provider = {
    ...{ ...PROVIDER, id, api, maxRetries, baseUrl: origin + PATHS[api] },
    models: models.map((model) => ({ ...TEST_MODEL, ...options.settings, id: model })),
  };
  const talks = await openTalks([provider], options);
  return {
    ...talks,
    script: (model, script) => void scripts.set(model, script),
    async talk(model, script, thinking) {
      scripts.set(model, script);
      const list: ServedRequest[] = [];
      requests.set(model, list);
      return { ...(await talks.open(`${id}/${model}`, thinking)), requests: list };
    },
  };
}

export const event = (data: unknown): string => `data: ${JSON.stringify(data)}\n\n`;
/** An event with a name, of Anthropic or of the Responses API. */
export const named = (type: string, more: object): string => `event: ${type}\n${event({ type, ...more })}`;
/** A chunk of a chat completion. */
export const delta = (value: unknown, finish: string | null = null, more: object = {}): string =>
  event({ id: "c", choices: [{ index: 0, delta: value, finish_reason: finish }], ...more });
export const DONE = "data: [DONE]\n\n";

/** A piece of a call of `sessions_list`. Absent parts are left out. */
export function callPiece(
  index: number | undefined,
  id: string | undefined,
  given: unknown,
  hasName = true,
): Json {
  return {
    ...(index === undefined ? {} : { index }),
    ...(id === undefined ? {} : { id, type: "function" }),
    function: { ...(hasName ? { name: "sessions_list" } : {}), arguments: given },
  };
}
export const calling = (...pieces: Json[]): string => delta({ tool_calls: pieces });

export const stream = (...pieces: string[]): RawReply => ({ pieces });
export const json = (body: unknown, status = 200): RawReply => ({
  ...{ status, type: "application/json" },
  pieces: [JSON.stringify(body)],
});
/** A whole answer of a chat completion. */
export const saying = (text: string): RawReply => stream(delta({ content: text }), delta({}, "stop"), DONE);
