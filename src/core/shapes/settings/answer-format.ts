// Decides whether a model's provider can guarantee the format of an answer.

import { fail, ok, type Result } from "../errors.ts";
import type { AnswerFormat } from "../run.ts";
import { modelsNamed, type ProviderSettings, type Settings } from "./settings.ts";

/** Models of Google that refuse a format together with tools. */
const GOOGLE_WITHOUT_TOOLS = /^(?:models\/)?gemini-[12][.-]/;

/** Returns why a model cannot guarantee the format, or undefined if it can. */
function lackOf(provider: ProviderSettings, modelId: string, format: AnswerFormat): string | undefined {
  const { api, id, baseUrl } = provider;
  if (api === "anthropic-messages" && format.type === "json_object")
    return "Anthropic's API has only json_schema: send a schema";
  if (api === "google-generative-ai" && GOOGLE_WITHOUT_TOOLS.test(modelId))
    return "before Gemini 3 this API can't combine a format with tools";
  const isDeepSeek = id === "deepseek" || baseUrl.includes("deepseek.com");
  return isDeepSeek && format.type === "json_schema" ? "DeepSeek's API has only json_object" : undefined;
}

/** Checks that a model can guarantee the format. `model`: its name in the settings. */
export function checkFormat(
  { providers }: Pick<Settings, "providers">,
  model: string,
  format: AnswerFormat | undefined,
): Result<void> {
  if (format === undefined) return ok(undefined);
  const all = providers.flatMap((provider) =>
    provider.models.map(({ id }) => ({ ref: `${provider.id}/${id}`, provider, id })),
  );
  const names = modelsNamed(
    model,
    all.map(({ ref }) => ref),
  );
  const found = all.find(({ ref }) => ref === names[0]);
  const lack =
    found === undefined
      ? "it is not a model of a configured provider"
      : lackOf(found.provider, found.id, format);
  if (lack === undefined) return ok(undefined);
  return fail("invalid_model", `the model ${model} can't guarantee the format ${format.type}: ${lack}`, {
    hint: "Select another model for the agent or its session, or request the format in words.",
  });
}
