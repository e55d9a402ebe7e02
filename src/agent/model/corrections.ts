// Corrects requests for servers that take less than their API allows. If a server refuses a field, the
// request is repeated in another form, and the model's later requests have that form at once.
// QK1: each correction is made once for a model, so a request is repeated a limited number of times.

import { isObject } from "../../core/json.ts";
import type { ProviderModel } from "./call.ts";
import { learnedFor } from "./learned.ts";
import { QUIRKS } from "./quirks.ts";

type Json = Record<string, unknown>;

/** A refusal that names a field that the server does not know. */
const UNKNOWN_FIELD =
  /extra|unknown|unrecogni.ed|(un|not )supported|unexpected|not (permitted|allow|accept)|invalid|forbid/i;
/** Statuses of a server that judges the fields of a request. */
const JUDGED = [400, 422];
/** Fields that a request can do without. */
const OPTIONAL = [
  ...["store", "stream_options", "prompt_cache_key", "prompt_cache_retention", "reasoning_effort"],
  ...["reasoning_content", "reasoning_details", "reasoning_text", "reasoning", "enable_thinking"],
  ...["chat_template_kwargs", "tool_stream", "parallel_tool_calls", "service_tier", "metadata", "include"],
  ...["safety_identifier", "truncation", "strict", "eager_input_streaming", "cache_control"],
  ...["output_config", "thinking", "thinkingConfig", "fallbacks", "context_management", "name"],
  ...["extra_content", "thoughtSignature", "session_id", "temperature", "tool_choice", "verbosity"],
];
/** Fields with content of others: names in them are not the request's. */
const FOREIGN = new Set([
  ...["parameters", "input_schema", "parametersJsonSchema", "schema", "arguments", "args", "response"],
  ...["content", "text", "input", "output"],
]);

const without = (field: string): string => `without \`${field}\``;
const WITHOUT = /^without `(.+)`$/;

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
 * Learns from a refusal. `words`: those of the server. `body`: the request as it was sent. `isForm`: whether
 * the history can't be meant; otherwise only plain names of fields count. Returns the new correction, or
 * undefined if none would change the request.
 */
export function learn(
  model: ProviderModel,
  { status, words, isForm }: { readonly status: number; readonly words: string; readonly isForm: boolean },
  body: Json,
): string | undefined {
  const own = learnedFor(model);
  const sent = JSON.stringify(body);
  const changes = (made: Json): boolean => JSON.stringify(made) !== sent;
  const isJudged = JUDGED.includes(status);
  const quirk = QUIRKS.find(
    ({ says, refusal, correct, isOfTemplate = false }) =>
      (isJudged || isOfTemplate) && !own.has(says) && refusal.test(words) && changes(correct(body)),
  );
  const isField = quirk === undefined && isJudged && UNKNOWN_FIELD.test(words);
  const fields = isField
    ? OPTIONAL.filter((name) => (isForm || name.includes("_")) && names(words, name))
    : [];
  const field = fields.find((name) => !own.has(without(name)) && changes(withoutField(body, name)));
  const says = quirk?.says ?? (field === undefined ? undefined : without(field));
  if (says !== undefined) own.add(says);
  return says;
}

/** Takes back what did not help. */
export function unlearn(model: ProviderModel, corrections: readonly string[]): void {
  for (const says of corrections) learnedFor(model).delete(says);
}

/** Returns whether a refusal names a field. An English word must be marked as a name. */
function names(words: string, field: string): boolean {
  const isWord = /^[a-z]+$/.test(field);
  const [before, after] = isWord ? ["['\"`.]", "['\"`:]"] : ["(?<!\\w)", "(?!\\w)"];
  return new RegExp(isWord ? `${before}${field}\\b|\\b${field}${after}` : before + field + after).test(words);
}

function withoutField(value: Json, field: string): Json {
  const walk = (one: unknown): unknown => {
    if (Array.isArray(one)) return one.map(walk);
    // A signal or another object with methods stays what it is.
    if (!isObject(one) || Object.getPrototypeOf(one) !== Object.prototype) return one;
    const kept = Object.entries(one).filter(([name]) => name !== field);
    return Object.fromEntries(
      kept.map(([name, inner]) => [name, FOREIGN.has(name) && !Array.isArray(inner) ? inner : walk(inner)]),
    );
  };
  return walk(value) as Json;
}
