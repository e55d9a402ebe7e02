// Lists how servers report that a prompt is larger than the model's context window, and similar answers that
// mean something else. The words are those of the servers.

export interface Refusal {
  readonly server: string;
  readonly status: number;
  /** JSON, or text that is sent as it is. */
  readonly body: unknown;
}

const say = (server: string, status: number, body: unknown): Refusal => ({ server, status, body });
/** OpenAI's form of an error. */
const error = (server: string, status: number, message: string, more: object = {}): Refusal =>
  say(server, status, { error: { message, type: "invalid_request_error", ...more } });
/** The form of vLLM and its relatives. */
const flat = (server: string, message: string): Refusal =>
  say(server, 400, { object: "error", message, type: "BadRequestError", param: null, code: 400 });
const anthropic = (server: string, status: number, message: string, type = "invalid_request_error") =>
  say(server, status, { type: "error", error: { type, message } });

const HTML_413 =
  "<html>\r\n<head><title>413 Request Entity Too Large</title></head>\r\n<body>\r\n" +
  "<center><h1>413 Request Entity Too Large</h1></center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>";

const HOSTED: readonly Refusal[] = [
  error(
    "OpenAI",
    400,
    "This model's maximum context length is 128000 tokens. However, your messages resulted in 140231 " +
      "tokens. Please reduce the length of the messages.",
    { param: "messages", code: "context_length_exceeded" },
  ),
  error(
    "OpenAI, newer models",
    400,
    "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 290113 tokens. " +
      "Please reduce the length of the messages.",
    { code: "context_length_exceeded" },
  ),
  error(
    "OpenAI Responses",
    400,
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
    { param: "input", code: "context_length_exceeded" },
  ),
  error(
    "Azure OpenAI",
    400,
    "This model's maximum context length is 16385 tokens, however you requested 18012 tokens (17012 in your " +
      "prompt; 1000 for the completion). Please reduce your prompt; or completion length.",
  ),
  anthropic("Anthropic", 400, "prompt is too long: 213462 tokens > 200000 maximum"),
  anthropic(
    "Anthropic, with the output",
    400,
    "input length and `max_tokens` exceed context limit: 196000 + 8192 > 200000, decrease input length or " +
      "`max_tokens` and try again",
  ),
  anthropic("Anthropic, bytes", 413, "Request exceeds the maximum size", "request_too_large"),
  say("Bedrock", 400, { message: "Input is too long for requested model." }),
  say("Bedrock Nova", 400, {
    message:
      "Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please update the input to try " +
      "again.",
  }),
  say("Bedrock Claude", 400, {
    message:
      "The model returned the following errors: input length and `max_tokens` exceed context limit: 190211 " +
      "+ 16384 > 200000, decrease input length or `max_tokens` and try again",
  }),
  say("Gemini", 400, {
    error: {
      code: 400,
      message: "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
      status: "INVALID_ARGUMENT",
    },
  }),
  say("Vertex AI", 400, [
    {
      error: {
        code: 400,
        message:
          "Unable to submit request because the input token count is 40011 but model only supports up to " +
          "32768. Reduce the input token count and try again.",
        status: "INVALID_ARGUMENT",
      },
    },
  ]),
  say("Mistral", 400, {
    object: "error",
    message:
      "Prompt contains 140211 tokens and 0 draft tokens, too large for model with 131072 maximum context length",
    type: "invalid_request_prompt",
    param: null,
    code: "3051",
  }),
  error("Groq", 400, "Please reduce the length of the messages or completion.", {
    param: "messages",
    code: "context_length_exceeded",
  }),
  error(
    "Groq, one request over the minute's tokens",
    413,
    "Request too large for model `llama-3.1-8b-instant` on tokens per minute (TPM): Limit 6000, Requested " +
      "9211, please reduce your message size and try again.",
    { type: "tokens", code: "rate_limit_exceeded" },
  ),
  say("Cerebras", 400, {
    message:
      "Please reduce the length of the messages or completion. Current length is 9120 while limit is 8192",
    type: "invalid_request_error",
    param: "messages",
    code: "context_length_exceeded",
  }),
  say("Cerebras, without a body", 413, ""),
  error(
    "DeepSeek",
    400,
    "This model's maximum context length is 65536 tokens. However, you requested 73012 tokens (65012 in the " +
      "messages, 8000 in the completion). Please reduce the length of the messages or completion.",
  ),
  error(
    "Moonshot",
    400,
    "Invalid request: Your request exceeded model token limit: 262144 (requested: 263112)",
  ),
  say("OpenRouter", 400, {
    error: {
      code: 400,
      message:
        "This endpoint's maximum context length is 131072 tokens. However, you requested about 140012 tokens " +
        "(136012 of text input, 4000 in the output). Please reduce the length of either one.",
      metadata: { provider_name: null },
    },
  }),
  say("xAI", 400, {
    code: "Client specified an invalid argument",
    error: "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
  }),
  say("Z.ai", 400, { error: { code: "1261", message: "Prompt exceeds max length" } }),
  say("Zhipu", 400, {
    error: {
      code: "1210",
      message: "The context length of the request exceeds the maximum that the model supports",
    },
  }),
  error(
    "Together",
    400,
    "The input (140012 tokens) is longer than the model's context length (131072 tokens).",
  ),
  error(
    "Together, with the output",
    422,
    "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 8012 `inputs` " +
      "tokens and 512 `max_new_tokens`",
  ),
  error("Fireworks", 400, "The prompt is too long: 140012, model maximum context length: 131072"),
  say("NVIDIA NIM", 422, {
    detail: "Input length 9012 exceeds the maximum allowed length 4096 of the model's context",
  }),
  error("DeepInfra", 400, "Input length 140012 exceeds the maximum length 131072"),
  error("Perplexity", 400, "Requested 140012 tokens exceed the maximum context length of 127072 tokens", {
    type: "bad_request",
    code: 400,
  }),
  say("Cohere", 400, {
    message:
      "too many tokens: total number of tokens in the prompt exceeds the context length of the model, size " +
      "limit exceeded by 1200 tokens. Try using shorter or fewer inputs.",
  }),
  error("DashScope", 400, "Range of input length should be [1, 129024]", { code: "invalid_parameter_error" }),
  error(
    "DashScope, algorithm",
    400,
    "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 98304]",
    { code: "invalid_parameter_error" },
  ),
  error("MiniMax", 400, "invalid params, context window exceeds limit (2013)"),
  error(
    "SambaNova",
    400,
    "The provided prompt is 9012 tokens long, so generating 4096 tokens requires a " +
      "sequence length of 13108, but the maximum supported sequence length is just 8192!",
  ),
  error("Volcengine Ark", 400, "Total tokens of image and text exceed max message tokens", {
    code: "InvalidParameter",
  }),
  error("GitHub Copilot", 400, "prompt token count of 140012 exceeds the limit of 128000", {
    code: "model_max_prompt_tokens_exceeded",
  }),
  say("GitHub Models", 413, {
    error: {
      code: "tokens_limit_reached",
      message: "Request body too large for gpt-4o model. Max size: 8000 tokens.",
      details: "Request body too large for gpt-4o model. Max size: 8000 tokens.",
    },
  }),
];

const LOCAL: readonly Refusal[] = [
  flat(
    "vLLM",
    "This model's maximum context length is 4096 tokens. However, you requested 5012 tokens (4512 in the " +
      "messages, 500 in the completion). Please reduce the length of the messages or completion.",
  ),
  flat(
    "vLLM, newer",
    "You passed 40961 input tokens and requested 0 output tokens. However, the model's context length is " +
      "only 40960 tokens, resulting in a maximum input length of 40960 tokens. Please reduce the length of " +
      "the input prompt. (parameter=input_tokens, value=40961)",
  ),
  flat(
    "vLLM, decoder",
    "The decoder prompt (length 40961) is longer than the maximum model length of 40960. Make sure that " +
      "`max_model_len` is no smaller than the number of text tokens.",
  ),
  flat(
    "vLLM, with the output",
    "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is " +
      "8192 tokens and your request has 6012 input tokens (4096 > 8192 - 6012).",
  ),
  flat("SGLang", "The input (140012 tokens) is longer than the model's context length (131072 tokens)."),
  flat(
    "SGLang, with the output",
    "Requested token count exceeds the model's maximum context length of 131072 tokens. You requested a " +
      "total of 140012 tokens: 136012 tokens from the input messages and 4000 tokens for the completion.",
  ),
  say("LM Studio", 400, {
    error:
      "Trying to keep the first 9012 tokens when context the overflows. However, the model is loaded with " +
      "context length of only 4096 tokens, which is not enough. Try to load the model with a larger context " +
      "length, or provide a shorter input",
  }),
  say("LM Studio, prompt", 400, {
    error: "The number of tokens to keep from the initial prompt is greater than the context length.",
  }),
  say("LM Studio, generation", 400, {
    error:
      "Reached context length of 4096 tokens with model (arch: qwen2) that does not currently support " +
      "mid-generation context overflow. Try reloading with a larger context length or shortening the prompt",
  }),
  say("llama.cpp", 400, {
    error: {
      code: 400,
      message: "the request exceeds the available context size, try increasing it",
      type: "exceed_context_size_error",
      n_prompt_tokens: 9012,
      n_ctx: 4096,
    },
  }),
  say("llama.cpp, newer", 400, {
    error: {
      code: 400,
      message: "request (9012 tokens) exceeds the available context size (4096 tokens), try increasing it",
      type: "exceed_context_size_error",
    },
  }),
  error("Ollama", 400, "prompt too long; exceeded max context length by 1212 tokens"),
  error("Ollama, runner", 400, "the input length exceeds the context length"),
  say("TGI", 422, {
    error: "Input validation error: `inputs` must have less than 4096 tokens. Given: 5012",
    error_type: "validation",
  }),
  say("TGI, with the output", 422, {
    error:
      "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 3912 `inputs` " +
      "tokens and 512 `max_new_tokens`",
    error_type: "validation",
  }),
  error(
    "LiteLLM",
    400,
    "litellm.ContextWindowExceededError: litellm.BadRequestError: ContextWindowExceededError: " +
      "OpenAIException - the prompt does not fit. Received Model Group=big\nAvailable Model Group Fallbacks=None",
    { type: null, param: null, code: "400" },
  ),
  say("nginx", 413, HTML_413),
];

export const OVERFLOWS: readonly Refusal[] = [...HOSTED, ...LOCAL];

/** Refusals that speak of tokens, lengths or contexts, and do not mean that the prompt is too large. */
export const NOT_OVERFLOWS: readonly Refusal[] = [
  anthropic(
    "Anthropic, rate",
    429,
    "This request would exceed your organization's maximum rate of 30,000 input tokens per minute. Reduce " +
      "the prompt length or the maximum tokens requested",
    "rate_limit_error",
  ),
  error(
    "OpenAI, rate",
    429,
    "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 31012. The input or output " +
      "tokens must be reduced in order to run successfully.",
    { type: "tokens", code: "rate_limit_exceeded" },
  ),
  say("Bedrock, rate", 429, { message: "Too many tokens, please wait before trying again." }),
  error("OpenRouter, rate", 429, "The maximum context length of the free tier was used up for today"),
  error("OpenAI, temperature", 400, "Invalid 'temperature': must be at most 2"),
  error("a proxy, key", 401, "The token is invalid: its maximum length is 64"),
  error("a proxy, right", 403, "This token has no right to the model's long context window"),
  error("a proxy, model", 404, "No model with a context window of 1M tokens has this name"),
];
