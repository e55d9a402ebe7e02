// Corrects requests for servers that take less than their API allows. A server whose address tells nothing
// gets the most conservative form. If it refuses a field, the request is repeated without it, and the model's
// later requests are corrected at once.
// QK1: each correction is made once for a model, so a request is repeated a limited number of times.
// QK2: corrections last until the settings of the provider change or the process ends.

import type { Api, Model as PiModel } from "@earendil-works/pi-ai";
import { fieldsOf, isObject, listOf, textOf } from "../../core/json.ts";
import type { ProviderSettings } from "../../core/shapes/settings/settings.ts";
import type { ProviderModel } from "./call.ts";
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
  /** Returns whether the correction is made before any refusal. Default: never. */
  readonly isKnown?: (host: string, model: string) => boolean;
  readonly correct: (body: Json) => Json;
}

const messagesOf = (body: Json): Json[] => listOf(body.messages).filter(isObject);

/** Changes the messages of a chat completion. */
const eachMessage =
  (change: (message: Json) => Json): Quirk["correct"] =>
  (body) => ({ ...body, messages: messagesOf(body).map(change) });

const renamed = (from: string, to: string): Quirk["correct"] => {
  return ({ [from]: value, ...body }) => (value === undefined ? body : { ...body, [to]: value });
};

const NINE = /^[a-zA-Z0-9]{9}$/;
const FILLER = "skip_thought_signature_validator";
const isGoogle = (host: string): boolean => host.endsWith("googleapis.com");

/** The corrections, each with the server that needs it. More specific ones come first. */
const QUIRKS: readonly Quirk[] = [
  {
    says: "`system` in place of the role `developer` (llama.cpp, vLLM, LM Studio)",
    refusal:
      /developer|(unexpected|unknown|invalid|unsupported)[^.]{0,20} role|role[^.]{0,40}(not supported|one of)/i,
    correct: eachMessage((message) =>
      message.role === "developer" ? { ...message, role: "system" } : message,
    ),
  },
  {
    says: "`max_completion_tokens` in place of `max_tokens` (OpenAI's reasoning models)",
    refusal: /max_tokens\b.*max_completion_tokens/is,
    correct: renamed("max_tokens", "max_completion_tokens"),
  },
  {
    says: "`max_tokens` in place of `max_completion_tokens` (Mistral, older servers)",
    refusal: /max_completion_tokens/i,
    correct: renamed("max_completion_tokens", "max_tokens"),
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
    correct: (body) => withIds(body, (id) => (NINE.test(id) ? id : nineChars(id))),
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
    correct: (body) => ({ ...body, messages: alternating(messagesOf(body)) }),
  },
  {
    says: "the documented filler where a thought signature is missing (Gemini)",
    refusal: /thought.?signature/i,
    isKnown: isGoogle,
    correct: withFiller,
  },
  {
    says: "plain schemas of tools: no references, unions or unknown keywords",
    refusal: /schema|\$ref|anyOf|oneOf|additionalProperties|function_declarations/i,
    correct: (body) => withSchemas(body, plainSchema),
  },
  {
    says: "no tools: the server has none for this model",
    refusal: /(not|n't) support (the use of )?(tool|function)|tools? (is|are) not supported/i,
    correct: ({ tools: _, tool_choice: __, ...body }) => body,
  },
];

/** A refusal that names a field that the server does not know. */
const UNKNOWN_FIELD =
  /extra|unknown|unrecogni[sz]ed|unsupported|unexpected|not (supported|permitted|allowed|accept)|additional propert|invalid|forbidden|no such/i;
/** Fields without which a request has no meaning. */
const NEEDED = new Set(
  (
    "model messages input contents config system instructions tools tool_calls tool_call_id role content type text " +
    "id call_id output function name description parameters input_schema arguments url image_url source data " +
    "media_type tool_use_id thinking signature max_tokens max_completion_tokens max_output_tokens stream"
  ).split(" "),
);
/** Fields with content of others: names in them are not the request's. */
const FOREIGN = new Set(["parameters", "input_schema", "arguments", "content", "text", "input", "output"]);

/** The corrections of a model, by the settings of its provider. */
const learned = new WeakMap<ProviderSettings, Map<string, Set<string>>>();

function learnedFor({ provider, settings }: ProviderModel): Set<string> {
  const models = learned.get(provider) ?? new Map<string, Set<string>>();
  learned.set(provider, models);
  const own = models.get(settings.id) ?? new Set<string>();
  models.set(settings.id, own);
  return own;
}

const without = (field: string): string => `without \`${field}\``;
const WITHOUT = /^without `(.+)`$/;

/** Returns the corrections that a model's server has taught, for people. */
export function learnedQuirks(provider: ProviderSettings, id: string): readonly string[] {
  return [...(learned.get(provider)?.get(id) ?? [])];
}

/** Returns a request in the form that the server takes, as far as that is known. */
export function corrected(model: ProviderModel, body: Json): Json {
  const own = learnedFor(model);
  const { baseUrl } = model.provider;
  const host = URL.canParse(baseUrl) ? new URL(baseUrl).hostname : "";
  let made = body;
  for (const { says, isKnown, correct } of QUIRKS)
    if (own.has(says) || isKnown?.(host, model.settings.id) === true) made = correct(made);
  for (const says of own) {
    const field = WITHOUT.exec(says)?.[1];
    if (field !== undefined) made = withoutField(made, field);
  }
  return made;
}

/**
 * Learns from a refusal. `words`: those of the server. `body`: the request as it was sent. Returns the new
 * correction, or undefined if none would change the request.
 */
export function learn(model: ProviderModel, words: string, body: Json): string | undefined {
  const own = learnedFor(model);
  const sent = JSON.stringify(body);
  const changes = (says: string, made: Json): boolean => !own.has(says) && JSON.stringify(made) !== sent;
  const quirk = QUIRKS.find(
    ({ says, refusal, correct }) => refusal.test(words) && changes(says, correct(body)),
  );
  const field =
    quirk === undefined && UNKNOWN_FIELD.test(words) ? fieldNames(body).find(named(words)) : undefined;
  const says = quirk?.says ?? (field === undefined ? undefined : without(field));
  if (says === undefined || own.has(says)) return undefined;
  own.add(says);
  return says;
}

const named = (words: string) => (field: string) =>
  new RegExp(`(^|[^a-z_])${field.replaceAll(/[^\w]/g, "\\$&")}($|[^a-z_])`, "i").test(words);

/** Returns the names of the fields that a request could do without. */
function fieldNames(value: unknown): string[] {
  if (Array.isArray(value)) return [...new Set(value.flatMap(fieldNames))];
  if (!isObject(value)) return [];
  const inner = Object.entries(value).flatMap(([name, field]) =>
    FOREIGN.has(name) && !Array.isArray(field) ? [] : fieldNames(field),
  );
  return [...new Set([...Object.keys(value), ...inner])].filter((name) => !NEEDED.has(name));
}

function withoutField(value: unknown, field: string): Json {
  const walk = (one: unknown): unknown => {
    if (Array.isArray(one)) return one.map(walk);
    if (!isObject(one)) return one;
    const kept = Object.entries(one).filter(([name]) => name !== field);
    return Object.fromEntries(
      kept.map(([name, inner]) => [name, FOREIGN.has(name) && !Array.isArray(inner) ? inner : walk(inner)]),
    );
  };
  return walk(value) as Json;
}

function withIds(body: Json, short: (id: string) => string): Json {
  return eachMessage((message) => ({
    ...message,
    ...(message.tool_call_id === undefined ? {} : { tool_call_id: short(String(message.tool_call_id)) }),
    ...(message.tool_calls === undefined
      ? {}
      : {
          tool_calls: listOf(message.tool_calls).map((call) => ({
            ...fieldsOf(call),
            id: short(String(fieldsOf(call).id)),
          })),
        }),
  }))(body);
}

/** Returns nine letters and digits that depend on the id alone. */
function nineChars(id: string): string {
  const hash = process.getBuiltinModule("node:crypto").createHash("sha256").update(id).digest();
  return BigInt(`0x${hash.toString("hex")}`)
    .toString(36)
    .slice(0, 9);
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
