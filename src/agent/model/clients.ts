// Selects the client of a model request: Parley's own or pi-ai's.
//
// Parley's own clients support `openai-completions` and `anthropic-messages` of OpenAI, Anthropic, local
// servers (Ollama, vLLM, LM Studio, llama.cpp) and other compatible servers. pi-ai is used for:
// - the APIs `openai-responses` and `google-generative-ai`;
// - providers that deviate from these APIs: DeepSeek, OpenRouter, xAI, Z.ai, Moonshot, Together, NVIDIA,
//   Cerebras, Chutes, Ant Ling, OpenCode, Cloudflare, GitHub Copilot;
// - Anthropic with a subscription's token instead of an API key.

import { once } from "../../core/once.ts";
import type { ProviderSettings } from "../../core/shapes/settings/settings.ts";
import type { Client } from "./wire.ts";

/** Ids and parts of addresses of the providers that pi-ai handles specially. */
const DIALECT_IDS = new Set([
  "ant-ling",
  "cerebras",
  "cloudflare-ai-gateway",
  "cloudflare-workers-ai",
  "deepseek",
  "github-copilot",
  "moonshotai",
  "moonshotai-cn",
  "nvidia",
  "opencode",
  "opencode-go",
  "openrouter",
  "together",
  "xai",
  "zai",
  "zai-coding-cn",
]);
const DIALECT_HOSTS = [
  "api.ant-ling.com",
  "api.cloudflare.com",
  "api.moonshot.",
  "api.together.ai",
  "api.together.xyz",
  "api.x.ai",
  "api.z.ai",
  "cerebras.ai",
  "chutes.ai",
  "deepseek.com",
  "gateway.ai.cloudflare.com",
  "integrate.api.nvidia.com",
  "open.bigmodel.cn",
  "opencode.ai",
  "openrouter.ai",
];
const SUBSCRIPTION_TOKEN = "sk-ant-oat";

export type ClientKind = "openai" | "anthropic" | "pi-ai";

export function clientKind({ api, id, baseUrl, apiKey = "" }: ProviderSettings): ClientKind {
  if (api !== "openai-completions" && api !== "anthropic-messages") return "pi-ai";
  const address = baseUrl.toLowerCase();
  if (DIALECT_IDS.has(id) || DIALECT_HOSTS.some((host) => address.includes(host))) return "pi-ai";
  if (api === "openai-completions") return "openai";
  return apiKey.includes(SUBSCRIPTION_TOKEN) ? "pi-ai" : "anthropic";
}

const LOADERS: Record<ClientKind, () => Promise<Client>> = {
  openai: once(async () => {
    const [{ wireClient }, { openAiFormat }] = await Promise.all([
      import("./wire.ts"),
      import("./openai.ts"),
    ]);
    return wireClient(openAiFormat);
  }),
  anthropic: once(async () => {
    const [{ wireClient }, { anthropicFormat }] = await Promise.all([
      import("./wire.ts"),
      import("./anthropic.ts"),
    ]);
    return wireClient(anthropicFormat);
  }),
  "pi-ai": once(async () => (await import("./pi-client.ts")).piClient),
};

export const loadClient = (kind: ClientKind): Promise<Client> => LOADERS[kind]();
