// Parts of the checks that servers make before they answer a request, and the forms of their errors.

import { fieldsOf } from "../../../src/core/json.ts";
import type { Checked, Json, Rule } from "./dialect.ts";
import { OVERFLOWS, type Refusal } from "./overflow.ts";

type Words = (what: string) => string;

export const listOf = (value: unknown): Json[] => (Array.isArray(value) ? value.map(fieldsOf) : []);
const isAssistant = ({ role }: Json): boolean => role === "assistant";
const hasCalls = (message: Json): boolean => listOf(message.tool_calls).length > 0;
const textOf = (content: unknown): string =>
  typeof content === "string"
    ? content
    : listOf(content)
        .map(({ text }) => String(text ?? ""))
        .join("");
const hasPicture = ({ content }: Json): boolean => listOf(content).some(({ type }) => type === "image_url");

function rule(name: string, status: number, check: Rule["check"]): Rule {
  return { name, status, check };
}

/** Refuses messages with the role `developer`. */
export function noDeveloper(words: string, status = 400): Rule {
  return rule("developer", status, ({ messages }) =>
    messages.some(({ role }) => role === "developer") ? words : undefined,
  );
}

/** Refuses these fields of the body. */
export function noFields(fields: readonly string[], words: Words, status = 400): Rule {
  const check: Rule["check"] = ({ body }) => {
    const field = fields.find((one) => one in body);
    return field === undefined ? undefined : words(field);
  };
  return { ...rule("fields", status, check), isByWords: true };
}

const CHAT_FIELDS = ["model", "messages", "stream", "tools", "tool_choice", "max_tokens", "temperature"];

/** Refuses every field of the body that is not one of the basic ones or of `more`. */
export function onlyFields(more: readonly string[], words: Words, status = 422): Rule {
  const check: Rule["check"] = ({ body }) => {
    const field = Object.keys(body).find((one) => ![...CHAT_FIELDS, ...more].includes(one));
    return field === undefined ? undefined : words(field);
  };
  return { ...rule("unknown fields", status, check), isByWords: true };
}

/** Refuses content that is a list, unless it contains a picture. */
export function plainContent(words: string, status = 422): Rule {
  return rule("content list", status, ({ messages }) =>
    messages.some((one) => Array.isArray(one.content) && !hasPicture(one)) ? words : undefined,
  );
}

/** Refuses ids of calls that do not match. */
export function callIds(pattern: RegExp, words: Words, status = 400): Rule {
  return rule("call ids", status, ({ messages }) => {
    const ids = messages.flatMap((one) => [
      ...listOf(one.tool_calls).map(({ id }) => String(id)),
      ...(one.tool_call_id === undefined ? [] : [String(one.tool_call_id)]),
    ]);
    const bad = ids.find((id) => !pattern.test(id));
    return bad === undefined ? undefined : words(bad);
  });
}

/**
 * Refuses messages of the model with calls and without their thinking. `blank`: the shortest thinking that the
 * server takes.
 */
export function wantsReasoning(words: Words, blank: "" | " "): Rule {
  const isThought = (value: unknown): boolean => typeof value === "string" && value.length >= blank.length;
  return rule("reasoning_content is missing", 400, ({ messages }) => {
    const at = messages.findIndex(
      (one) => isAssistant(one) && hasCalls(one) && !isThought(one.reasoning_content),
    );
    return at < 0 ? undefined : words(String(at));
  });
}

const REASONING = ["reasoning_content", "reasoning_details", "reasoning"];

/** Refuses these fields with thinking in messages of the model. */
export function noReasoning(
  words: (at: number, field: string) => string,
  status = 400,
  fields: readonly string[] = REASONING,
): Rule {
  return rule("reasoning is sent", status, ({ messages }) => {
    const at = messages.findIndex((one) => isAssistant(one) && fields.some((field) => field in one));
    const field = fields.find((one) => one in (messages[at] ?? {}));
    return field === undefined ? undefined : words(at, field);
  });
}

/** Refuses messages without text, calls and pictures. */
export function noEmpty(words: Words, status = 400): Rule {
  return rule("empty content", status, ({ messages }) => {
    const at = messages.findIndex(
      (one) => textOf(one.content).trim() === "" && !hasCalls(one) && !hasPicture(one),
    );
    return at < 0 ? undefined : words(String(at));
  });
}

/** Refuses two messages of one side in a row. Results of tools belong to the side of the person. */
export function alternating(words: string, status = 400): Rule {
  return rule("roles alternate", status, ({ messages }) => {
    const roles = messages
      .filter(({ role }) => role !== "system" && role !== "developer")
      .map(({ role }) => role);
    const isWrong = roles.some((role, at) => at > 0 && role === roles[at - 1] && role !== "tool");
    return isWrong || roles.at(-1) === "assistant" ? words : undefined;
  });
}

/** Refuses calls that are not followed by their results, and results without calls. */
export function pairs(): Rule {
  return rule("pairs of call and result", 400, ({ messages }) => {
    let open: string[] = [];
    for (const one of messages) {
      if (one.role === "tool") {
        const id = String(one.tool_call_id);
        if (!open.includes(id))
          return "messages with role 'tool' must be a response to a preceding message with 'tool_calls'.";
        open = open.filter((other) => other !== id);
        continue;
      }
      if (open.length > 0) return `tool_call_ids did not have response messages: ${open.join(", ")}`;
      open = listOf(one.tool_calls).map(({ id }) => String(id));
    }
    return open.length > 0 ? `tool_call_ids did not have response messages: ${open.join(", ")}` : undefined;
  });
}

/** Refuses results of tools that do not name their tool. */
export function wantsName(words: Words): Rule {
  return rule("tool name is missing", 400, ({ messages }) => {
    const at = messages.findIndex((one) => one.role === "tool" && !(String(one.name ?? "").length > 0));
    return at < 0 ? undefined : words(String(at));
  });
}

/** Refuses calls without Google's signature of the thought behind them. Only the first of a message has one. */
export function wantsSignature(words: string): Rule {
  return rule("thought signature is missing", 400, ({ messages }) => {
    const firsts = messages.flatMap((one) => listOf(one.tool_calls).slice(0, 1));
    const isSigned = ({ extra_content: extra }: Json): boolean =>
      String(fieldsOf(fieldsOf(extra).google).thought_signature ?? "") !== "";
    return firsts.every(isSigned) ? undefined : words;
  });
}

/** Calls `visit` for each schema in a schema. */
function visitSchemas(schema: unknown, visit: (schema: Json) => void): void {
  if (Array.isArray(schema)) for (const one of schema) visitSchemas(one, visit);
  if (typeof schema !== "object" || schema === null || Array.isArray(schema)) return;
  const fields = schema as Json;
  visit(fields);
  for (const [name, value] of Object.entries(fields)) {
    if (name === "properties" || name === "$defs") {
      for (const one of Object.values(fieldsOf(value))) visitSchemas(one, visit);
    } else if (["items", "anyOf", "oneOf", "allOf", "additionalProperties"].includes(name)) {
      visitSchemas(value, visit);
    }
  }
}

/** Refuses schemas of tools with these keywords, and lists of types. */
export function plainSchemas(
  schemas: (body: Json) => readonly unknown[],
  keywords: readonly string[],
  words: Words,
): Rule {
  return rule("schema keywords", 400, ({ body }) => {
    const bad: string[] = [];
    const note = (schema: Json): void => {
      bad.push(...keywords.filter((keyword) => keyword in schema));
      if (Array.isArray(schema.type)) bad.push("type");
    };
    for (const schema of schemas(body)) visitSchemas(schema, note);
    return bad[0] === undefined ? undefined : words(bad[0]);
  });
}

/** Makes a rule of an API that is not chat completions. */
export const custom = (name: string, check: (request: Checked) => string | undefined): Rule =>
  rule(name, 400, check);

/** OpenAI's form of an error. */
export const openAiForm = (message: string): unknown => ({
  error: { message, type: "invalid_request_error", param: null, code: null },
});
export const plainForm = (message: string): unknown => ({ error: message });
export const messageForm = (message: string): unknown => ({ message });
export const flatForm = (message: string, status: number): unknown => ({
  ...{ object: "error", message, type: "BadRequestError", param: null, code: status },
});
/** FastAPI's form of an error about a field. */
export const detailForm = (message: string): unknown => ({
  detail: [{ type: "extra_forbidden", loc: ["body"], msg: message, input: null }],
});

/** Returns the overflow of this server. */
export function overflowFrom(server: string): Refusal {
  const found = OVERFLOWS.find((one) => one.server === server);
  if (found === undefined) throw new Error(`no overflow of ${server}`);
  return found;
}

/** Makes a refusal of a request and the words that people must see. */
export function refused(status: number, body: unknown, words: string): Refusal & { words: string } {
  return { server: "", status, body, words };
}
