// The dialects of the companies that make models: OpenAI, Azure, Anthropic, Google, Mistral and others.

import { fieldsOf } from "../../../src/core/json.ts";
import { ALL, BLIND, type Dialect, type Json } from "./dialect.ts";
import {
  alternating,
  callIds,
  custom,
  detailForm,
  listOf,
  messageForm,
  noDeveloper,
  noEmpty,
  noFields,
  noReasoning,
  onlyFields,
  openAiForm,
  overflowFrom,
  pairs,
  plainContent,
  plainSchemas,
  refused,
  wantsReasoning,
  wantsSignature,
} from "./rules.ts";

const OUTPUT_WORDS =
  "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
const outputField = noFields(["max_tokens"], () => OUTPUT_WORDS);
const shortIds = callIds(
  /^.{1,40}$/s,
  (id) =>
    `Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with ` +
    `maximum length 40, but got a string with length ${id.length} instead.`,
);

const OPEN_AI: readonly Dialect[] = [
  {
    ...{ id: "openai", name: "OpenAI, chat completions", api: "openai-completions", can: ALL },
    baseUrl: "https://api.openai.com/v1",
    rules: [
      outputField,
      noReasoning(
        (at, field) => `Additional properties are not allowed ('${field}' was unexpected) - 'messages.${at}'`,
      ),
      shortIds,
      pairs(),
    ],
    word: openAiForm,
    style: { thinking: "hidden" },
    overflow: overflowFrom("OpenAI"),
    refusal: refused(
      429,
      {
        error: {
          message: "You exceeded your current quota, please check your plan and billing details.",
          ...{ type: "insufficient_quota", param: null, code: "insufficient_quota" },
        },
      },
      "You exceeded your current quota",
    ),
    quirks: "`developer` and `max_completion_tokens` for models that think.",
  },
  {
    ...{ id: "openai-responses", name: "OpenAI, Responses", api: "openai-responses", can: ALL },
    baseUrl: "https://api.openai.com/v1",
    rules: [
      custom("pairs of call and output", ({ body }) => {
        const items = listOf(body.input);
        const outputs = items
          .filter(({ type }) => type === "function_call_output")
          .map(({ call_id: id }) => id);
        const alone = items.find(
          ({ type, call_id: id }) => type === "function_call" && !outputs.includes(id),
        );
        return alone === undefined ? undefined : `No tool output found for function call ${alone.call_id}.`;
      }),
      custom("empty text", ({ body }) => {
        const isEmpty = (item: Json): boolean => Array.isArray(item.content) && item.content.length === 0;
        return listOf(body.input).some(isEmpty) ? "Invalid 'input[0].content': empty array." : undefined;
      }),
    ],
    word: openAiForm,
    overflow: overflowFrom("OpenAI Responses"),
    refusal: refused(
      404,
      {
        error: {
          message: "The model `test` does not exist or you do not have access to it.",
          ...{ type: "invalid_request_error", param: null, code: "model_not_found" },
        },
      },
      "does not exist or you do not have access to it",
    ),
    quirks: "Reasoning items go back to the model that wrote them.",
  },
  {
    ...{ id: "azure", name: "Azure OpenAI, v1", api: "openai-completions", can: ALL },
    baseUrl: "https://NAME.openai.azure.com/openai/v1",
    rules: [
      outputField,
      noReasoning(
        (at, field) => `Additional properties are not allowed ('${field}' was unexpected) - 'messages.${at}'`,
      ),
      pairs(),
    ],
    word: openAiForm,
    style: {
      thinking: "hidden",
      before: `data: {"choices":[],"id":"","model":"","object":"","prompt_filter_results":[{}]}\n\n`,
    },
    overflow: overflowFrom("Azure OpenAI"),
    refusal: refused(
      400,
      {
        error: {
          message: "The response was filtered due to the prompt triggering the content management policy.",
          ...{ type: null, param: "prompt", code: "content_filter", status: 400 },
          innererror: { code: "ResponsibleAIPolicyViolation", content_filter_result: {} },
        },
      },
      "triggering the content management policy",
    ),
    quirks: "The first event has filter results and no choices. The model's id is the deployment's name.",
  },
];

const blocksIn = (body: Json): Json[][] => listOf(body.messages).map(({ content }) => listOf(content));
/** Fields of the Messages API. */
const ANTHROPIC_FIELDS = [
  ...["model", "messages", "max_tokens", "stream", "system", "tools", "tool_choice", "thinking", "metadata"],
  ...["temperature", "stop_sequences", "top_p", "top_k", "service_tier", "output_config", "container"],
];

const ANTHROPIC: Dialect = {
  ...{ id: "anthropic", name: "Anthropic", api: "anthropic-messages", can: ALL },
  baseUrl: "https://api.anthropic.com",
  rules: [
    custom("unknown fields", ({ body }) => {
      const field = Object.keys(body).find((one) => !ANTHROPIC_FIELDS.includes(one));
      return field === undefined ? undefined : `${field}: Extra inputs are not permitted`;
    }),
    custom("empty text", ({ body }) =>
      blocksIn(body).some((blocks) => blocks.some(({ type, text }) => type === "text" && text === ""))
        ? "messages: text content blocks must be non-empty"
        : undefined,
    ),
    custom("pairs of use and result", ({ body }) => {
      const all = blocksIn(body);
      const at = all.findIndex((blocks, index) => {
        const results = (all[index + 1] ?? []).map(({ tool_use_id: id }) => id);
        return blocks.some(({ type, id }) => type === "tool_use" && !results.includes(id));
      });
      return at < 0
        ? undefined
        : `messages.${at}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after`;
    }),
    custom("thinking first", ({ body }) => {
      if (fieldsOf(body.thinking).type === undefined || fieldsOf(body.thinking).type === "disabled")
        return undefined;
      const messages = listOf(body.messages);
      const isText = (one: Json): boolean => listOf(one.content).some(({ type }) => type !== "tool_result");
      const turnAt = messages.findLastIndex((one) => one.role === "user" && isText(one));
      const bad = messages.findIndex((one, at) => {
        const blocks = listOf(one.content);
        const hasUse = blocks.some(({ type }) => type === "tool_use");
        return at > turnAt && hasUse && !/thinking/.test(String(blocks[0]?.type));
      });
      return bad < 0
        ? undefined
        : `messages.${bad}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, ` +
            `but found \`tool_use\`.`;
    }),
    custom("room for the answer", ({ body }) =>
      Number(fieldsOf(body.thinking).budget_tokens ?? 0) >= Number(body.max_tokens)
        ? "`max_tokens` must be greater than `thinking.budget_tokens`."
        : undefined,
    ),
  ],
  word: (message) => ({ type: "error", error: { type: "invalid_request_error", message } }),
  overflow: overflowFrom("Anthropic, with the output"),
  refusal: refused(
    400,
    {
      type: "error",
      error: {
        type: "invalid_request_error",
        message: "Your credit balance is too low to access the Anthropic API.",
      },
      request_id: "req_1",
    },
    "Your credit balance is too low",
  ),
  quirks: "Thinking goes back with its signature.",
};

const partsIn = (body: Json): Json[][] => listOf(body.contents).map(({ parts }) => listOf(parts));

const GOOGLE: readonly Dialect[] = [
  {
    ...{ id: "google", name: "Gemini", api: "google-generative-ai", can: ALL },
    baseUrl: "https://generativelanguage.googleapis.com/v1beta",
    rules: [
      plainSchemas(
        ({ tools }) =>
          listOf(tools).flatMap(({ functionDeclarations }) =>
            listOf(functionDeclarations).map(({ parameters }) => parameters),
          ),
        ["$ref", "$defs", "additionalProperties", "const", "oneOf", "patternProperties"],
        (word) =>
          `Invalid JSON payload received. Unknown name "${word}" at ` +
          `'tools[0].function_declarations[0].parameters': Cannot find field.`,
      ),
      custom("thought signature is missing", ({ body }) => {
        const contents = listOf(body.contents);
        const isSaid = (one: Json): boolean =>
          one.role === "user" && listOf(one.parts).some((part) => "text" in part);
        const turnAt = contents.findLastIndex(isSaid);
        const isUnsigned = contents.some((one, at) => {
          const first = listOf(one.parts).find((part) => "functionCall" in part);
          return at > turnAt && first !== undefined && !first.thoughtSignature;
        });
        return isUnsigned
          ? "Function call is missing a thought_signature in functionCall parts. This is " +
              "required for tools to work correctly."
          : undefined;
      }),
      custom("as many results as calls", ({ body }) => {
        const all = partsIn(body);
        const count = (parts: Json[] | undefined, name: string): number =>
          (parts ?? []).filter((part) => name in part).length;
        const isWrong = all.some((parts, at) => {
          const calls = count(parts, "functionCall");
          return calls > 0 && calls !== count(all[at + 1], "functionResponse");
        });
        return isWrong
          ? "Please ensure that the number of function response parts is equal to the number " +
              "of function call parts of the function call turn."
          : undefined;
      }),
    ],
    word: (message, code) => ({ error: { code, message, status: "INVALID_ARGUMENT" } }),
    overflow: overflowFrom("Gemini"),
    refusal: refused(
      400,
      {
        error: {
          code: 400,
          message: "User location is not supported for the API use.",
          status: "FAILED_PRECONDITION",
        },
      },
      "User location is not supported",
    ),
    quirks: "Schemas in Google's form. Calls go back with their thought signature.",
  },
  {
    ...{ id: "vertex", name: "Vertex AI, OpenAI form", api: "openai-completions", can: ALL },
    baseUrl: "https://aiplatform.googleapis.com/v1/projects/PROJECT/locations/global/endpoints/openapi",
    rules: [
      noFields(
        ["store", "prompt_cache_key"],
        (field) => `Invalid JSON payload received. Unknown name "${field}": Cannot find field.`,
      ),
      noDeveloper("Invalid value at 'messages[0].role': \"developer\""),
      wantsSignature("Function call is missing a thought_signature in functionCall parts."),
      pairs(),
    ],
    word: (message, code) => [{ error: { code, message, status: "INVALID_ARGUMENT" } }],
    style: {
      ...{ index: "zero", given: "whole", usage: "last" },
      callMore: { extra_content: { google: { thought_signature: "c2lnbmF0dXJl" } } },
    },
    overflow: overflowFrom("Vertex AI"),
    refusal: refused(
      403,
      [
        {
          error: {
            code: 403,
            message: "Permission 'aiplatform.endpoints.predict' denied on the resource.",
            status: "PERMISSION_DENIED",
          },
        },
      ],
      "Permission 'aiplatform.endpoints.predict' denied",
    ),
    quirks: "Calls have a thought signature in `extra_content`, and all have the index 0. Errors are lists.",
  },
];

const forbidden = (field: string): string => `${field}: Extra inputs are not permitted`;

const OTHERS: readonly Dialect[] = [
  {
    ...{ id: "mistral", name: "Mistral", api: "openai-completions", can: ALL },
    baseUrl: "https://api.mistral.ai/v1",
    rules: [
      onlyFields(["random_seed", "response_format", "parallel_tool_calls", "prompt_mode"], forbidden),
      noDeveloper("Input should be 'system', 'user', 'assistant' or 'tool'", 422),
      noReasoning(
        (at, field) => `body.messages.${at}.assistant.${field}: Extra inputs are not permitted`,
        422,
      ),
      callIds(
        /^[a-zA-Z0-9]{9}$/,
        (id) => `Tool call id was ${id} but must be a-z, A-Z, 0-9, with a length of 9.`,
      ),
      alternating("Expected last role User or Tool (or Assistant with prefix True) for serving"),
    ],
    word: (message, status) =>
      status === 422
        ? detailForm(message)
        : { object: "error", message, type: "invalid_request_message_order", param: null, code: "3230" },
    style: {
      ...{
        id: (number) => `D681PevK${number}`,
        given: "whole",
        content: "list",
        thinking: "parts",
        usage: "last",
      },
    },
    overflow: overflowFrom("Mistral"),
    refusal: refused(
      422,
      detailForm("Input should be less than or equal to 1.5"),
      "Input should be less than or equal to 1.5",
    ),
    quirks:
      "Ids of calls have nine letters or digits. Content with thinking is a list. Unknown fields are refused.",
  },
  {
    ...{ id: "moonshotai", name: "Moonshot (Kimi)", api: "openai-completions", can: ALL },
    baseUrl: "https://api.moonshot.ai/v1",
    rules: [
      noDeveloper("Invalid request: role 'developer' is not supported"),
      noFields(["store"], (field) => `Invalid request: unknown field ${field}`),
      wantsReasoning(
        (at) =>
          `thinking is enabled but reasoning_content is missing in assistant tool call message at index ${at}`,
        " ",
      ),
      noEmpty((at) => `Invalid request: message at position ${at} must not be empty`),
    ],
    word: openAiForm,
    style: { usage: "choice", id: (number) => `sessions_list:${number}` },
    overflow: overflowFrom("Moonshot"),
    refusal: refused(
      401,
      { error: { message: "Invalid Authentication", type: "invalid_authentication_error" } },
      "Invalid Authentication",
    ),
    quirks:
      "Messages with calls need their thinking, a blank one if there was none. The usage is in the choice.",
  },
  {
    ...{ id: "deepseek", name: "DeepSeek", api: "openai-completions", can: BLIND },
    baseUrl: "https://api.deepseek.com/v1",
    rules: [
      noDeveloper(
        "Failed to deserialize the JSON body into the target type: messages[0].role: " +
          "unknown variant `developer`, expected one of `system`, `user`, `assistant`, " +
          "`tool` at line 1 column 61",
        422,
      ),
      wantsReasoning(
        (at) => `Missing \`reasoning_content\` field in the assistant message at message index ${at}.`,
        "",
      ),
      pairs(),
    ],
    word: openAiForm,
    style: { before: ": keep-alive\n\n: keep-alive\n\n", between: ": keep-alive\n\n" },
    overflow: overflowFrom("DeepSeek"),
    refusal: refused(
      402,
      {
        error: {
          message: "Insufficient Balance",
          type: "unknown_error",
          param: null,
          code: "invalid_request_error",
        },
      },
      "Insufficient Balance",
    ),
    quirks: "Messages with calls need their thinking. Comments keep the connection alive.",
  },
  {
    ...{ id: "xai", name: "xAI", api: "openai-completions", can: ALL },
    baseUrl: "https://api.x.ai/v1",
    rules: [
      noFields(["reasoning_effort"], () => "Model test does not support parameter reasoningEffort."),
      noEmpty(() => "Each message must have at least one content element."),
    ],
    word: (message) => ({ code: "Client specified an invalid argument", error: message }),
    style: { given: "whole", usage: "last" },
    overflow: overflowFrom("xAI"),
    refusal: refused(
      403,
      {
        code: "The caller does not have permission to execute the specified operation",
        error: "Your team has used all its credits.",
      },
      "Your team has used all its credits",
    ),
    quirks: "Errors are texts. Some models that think refuse `reasoning_effort`.",
  },
  {
    ...{ id: "zai", name: "Z.ai", api: "openai-completions", can: BLIND },
    baseUrl: "https://api.z.ai/api/paas/v4",
    rules: [
      noDeveloper("Incorrect role information"),
      noFields(
        ["store", "reasoning_effort", "max_completion_tokens"],
        (field) => `Invalid API parameter: ${field}`,
      ),
    ],
    word: (message) => ({ error: { code: "1210", message } }),
    style: { given: "whole", usage: "last", id: (number) => `call_-818${number}` },
    overflow: overflowFrom("Z.ai"),
    refusal: refused(
      400,
      { error: { code: "1113", message: "Insufficient balance or no resource package. Please recharge." } },
      "Insufficient balance or no resource package",
    ),
    quirks: "Errors have a code of their own. Unknown fields are refused.",
  },
  {
    ...{ id: "cohere", name: "Cohere, OpenAI form", api: "openai-completions", can: ALL },
    baseUrl: "https://api.cohere.ai/compatibility/v1",
    rules: [
      noFields(
        ["store", "prompt_cache_key"],
        (field) => `invalid request: unknown field: parameter '${field}' is not a valid field`,
        422,
      ),
      noEmpty((at) => `invalid request: message at index ${at} must be at least 1 token long`),
    ],
    word: (message) => ({ id: "0", message }),
    style: { thinking: "reasoning", reasons: { stop: "COMPLETE", calls: "TOOL_CALL", length: "MAX_TOKENS" } },
    overflow: overflowFrom("Cohere"),
    refusal: refused(401, messageForm("invalid api token"), "invalid api token"),
    quirks: "Finish reasons of its own.",
  },
  {
    ...{
      id: "perplexity",
      name: "Perplexity",
      api: "openai-completions",
      can: { ...ALL, call: false, think: false },
    },
    baseUrl: "https://api.perplexity.ai",
    rules: [
      alternating(
        "After the (optional) system message(s), user or tool message(s) should " +
          "alternate with assistant message(s).",
      ),
    ],
    word: (message, code) => ({ error: { message, type: "invalid_message", code } }),
    style: { place: "both", usage: "last", hasDone: false },
    overflow: overflowFrom("Perplexity"),
    refusal: refused(
      401,
      "<html>\r\n<head><title>401 Authorization " +
        "Required</title></head>\r\n<body>\r\n<center><h1>401 Authorization " +
        "Required</h1></center>\r\n<hr><center>openresty</center>\r\n</body>\r\n</html>",
      "401 Authorization Required",
    ),
    quirks: "Each chunk has its piece and the whole text so far. No tools. Errors may be HTML.",
  },
  {
    ...{ id: "dashscope", name: "Qwen (DashScope)", api: "openai-completions", can: ALL },
    baseUrl: "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
    rules: [
      noDeveloper(
        "developer is not one of ['system', 'assistant', 'user', 'tool', 'function'] - 'messages.0.role'",
      ),
      noEmpty(
        (at) =>
          `<400> InternalError.Algo.InvalidParameter: The content field is a required ` +
          `field. - 'messages.${at}'`,
      ),
    ],
    word: openAiForm,
    style: { hasEmptyHeads: true },
    overflow: overflowFrom("DashScope, algorithm"),
    refusal: refused(
      400,
      {
        error: {
          code: "data_inspection_failed",
          ...{
            param: null,
            message: "Input data may contain inappropriate content.",
            type: "data_inspection_failed",
          },
        },
        request_id: "1",
      },
      "Input data may contain inappropriate content",
    ),
    quirks: "Later pieces of a call repeat an empty id and name.",
  },
  {
    ...{ id: "minimax", name: "MiniMax", api: "openai-completions", can: BLIND },
    baseUrl: "https://api.minimax.io/v1",
    rules: [
      noDeveloper("invalid params, invalid role: developer (2013)"),
      plainContent("invalid params, messages content must be a string (2013)", 400),
    ],
    word: (message) => ({ type: "error", error: { type: "bad_request_error", message, http_code: "400" } }),
    style: { thinking: "tags", given: "whole", usage: "last" },
    overflow: overflowFrom("MiniMax"),
    refusal: refused(
      200,
      { base_resp: { status_code: 1008, status_msg: "insufficient balance" } },
      "insufficient balance",
    ),
    quirks: "Thinking stands in `<think>` in the text. Some errors have the status 200.",
  },
];

export const MAKERS: readonly Dialect[] = [...OPEN_AI, ANTHROPIC, ...GOOGLE, ...OTHERS];
