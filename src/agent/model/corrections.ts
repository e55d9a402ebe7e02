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
/** Fields without which a request has no meaning. */
const NEEDED = new Set([
  ...["model", "messages", "input", "contents", "config", "system", "instructions", "tools", "stream"],
  ...["max_tokens", "max_completion_tokens", "max_output_tokens", "role", "content", "type", "text"],
  ...["tool_calls", "tool_call_id", "tool_use_id", "call_id", "id", "function", "name", "description"],
  ...["parameters", "input_schema", "arguments", "output", "url", "image_url", "source", "data"],
  ...["media_type", "thinking", "signature"],
]);
/** Fields with content of others: names in them are not the request's. */
const FOREIGN = new Set(["parameters", "input_schema", "arguments", "content", "text", "input", "output"]);

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
