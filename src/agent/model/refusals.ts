// Reads a provider's error: decides whether it blames the length of the conversation, or one part of it that
// can be left out. Providers word these errors freely, so the rules look for kinds of words, not for texts.
// RF1: a rate limit, a used-up account and a refused key never blame the conversation.
// RF2: an output limit that is set too high is not a length: a shorter conversation does not help.
// RF3: the limit of one field, such as a name, is not a length either.

import { fieldsOf, isObject, jsonOf } from "../../core/json.ts";
import type { HistoryPart } from "../../core/shapes/message.ts";

/** Maximum characters of an error that are read: a page in HTML may be long. */
const READ_CHARS_MAX = 8_000;

const TOO_LARGE = 413;
const NOT_FOUND = 404;
const SERVER_FAILED = 500;
/** Statuses that concern the account, the address or the moment (RF1). */
const NEVER = [401, 402, 403, 405, 408, 409, 410, 425, 429, 503, 504, 529];

/** Fields of an error that repeat the request, so their words are not the provider's. */
const REPEATED = new Set(["input", "ctx", "loc", "param", "url", "request_id", "user_id"]);

/** Joins patterns, so that long lists of words stay readable. */
const oneOf = (...patterns: readonly RegExp[]): RegExp =>
  new RegExp(patterns.map(({ source }) => source).join("|"));

/** Values inside of others that are read. */
const DEPTH_MAX = 20;

/** Returns the texts of a JSON error, also of JSON inside a string, or the text itself. */
function wordsIn(text: string, depth = 0): string {
  for (const bracket of ["{", "["]) {
    const start = text.indexOf(bracket);
    const body = start === -1 ? undefined : jsonOf(text.slice(start));
    if (body !== undefined) return [text.slice(0, start), ...textsIn(body, depth)].join(" ");
  }
  return text;
}

function textsIn(value: unknown, depth: number): string[] {
  if (depth > DEPTH_MAX) return [];
  if (typeof value === "string") return [/^\s*[{[]/.test(value) ? wordsIn(value, depth + 1) : value];
  if (Array.isArray(value)) return value.flatMap((item) => textsIn(item, depth + 1));
  if (!isObject(value)) return [];
  return Object.entries(fieldsOf(value)).flatMap(([name, inner]) =>
    REPEATED.has(name) ? [] : textsIn(inner, depth + 1),
  );
}

const ACCOUNT = oneOf(
  /rate[ _-]?limit/,
  /per[ _-](?:second|minute|min|hour|day|month)\b/,
  /\b[tr]p[mdhs]\b|quota|too many requests|throttl|billing/,
  /\bcredits?\b|\bafford/,
);

const TOKENS = oneOf(
  /(?<![a-z])tokens?(?![a-z])/,
  /context[ _-]?(?:window|length|size|limit)/,
  /max_?(?:model|seq)_?len|n_ctx|kv cache/,
);
const SIZE = /(?<![a-z])length|too[ _](?:long|large|big)|\bsize\b|context|characters/;

/** The whole that a provider counts; `prompt_cache_key` is a field. */
const PROMPT = /(?<![a-z])prompts?(?![a-z]|_cache)/;

const WHOLE = oneOf(
  /context|\bwindow\b|\binputs?\b|input_|\bmessages?\b/,
  /conversation|history|\brequest(?:ed|s)?\b|request_too_large/,
  /payload|\bbody\b|\bmodel\b|n_ctx/,
);
const BOUND = oneOf(
  /exce(?:e|s)|too[ _](?:long|large|big|many)|maximum|\bmax/,
  /limit|(?:long|great|larg|bigg)er than|more (?:tokens )?than/,
  /only (?:\d|supports)|at most|<=|\d ?> ?\d|less than|reduce/,
  /shorten|shorter|overflow|out of range|range of/,
  /(?:should|must) (?:be|have) (?:<|less|at most|\[|no more|in\b|within|between|short|small)/,
  /not enough|no(?:t| longer) fit|doesn't fit|truncat|\bfull\b/,
  /(?<!\d)\d{3,12}(?!\d).{0,200}context.{0,200}\d{3}/,
);
const OUTPUT = /max_?(?:completion_|output_|new_)?tokens|(?:completion|output|generated) tokens/;

const INPUT = /\binputs?\b|\binput_tokens\b|\bmessages\b|conversation|history/;

const FIELD = oneOf(
  /\b(?:string|array|list|name|id|description|ur[il])\b.{0,60}(?:too l|length|at most|exceed|max|limit)/,
  /\b(?:schema|propert(?:y|ies)|enum|tools?|functions?|metadata)\b.{0,60}(?:too l|at most|exceed|max|limit)/,
  /characters|failed to satisfy constraint/,
);
/** Words that mean the whole even where a field, or a failed server, is spoken of. */
const PLAIN_WHOLE = /context|\binput (?:length|characters|text|size|sequence|is)\b|max input|conversation/;

/** Errors about the number of messages, which a summary reduces, too, and about a negative rest of room. */
const CLEAR = oneOf(
  /\bmessages['"`]?:? ?(?:is )?(?:array|list) too long/,
  /too many messages|number of messages|at least 1, got -/,
);
const CHINESE =
  /(?:输入|提示|上下文|请求|内容|对话|prompt|tokens?)[^。]{0,30}(?:超长|过长|超过|超出|太长|超限)/;

function isTooLong(text: string, status: number | undefined): boolean {
  if (CLEAR.test(text) || CHINESE.test(text)) return true;
  const saysPrompt = PROMPT.test(text);
  if (OUTPUT.test(text) && !saysPrompt && !INPUT.test(text)) return false;
  const saysTokens = TOKENS.test(text);
  const isPlain = saysTokens || saysPrompt || PLAIN_WHOLE.test(text);
  // A failed server has many reasons, so its words must be plain.
  if (!isPlain && (FIELD.test(text) || (status ?? 0) >= SERVER_FAILED)) return false;
  return (saysTokens || SIZE.test(text)) && (saysPrompt || WHOLE.test(text)) && BOUND.test(text);
}

/** Thinking that a call must have, but that nobody has: without calls, none is missing. */
const MISSING_THINKING = oneOf(
  /missing (?:a |the )?`?thought_?signature/,
  /reasoning_content.{0,60}missing|missing.{0,60}reasoning_content/,
  /thinking mode must be passed/,
);

const THINKING = oneOf(
  /thought[ _]?signature/,
  /signature.{0,80}(?:thinking|thought|reasoning|block|content)/,
  /(?:thinking|thought|reasoning|block|content).{0,80}signature/,
  /redacted_thinking|thinking`?['"]? blocks?/,
  /expected `?thinking|thinking_signature/,
  /reasoning[ _](?:items?|content|details)|'reasoning'/,
  /reasoning_(?:content|details|text)|\brs_\w/,
  /encrypted[ _](?:content|reasoning)/,
);
const NO_THINKING = /budget_tokens|request signature/;

const PICTURES = oneOf(
  /\bimages?\b|\bimage_|_image\b|\bpictures?\b|\bphotos?\b/,
  /inline_?data|\bmedia[ _]type|mime[ _]?type|multi-?modal/,
  /\bvision\b|\bmmproj\b|base64/,
  /content['"`\]]* (?:must|should) be a (?:valid )?string/,
);

const TOOL_PAIRS = oneOf(
  /function[ .]arguments/,
  /tool_?use\b|tool_?results?\b|tool_use_id|tool_call_ids?/,
  /tool[ _-]call[ _-]ids?|call_id|tool results?/,
  /tool call results?|function_call_output/,
  /no tool (?:output|call) found|tool_calls/,
  /role:? ?['"`]?(?:tool|function)\b/,
  /\btool (?:messages?|role|blocks?)/,
  /function[ _](?:call|response) (?:parts|turn)/,
  /function calls and responses|roles? must alternate/,
  /alternat(?:e|ing)\b.{0,40}role|unexpected role|after role/,
  /expected last role|without `?tools/,
);
/** Errors about the definitions of tools: the history has no part in them. */
const TOOL_DEFINITIONS = /\btools?[.[]\d|input_schema|invalid schema|tool_choice|function_declarations/;

/**
 * Returns what a refusal blames: the length of the conversation or a part of it, or undefined if it blames
 * something else. `status`: the HTTP status, undefined for an error inside a stream. `words`: the error as
 * the provider sent it.
 */
export function judgeRefusal(status: number | undefined, words: string): "length" | HistoryPart | undefined {
  if (status !== undefined && NEVER.includes(status)) return undefined;
  const text = wordsIn(words).slice(0, READ_CHARS_MAX).toLowerCase().replace(/\s+/g, " ");
  // Mostly, the model or the address is unknown.
  if (status === NOT_FOUND) {
    if (/\brs_\w/.test(text)) return "thinking";
    return PICTURES.test(text) && text.includes("support") ? "pictures" : undefined;
  }
  const isLarge = status === TOO_LARGE;
  if (!isLarge && ACCOUNT.test(text)) return undefined;
  const isLong = isLarge || isTooLong(text, status);
  if (isLong && TOKENS.test(text)) return "length";
  if (TOOL_DEFINITIONS.test(text)) return undefined;
  if (MISSING_THINKING.test(text)) return "tool pairs";
  if (THINKING.test(text) && !NO_THINKING.test(text)) return "thinking";
  if (PICTURES.test(text)) return "pictures";
  if (TOOL_PAIRS.test(text)) return "tool pairs";
  return isLong ? "length" : undefined;
}
