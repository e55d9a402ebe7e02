// Lists the fields of OpenAI requests that are refused because ignoring them would change the answer's
// meaning. `openai/request.ts` reads some others. The rest is ignored, and a header names it: the agent's
// settings decide how its model runs, and front-ends add fields for many servers.

import { fail, ok, type Result } from "../../core/shapes/errors.ts";

type Body = Readonly<Record<string, unknown>>;

/** The API of a request. */
export type OpenAiApi = "chat" | "responses";

/** Returns whether the value is null, false or an empty list, so that it requests nothing. */
export function isNothing(value: unknown): boolean {
  return value == null || value === false || (Array.isArray(value) && value.length === 0);
}

/** `harmless`: accepted values, since they request the behaviour that applies anyway. */
interface Refusal {
  readonly why: string;
  harmless(value: unknown): boolean;
}

const FUNCTIONS: Refusal = { why: "send the functions as tools", harmless: isNothing };

const GRAMMAR: Refusal = {
  why: "the form of an answer is asked for with response_format (chat) or text.format (responses)",
  harmless: isNothing,
};
const GRAMMARS = {
  guided_json: GRAMMAR,
  guided_regex: GRAMMAR,
  guided_choice: GRAMMAR,
  guided_grammar: GRAMMAR,
  structured_outputs: GRAMMAR,
};
const LOGPROBS: Refusal = { why: "token probabilities are not available", harmless: isNothing };

export const REFUSED: Readonly<Record<OpenAiApi, Readonly<Record<string, Refusal>>>> = {
  chat: {
    functions: FUNCTIONS,
    function_call: FUNCTIONS,
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
    ...GRAMMARS,
  },
  responses: {
    prompt: { why: "there are no stored prompts; use instructions", harmless: isNothing },
    top_logprobs: { ...LOGPROBS, harmless: (value) => isNothing(value) || value === 0 },
    ...GRAMMARS,
  },
};

const READ = ["model", "user", "stream", "stream_options", "tools", "tool_choice", "parallel_tool_calls"];
const EFFECTIVE: Readonly<Record<OpenAiApi, readonly string[]>> = {
  chat: [...READ, "messages", "reasoning_effort", "response_format"],
  responses: [
    ...READ,
    "input",
    "instructions",
    "reasoning",
    "previous_response_id",
    "conversation",
    "metadata",
    "text",
    "store",
    "background",
  ],
};
const IGNORED_MAX = 50;

/** Returns the names of the fields that are taken and not used. A name must fit into a header. */
export function ignoredFields(api: OpenAiApi, body: Body): string[] {
  return Object.entries(body)
    .filter(([name, value]) => value != null && /^[\w.-]{1,64}$/.test(name))
    .map(([name]) => name)
    .filter((name) => !EFFECTIVE[api].includes(name) && !Object.hasOwn(REFUSED[api], name))
    .slice(0, IGNORED_MAX);
}

export function checkFields(api: OpenAiApi, body: Body): Result<void> {
  const refused = REFUSED[api];
  for (const [field, value] of Object.entries(body)) {
    const rule = Object.hasOwn(refused, field) ? refused[field] : undefined;
    if (rule !== undefined && !rule.harmless(value)) {
      return fail("invalid_argument", `${field} is not supported: ${rule.why}`, {
        details: { param: field },
      });
    }
  }
  return ok(undefined);
}
