// Lists the servers that take less than their API allows, and the form of a request that each takes. A server
// whose address tells nothing gets the most conservative form.

import type { Api, Model as PiModel } from "@earendil-works/pi-ai";
import { shortHash } from "@earendil-works/pi-ai/utils/hash";
import { fieldsOf, isObject, listOf, textOf } from "../../core/json.ts";
import type { ProviderSettings } from "../../core/shapes/settings/settings.ts";
import { plainSchema } from "./plain-schema.ts";

type Json = Record<string, unknown>;

/** Returns what pi-ai must know about the server behind an address. */
export function compatFor({ api, baseUrl }: ProviderSettings, id: string): PiModel<Api>["compat"] {
  const host = URL.canParse(baseUrl) ? new URL(baseUrl).hostname : "";
  if (api === "anthropic-messages") {
    const isAnthropic = host === "api.anthropic.com";
    // The server would keep state of the conversation, which no other process of Parley could use.
    return {
      supportsMessageThreads: false,
      ...(isAnthropic ? {} : { supportsEagerToolInputStreaming: false }),
    };
  }
  if (api !== "openai-completions" || host === "api.openai.com") return undefined;
  const isAzure = host.endsWith(".openai.azure.com");
  return {
    supportsStore: false,
    supportsDeveloperRole: isAzure,
    maxTokensField: isAzure ? "max_completion_tokens" : "max_tokens",
    requiresReasoningContentOnAssistantMessages: /deepseek|moonshot|kimi/i.test(`${host} ${id}`),
  };
}

interface Quirk {
  /** One line for people: the form that the server takes. */
  readonly says: string;
  /** Matches the words of a refusal that this correction may end. */
  readonly refusal: RegExp;
  /** True if servers also fail with the words, because their template of the conversation does. */
  readonly isOfTemplate?: true;
  /** Returns whether the correction is made before any refusal. Default: never. */
  readonly isKnown?: (host: string, model: string) => boolean;
  readonly correct: (body: Json) => Json;
}

const messagesOf = (body: Json): Json[] => listOf(body.messages).filter(isObject);

/** Changes the messages of a chat completion. */
const eachMessage =
  (change: (message: Json) => Json): Quirk["correct"] =>
  (body) => ({ ...body, messages: messagesOf(body).map(change) });

const renameField = (from: string, to: string): Quirk["correct"] => {
  return ({ [from]: value, ...body }) => (value === undefined ? body : { ...body, [to]: value });
};

const NINE = /^[a-zA-Z0-9]{9}$/;
const FILLER = "skip_thought_signature_validator";

/** The corrections, each with the server that needs it. More specific ones come first. */
export const QUIRKS: readonly Quirk[] = [
  {
    says: "`system` in place of the role `developer` (llama.cpp, vLLM, LM Studio)",
    refusal: /developer|(unexpected|unknown|invalid|unsupported)[^.]{0,20} role|role[^.]{0,40}one of/i,
    correct: eachMessage((message) =>
      message.role === "developer" ? { ...message, role: "system" } : message,
    ),
  },
  {
    says: "`max_completion_tokens` in place of `max_tokens` (OpenAI's reasoning models)",
    refusal: /max_tokens\b.*max_completion_tokens/is,
    correct: renameField("max_tokens", "max_completion_tokens"),
  },
  {
    says: "`max_tokens` in place of `max_completion_tokens` (Mistral, older servers)",
    refusal: /max_completion_tokens/i,
    correct: renameField("max_completion_tokens", "max_tokens"),
  },
  {
    says: "`reasoning_content` in every answer with tool calls (Kimi, DeepSeek)",
    refusal:
      /reasoning_content[^.]{0,60}(missing|required|must be)|(missing|required)[^.]{0,40}reasoning_content/i,
    correct: eachMessage((message) =>
      message.role === "assistant" && message.tool_calls !== undefined
        ? { ...message, reasoning_content: textOf(message.reasoning_content) ?? " " }
        : message,
    ),
  },
  {
    says: "tool call ids of nine letters and digits (Mistral)",
    refusal: /tool.?call.?id.*(length of 9|a-z, A-Z, 0-9)/is,
    isKnown: (host) => host.endsWith("mistral.ai"),
    correct: (body) => withIds(body, (id) => (NINE.test(id) ? id : shortHash(id).padEnd(9, "0").slice(0, 9))),
  },
  {
    says: "the tool's name beside its result (Gemini through LiteLLM, Ollama)",
    refusal: /name[^.]{0,40}(empty|required|missing)|(missing|required)[^.]{0,40}name\b/i,
    correct: (body) => {
      const calls = messagesOf(body).flatMap(({ tool_calls }) => listOf(tool_calls).map(fieldsOf));
      const names = new Map(calls.map((call) => [call.id, fieldsOf(call.function).name]));
      return eachMessage((message) => {
        const name = names.get(message.tool_call_id);
        return message.role === "tool" && name !== undefined ? { ...message, name } : message;
      })(body);
    },
  },
  {
    says: "an empty text in place of null beside tool calls (older servers)",
    refusal: /content[^.]{0,60}(null|none|NoneType|must be a string|valid string|required|missing)/i,
    correct: eachMessage((message) => ({ ...message, content: message.content ?? "" })),
  },
  {
    says: "one text in place of a list of parts (older servers)",
    refusal: /content.{0,80}(string|str\b|sequence|array|list)|(sequence|array|list)[^.]{0,60}string/is,
    correct: eachMessage((message) => {
      const texts = listOf(message.content).map((part) => textOf(fieldsOf(part).text));
      const isText = texts.length > 0 && texts.every((text) => text !== undefined);
      return isText ? { ...message, content: texts.join("\n") } : message;
    }),
  },
  {
    says: "an answer between a tool result and the next message (Mistral)",
    refusal: /unexpected role 'user' after role 'tool'/i,
    isOfTemplate: true,
    correct: (body) => ({
      ...body,
      messages: messagesOf(body).flatMap((message, at, all) =>
        message.role === "user" && all[at - 1]?.role === "tool"
          ? [{ role: "assistant", content: "I have read the results." }, message]
          : [message],
      ),
    }),
  },
  {
    says: "instructions in the first message, and roles that alternate (Gemma, older templates)",
    refusal: /system (role|message|prompt)s?[^.]{0,30}(not|un)\s?support|roles? must alternate|alternat/i,
    isOfTemplate: true,
    correct: (body) => ({ ...body, messages: alternating(messagesOf(body)) }),
  },
  {
    says: "the documented filler where a thought signature is missing (Gemini)",
    refusal: /thought.?signature/i,
    isKnown: (host) => host.endsWith("googleapis.com"),
    correct: withFiller,
  },
  {
    says: "plain schemas of tools: no references, unions or unknown keywords",
    refusal: /(?<!json_)schema|\$ref|anyOf|oneOf|additionalProperties|function_declarations/i,
    correct: (body) => withSchemas(body, plainSchema),
  },
  {
    says: "no tools: the server has none for this model",
    refusal:
      /(not|n't) support (the use of )?`?(tool|function)(s|\b)(?![_-])|(tools?|tool calling)`? (is|are) not/i,
    correct: ({ tools: _, tool_choice: __, ...body }) => body,
  },
];

function withIds(body: Json, short: (id: string) => string): Json {
  const withShortId = (call: unknown): Json => ({ ...fieldsOf(call), id: short(String(fieldsOf(call).id)) });
  return eachMessage(({ tool_call_id: id, tool_calls: calls, ...message }) => ({
    ...message,
    ...(id === undefined ? {} : { tool_call_id: short(String(id)) }),
    ...(calls === undefined ? {} : { tool_calls: listOf(calls).map(withShortId) }),
  }))(body);
}

const isTextAlone = (message: Json): boolean =>
  typeof message.content === "string" && message.tool_calls === undefined;

/** Moves the instructions into the first message of the user, and joins neighbours with the same role. */
function alternating(messages: readonly Json[]): Json[] {
  const made: Json[] = [];
  for (const message of messages) {
    const role = message.role === "system" || message.role === "developer" ? "user" : message.role;
    const last = made.at(-1);
    const joins = last !== undefined && last.role === role && isTextAlone(last) && isTextAlone(message);
    if (joins && role !== "tool") last.content = `${String(last.content)}\n\n${String(message.content)}`;
    else made.push({ ...message, role });
  }
  return made;
}

/** Adds a signature to the first call of each answer that has none. */
function withFiller(body: Json): Json {
  const contents = listOf(body.contents).map((content) => {
    const parts = listOf(fieldsOf(content).parts).map(fieldsOf);
    const at = parts.findIndex((part) => isObject(part.functionCall));
    if (at < 0 || parts[at]?.thoughtSignature !== undefined) return content;
    const filled = parts.map((part, place) => (place === at ? { ...part, thoughtSignature: FILLER } : part));
    return { ...fieldsOf(content), parts: filled };
  });
  if (body.contents !== undefined) return { ...body, contents };
  return eachMessage((message) => {
    const [first, ...rest] = listOf(message.tool_calls).map(fieldsOf);
    if (first === undefined || first.extra_content !== undefined) return message;
    const extra_content = { google: { thought_signature: FILLER } };
    return { ...message, tool_calls: [{ ...first, extra_content }, ...rest] };
  })(body);
}

/** Changes the schema of each tool, whichever API the request is for. */
function withSchemas(body: Json, plain: (schema: unknown) => unknown): Json {
  const change = (tool: unknown): unknown => {
    const fields = fieldsOf(tool);
    const made: Json = { ...fields };
    for (const name of ["parameters", "input_schema", "parametersJsonSchema"])
      if (fields[name] !== undefined) made[name] = plain(fields[name]);
    if (isObject(fields.function)) made.function = change(fields.function);
    if (Array.isArray(fields.functionDeclarations))
      made.functionDeclarations = fields.functionDeclarations.map(change);
    return made;
  };
  const { tools, config } = body;
  const inConfig = fieldsOf(config).tools;
  return {
    ...body,
    ...(Array.isArray(tools) ? { tools: tools.map(change) } : {}),
    ...(Array.isArray(inConfig) ? { config: { ...fieldsOf(config), tools: inConfig.map(change) } } : {}),
  };
}
