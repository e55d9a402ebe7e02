// Lists the fields of OpenAI requests: those that are used, those that are accepted and ignored, and those
// that are refused because ignoring them would change the answer's meaning.
// Every field is either read, listed as unused, or refused by name.

import { fail, ok, type Result } from "../../core/shapes/errors.ts";

type Body = Readonly<Record<string, unknown>>;

/** The API of a request. */
export type OpenAiApi = "chat" | "responses";

/** The supported fields, which `openai/request.ts` reads. */
export const READ: Readonly<Record<OpenAiApi, readonly string[]>> = {
  chat: ["model", "messages", "user", "stream", "stream_options", "reasoning_effort", "response_format"],
  responses: [
    "model",
    "input",
    "instructions",
    "user",
    "stream",
    "stream_options",
    "reasoning",
    "previous_response_id",
    "metadata",
    "text",
  ],
};

/**
 * Fields that are accepted and ignored: the agent's settings decide how its model runs, and hints for
 * OpenAI's own service have no effect here.
 */
export const UNUSED: Readonly<Record<OpenAiApi, readonly string[]>> = {
  chat: [
    "frequency_penalty",
    "logit_bias",
    "max_completion_tokens",
    "max_tokens",
    "metadata",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_retention",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "temperature",
    "top_p",
    "verbosity",
  ],
  responses: [
    "include",
    "max_output_tokens",
    "max_tool_calls",
    "parallel_tool_calls",
    "prompt_cache_key",
    "prompt_cache_retention",
    "safety_identifier",
    "service_tier",
    "temperature",
    "top_p",
    "truncation",
  ],
};

/** Returns whether the value is null, false or an empty list, so that it requests nothing. */
function isNothing(value: unknown): boolean {
  return value == null || value === false || (Array.isArray(value) && value.length === 0);
}

/** `harmless`: accepted values, since they request the behaviour that applies anyway. */
interface Refusal {
  readonly why: string;
  harmless(value: unknown): boolean;
}

const TOOLS: Refusal = {
  why: "an agent can't call the client's tools; its own tools are set in the configuration",
  harmless: isNothing,
};
const TOOL_CHOICE: Refusal = {
  why: "a client can't choose an agent's tools",
  harmless: (value) => value == null || value === "auto" || value === "none",
};

const LOGPROBS: Refusal = { why: "token probabilities are not available", harmless: isNothing };

export const REFUSED: Readonly<Record<OpenAiApi, Readonly<Record<string, Refusal>>>> = {
  chat: {
    tools: TOOLS,
    functions: TOOLS,
    tool_choice: TOOL_CHOICE,
    function_call: TOOL_CHOICE,
    n: { why: "one request is one run with one answer", harmless: (value) => value == null || value === 1 },
    audio: { why: "an agent answers in text", harmless: isNothing },
    modalities: {
      why: "an agent answers in text",
      harmless: (value) => isNothing(value) || (Array.isArray(value) && value.every((one) => one === "text")),
    },
    logprobs: LOGPROBS,
    top_logprobs: { ...LOGPROBS, harmless: (value) => isNothing(value) || value === 0 },
    web_search_options: { why: "an agent searches with its own tools only", harmless: isNothing },
    store: {
      why: "messages are kept in a session, which user names; completions can't be fetched later",
      harmless: isNothing,
    },
  },
  responses: {
    tools: TOOLS,
    tool_choice: TOOL_CHOICE,
    background: { why: "background responses don't exist here; stream a long answer", harmless: isNothing },
    conversation: {
      why: "conversations are sessions here: name one with user or the header x-parley-session-key",
      harmless: isNothing,
    },
    prompt: { why: "there are no stored prompts; use instructions", harmless: isNothing },
    store: {
      why: "messages to an agent are always stored in its session",
      harmless: (value) => value == null || value === true,
    },
    top_logprobs: { ...LOGPROBS, harmless: (value) => isNothing(value) || value === 0 },
  },
};

/** Refuses a body with an unsupported or unknown field. */
export function checkFields(api: OpenAiApi, body: Body): Result<void> {
  const refused = REFUSED[api];
  for (const [field, value] of Object.entries(body)) {
    const rule = Object.hasOwn(refused, field) ? refused[field] : undefined;
    if (rule !== undefined && !rule.harmless(value)) {
      return fail("invalid_argument", `${field} is not supported: ${rule.why}`, {
        details: { param: field },
      });
    }
    if (rule !== undefined || READ[api].includes(field) || UNUSED[api].includes(field)) continue;
    const shown = field.slice(0, 60);
    const known = [...READ[api], ...UNUSED[api]].join(", ");
    return fail("unknown_argument", `unrecognized request argument: ${JSON.stringify(shown)}`, {
      hint: `Accepted fields: ${known}.`,
      details: { param: shown },
    });
  }
  return ok(undefined);
}
