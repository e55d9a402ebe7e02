// Finds model servers on this machine, and lists the models of a server that speaks the OpenAI API.

import { isObject, jsonOf } from "../../core/json.ts";
import { boundedBody } from "../../world/bounded-body.ts";
import { outgoingFetch } from "../../world/outgoing.ts";
import { timeLimit } from "../../world/pause.ts";
import type { World } from "../../world.ts";

/** Time limit of the search. A server on this machine answers at once. */
const ANSWER_MAX_MS = 1_500;
const LIST_MAX_BYTES = 256 * 1024;
const MODELS_MAX = 50;
const ID_MAX_CHARS = 200;
const OLLAMA_PORT = "11434";

type Environment = Readonly<Record<string, string | undefined>>;

export interface ModelServer {
  /** Name of the provider in the configuration. */
  readonly id: string;
  readonly title: string;
  /** Address of the API, up to its version. */
  readonly baseUrl: string;
}

/** Returns Ollama's address: OLLAMA_HOST has an address that it listens on or that its clients use. */
function ollamaUrl(host: string): string {
  const address = /^https?:\/\//.test(host) ? host : `http://${host}`;
  if (host === "" || !URL.canParse(address)) return `http://127.0.0.1:${OLLAMA_PORT}/v1`;
  const url = new URL(address);
  if (!/:\d+\/?$/.test(address)) url.port = OLLAMA_PORT;
  if (url.hostname === "0.0.0.0" || url.hostname === "[::]") url.hostname = "127.0.0.1";
  return `${url.origin}/v1`;
}

/** Returns the first models of a server that do not only embed. Empty if the server does not answer. */
export async function modelsAt(
  baseUrl: string,
  key: string | undefined,
  { clock }: Pick<World, "clock">,
): Promise<string[]> {
  using limit = timeLimit(clock, ANSWER_MAX_MS, { keep: "alive" });
  try {
    const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` };
    const init = { headers, signal: limit.signal };
    const answer = await outgoingFetch("model", baseUrl)(`${baseUrl}/models`, init);
    if (!answer.ok || answer.body === null) {
      await answer.body?.cancel();
      return [];
    }
    const list = jsonOf((await boundedBody(answer.body, LIST_MAX_BYTES))?.toString() ?? "");
    const data = isObject(list) && Array.isArray(list.data) ? list.data : [];
    const ids = data.flatMap((one: unknown) => (isObject(one) && typeof one.id === "string" ? one.id : []));
    const usable = (id: string) => id.trim() !== "" && id.length <= ID_MAX_CHARS && !/embed/i.test(id);
    return [...new Set(ids.filter(usable))].slice(0, MODELS_MAX);
  } catch {
    // Nothing listens there, or another program does.
    return [];
  }
}

export interface FoundServer extends ModelServer {
  /** Ids of its models. Empty if it does not answer. */
  readonly models: readonly string[];
}

/** Asks the usual addresses of this machine for their models. */
export function localServers(env: Environment, world: Pick<World, "clock">): Promise<FoundServer[]> {
  return Promise.all(
    [
      { id: "ollama", title: "Ollama", baseUrl: ollamaUrl(env.OLLAMA_HOST ?? "") },
      { id: "lmstudio", title: "LM Studio", baseUrl: "http://127.0.0.1:1234/v1" },
      { id: "llamacpp", title: "llama.cpp", baseUrl: "http://127.0.0.1:8080/v1" },
    ].map(async (server) => ({
      ...server,
      models: await modelsAt(server.baseUrl, undefined, world),
    })),
  );
}
