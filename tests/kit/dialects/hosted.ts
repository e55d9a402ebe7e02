// The dialects of companies and proxies that serve models of others.

import { ALL, BLIND, type Dialect } from "./dialect.ts";
import {
  messageForm,
  noDeveloper,
  noFields,
  noReasoning,
  onlyFields,
  openAiForm,
  overflowFrom,
  pairs,
  refused,
  wantsName,
} from "./rules.ts";

/** Fields of thinking that servers refuse which take `reasoning`. */
const DETAILED = ["reasoning_content", "reasoning_details"];

export const HOSTED: readonly Dialect[] = [
  {
    ...{ id: "bedrock", name: "Bedrock, OpenAI form", api: "openai-completions", can: BLIND },
    baseUrl: "https://bedrock-runtime.us-east-1.amazonaws.com/openai/v1",
    rules: [
      noFields(
        ["store", "prompt_cache_key"],
        (field) =>
          `Malformed input request: extraneous key [${field}] is not permitted, please ` +
          `reformat your input and try again.`,
      ),
      noDeveloper("Malformed input request: messages.0.role: developer is not a valid enum value"),
      pairs(),
    ],
    word: messageForm,
    style: { thinking: "tags", usage: "last", hasDone: false },
    overflow: overflowFrom("Bedrock Claude"),
    refusal: refused(
      403,
      messageForm("You don't have access to the model with the specified model ID."),
      "You don't have access to the model",
    ),
    quirks: "Unknown fields are refused. Errors have only a message.",
  },
  {
    ...{ id: "openrouter", name: "OpenRouter", api: "openai-completions", can: ALL },
    baseUrl: "https://openrouter.ai/api/v1",
    rules: [pairs()],
    word: (message, code) => ({
      error: {
        ...{ message: "Provider returned error", code },
        metadata: { raw: JSON.stringify({ error: { message } }), provider_name: "Example" },
      },
      user_id: "user_1",
    }),
    style: {
      thinking: "details",
      before: ": OPENROUTER PROCESSING\n\n",
      between: ": OPENROUTER PROCESSING\n\n",
    },
    overflow: overflowFrom("OpenRouter"),
    refusal: refused(
      403,
      {
        error: {
          ...{ message: "Provider returned error", code: 403 },
          metadata: { raw: '{"error":{"message":"This region is not served"}}', provider_name: "Example" },
        },
      },
      "This region is not served",
    ),
    quirks: "Comments before the answer. The words of the provider behind it are in `metadata.raw`.",
  },
  {
    ...{ id: "together", name: "Together", api: "openai-completions", can: ALL },
    baseUrl: "https://api.together.xyz/v1",
    rules: [noDeveloper("Input validation error: role must be one of system, user, assistant, tool", 422)],
    word: openAiForm,
    style: { thinking: "reasoning", reasons: { stop: "eos" }, usage: "last" },
    overflow: overflowFrom("Together, with the output"),
    refusal: refused(
      402,
      {
        error: {
          message: "Credit limit exceeded, please add a payment method.",
          type: "credit_limit",
          param: null,
        },
      },
      "Credit limit exceeded",
    ),
    quirks: "The finish reason is `eos`.",
  },
  {
    ...{ id: "fireworks", name: "Fireworks", api: "openai-completions", can: ALL },
    baseUrl: "https://api.fireworks.ai/inference/v1",
    rules: [
      noFields(
        ["store", "prompt_cache_retention"],
        (field) => `Extra inputs are not permitted, field: '${field}', value: False`,
      ),
      noDeveloper("Unexpected role 'developer' in the template of this model"),
    ],
    word: openAiForm,
    style: { usage: "last" },
    overflow: overflowFrom("Fireworks"),
    refusal: refused(
      412,
      { error: { object: "error", type: "invalid_request_error", message: "Account is suspended" } },
      "Account is suspended",
    ),
    quirks: "Unknown fields are refused.",
  },
  {
    ...{ id: "groq", name: "Groq", api: "openai-completions", can: ALL },
    baseUrl: "https://api.groq.com/openai/v1",
    rules: [
      noFields(["store", "prompt_cache_key"], (field) => `property '${field}' is unsupported`),
      noDeveloper(
        "'messages.0' : value is not one of the allowed values ['system','user','assistant','tool']",
      ),
      noReasoning(
        (at, field) =>
          `'messages.${at}' : for 'role:assistant' the following must be ` +
          `satisfied[('messages.${at}' : property '${field}' is unsupported)]`,
        400,
        DETAILED,
      ),
    ],
    word: openAiForm,
    style: { thinking: "reasoning", given: "whole", usage: "x_groq" },
    overflow: overflowFrom("Groq, one request over the minute's tokens"),
    refusal: refused(
      400,
      {
        error: {
          message: "The model `test` has been decommissioned and is no longer supported.",
          ...{ type: "invalid_request_error", code: "model_decommissioned" },
        },
      },
      "has been decommissioned",
    ),
    quirks: "Thinking must not come back. The usage is in `x_groq`.",
  },
  {
    ...{ id: "cerebras", name: "Cerebras", api: "openai-completions", can: BLIND },
    baseUrl: "https://api.cerebras.ai/v1",
    rules: [
      onlyFields(
        ["max_completion_tokens", "stream_options", "reasoning_effort", "parallel_tool_calls"],
        (field) => `${field}: property '${field}' is unsupported`,
        400,
      ),
      noDeveloper("messages.0.role: value is not one of the allowed values", 422),
      noReasoning((at, field) => `messages.${at}.assistant.${field}: property is unsupported`, 400, DETAILED),
    ],
    word: (message) => ({
      message,
      type: "invalid_request_error",
      param: "validation_error",
      code: "wrong_api_format",
    }),
    style: { thinking: "reasoning", given: "whole", usage: "last" },
    overflow: overflowFrom("Cerebras, without a body"),
    refusal: refused(
      404,
      { message: "Model test does not exist or you do not have access to it.", type: "not_found_error" },
      "does not exist or you do not have access",
    ),
    quirks: "Unknown fields are refused. A prompt that is too long gets a 413 without a body.",
  },
  {
    ...{ id: "nvidia", name: "NVIDIA NIM", api: "openai-completions", can: BLIND },
    baseUrl: "https://integrate.api.nvidia.com/v1",
    rules: [
      noFields(["store"], (field) => `Unsupported parameter(s): \`${field}\``),
      noDeveloper("Unknown role in messages: developer"),
    ],
    word: (detail, status) => ({ type: "about:blank", status, title: "Bad Request", detail }),
    style: { place: "message", usage: "last" },
    overflow: overflowFrom("NVIDIA NIM"),
    refusal: refused(
      404,
      { status: 404, title: "Not Found", detail: "Function 'test': Not found for this account" },
      "Not found for this account",
    ),
    quirks: "Errors are in `detail`.",
  },
  {
    ...{ id: "github-models", name: "GitHub Models", api: "openai-completions", can: ALL },
    baseUrl: "https://models.github.ai/inference",
    rules: [noFields(["store"], (field) => `Unrecognized request argument supplied: ${field}`), pairs()],
    word: openAiForm,
    style: {
      before: `data: ${JSON.stringify({ choices: [], prompt_filter_results: [] })}\n\n`,
      usage: "none",
    },
    overflow: overflowFrom("GitHub Models"),
    refusal: refused(
      403,
      {
        error: {
          code: "no_access",
          message: "No access to model: test",
          details: "No access to model: test",
        },
      },
      "No access to model",
    ),
    quirks: "Small limits of the request answer with 413.",
  },
  {
    ...{ id: "litellm", name: "LiteLLM proxy", api: "openai-completions", can: ALL },
    baseUrl: "http://127.0.0.1:4000/v1",
    rules: [
      noFields(
        ["store"],
        (field) =>
          `litellm.UnsupportedParamsError: gemini does not support parameters: ` +
          `['${field}']. To drop these, set \`litellm.drop_params=True\``,
      ),
      wantsName(
        (at) =>
          `litellm.BadRequestError: GeminiException - ` +
          `GenerateContentRequest.contents[${at}].parts[0].function_response.name: Name ` +
          `cannot be empty.`,
      ),
    ],
    word: (message) => ({ error: { message, type: null, param: null, code: "400" } }),
    style: { repeatsCalls: true, thinking: "both" },
    overflow: overflowFrom("LiteLLM"),
    refusal: refused(
      400,
      {
        error: {
          message: "Budget has been exceeded! Current cost: 10.1, Max budget: 10.0",
          ...{ type: "budget_exceeded", param: null, code: "400" },
        },
      },
      "Budget has been exceeded",
    ),
    quirks: "The last chunk may repeat all calls. Results of tools may need the tool's name.",
  },
];
