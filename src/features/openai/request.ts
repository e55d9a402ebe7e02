// Parses an OpenAI request: the agent, the history, the input, and how it runs. Pure.
// OR1: only the messages after the last assistant message are the run's input; those before it are history,
// which a named session already has.
// Instructions apply to this run only, wherever they appear.

import { MESSAGE_MAX_CHARS } from "../../contract/methods/parts.ts";
import { isObject } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { ImageBlock } from "../../core/shapes/message.ts";
import type { AnswerFormat, ClientTools } from "../../core/shapes/run.ts";
import type { ThinkingLevel } from "../../core/shapes/settings/settings.ts";
import { quoted } from "../../core/text/cut.ts";
import {
  CALLS_MAX,
  chatItems,
  type Item,
  inputItems,
  readItems,
  saysAnything,
  type Turn,
} from "./content.ts";
import { checkFields, ignoredFields, type OpenAiApi } from "./fields.ts";
import { chatFormat, responseFormat, wrong } from "./format.ts";
import { clientToolsIn } from "./tools.ts";

/** A request in Parley's terms. */
export interface AgentRequest {
  readonly api: OpenAiApi;
  /** The model name that the client sent. `agentIn` finds the agent in this name. */
  readonly model: string;
  readonly user?: string;
  readonly previousRunId?: string;
  /** Id of the conversation in which the run takes place. */
  readonly conversation?: string;
  /** The history that the client sent. It is used only for a new session. */
  readonly seed: readonly Turn[];
  /** Results after the last message of the assistant. With them, `text` may be empty. */
  readonly results: readonly Turn[];
  readonly everyResult: readonly Turn[];
  readonly clientTools?: ClientTools;
  readonly text: string;
  readonly images: readonly ImageBlock[];
  readonly senderName?: string;
  /** Instructions for this run only. */
  readonly instructions?: string;
  readonly thinking?: ThinkingLevel;
  readonly format?: AnswerFormat;
  readonly stream: boolean;
  readonly includeUsage: boolean;
  /** False if the response can't be fetched later. Default true. */
  readonly store?: boolean;
  /** True if the client does not wait for the end. */
  readonly background?: boolean;
  /** Names of the fields that were not used. */
  readonly ignored: readonly string[];
  /** Returned in the answer. */
  readonly metadata?: Readonly<Record<string, string>>;
}

/** A response's id is this prefix and the id of its run. */
export const RESPONSE_PREFIX = "resp_";
/** A conversation's id is this prefix and the id of its transcript. */
export const CONVERSATION_PREFIX = "conv_";
/** Maximum number of history messages in one request. */
const SEED_MAX = 1_000;
const USER_CHARS_MAX = 512;
const ID_CHARS_MAX = 240;
const METADATA_MAX = 16;
const EFFORTS: Readonly<Record<string, ThinkingLevel>> = {
  none: "off",
  minimal: "minimal",
  low: "low",
  medium: "medium",
  high: "high",
  xhigh: "xhigh",
  max: "max",
};

type Body = Readonly<Record<string, unknown>>;

function textIn(body: Body, field: string, charsMax: number): Result<string | undefined> {
  const value = body[field];
  if (value == null) return ok(undefined);
  if (typeof value !== "string" || value === "") return wrong(field, "must be a non-empty string");
  if (value.length > charsMax) return wrong(field, `must have at most ${charsMax} characters`);
  if (!value.isWellFormed()) return wrong(field, "contains an unpaired surrogate");
  return ok(value);
}

function flagIn(body: Body, field: string, name = field): Result<boolean> {
  const value = body[field];
  return value == null || typeof value === "boolean"
    ? ok(value === true)
    : wrong(name, "must be true or false");
}

function thinkingIn(value: unknown, param: string): Result<ThinkingLevel | undefined> {
  if (value == null) return ok(undefined);
  const level = typeof value === "string" && Object.hasOwn(EFFORTS, value) ? EFFORTS[value] : undefined;
  return level === undefined ? wrong(param, `must be one of ${Object.keys(EFFORTS).join(", ")}`) : ok(level);
}

/** Reads the field `metadata`. */
export function metadataIn(value: unknown): Result<Readonly<Record<string, string>> | undefined> {
  if (value == null) return ok(undefined);
  const texts = isObject(value) ? Object.values(value) : [undefined];
  const fits = texts.length <= METADATA_MAX && texts.every((one) => typeof one === "string");
  return fits
    ? ok(value as Record<string, string>)
    : wrong("metadata", `must be an object with at most ${METADATA_MAX} texts`);
}

function previousIn(body: Body): Result<string | undefined> {
  const given = textIn(body, "previous_response_id", ID_CHARS_MAX);
  if (!given.ok || given.value === undefined) return given;
  return given.value.startsWith(RESPONSE_PREFIX)
    ? ok(given.value.slice(RESPONSE_PREFIX.length))
    : wrong("previous_response_id", `must begin with ${RESPONSE_PREFIX}: it is the id of a response`);
}

/** Reads the field `conversation`, an id or an object with one. Nothing else may name the session. */
function conversationIn(body: Body, namesSession: boolean): Result<string | undefined> {
  const { conversation, previous_response_id: previous } = body;
  const id = isObject(conversation) ? (conversation.id ?? "") : conversation;
  const given = textIn({ conversation: id }, "conversation", ID_CHARS_MAX);
  if (!given.ok || given.value === undefined) return given;
  if (previous != null) return wrong("conversation", "must not stand beside previous_response_id");
  return namesSession ? wrong("conversation", "must not stand beside x-parley-session-key") : given;
}

/** The history, the input, and the instructions of a request. */
interface Said {
  readonly seed: readonly Turn[];
  readonly input: readonly Turn[];
  readonly everyResult: readonly Turn[];
  readonly system: readonly string[];
}

/**
 * Splits the items into history, input and instructions. `keepsHistory`: the session stores its history, so
 * the history that the client sent is ignored (OR1).
 */
function divide(items: readonly Item[], keepsHistory: boolean): Result<Said> {
  const last = items.findLastIndex((item) => item.role === "assistant");
  const system = readItems(items.filter((item) => item.role === "system"));
  if (!system.ok) return system;
  const spoken = (from: readonly Item[]) => from.filter((item) => item.role !== "system");
  const before = spoken(items.slice(0, last + 1));
  if (!keepsHistory && before.length > SEED_MAX) {
    return fail("too_large", `the request has ${before.length} earlier messages; the maximum is ${SEED_MAX}`);
  }
  const seed = readItems(keepsHistory ? [] : before);
  if (!seed.ok) return seed;
  if (seed.value.some((turn) => turn.text.length > MESSAGE_MAX_CHARS)) return tooLong("an earlier message");
  const input = readItems(spoken(items.slice(last + 1)));
  if (!input.ok) return input;
  const results = readItems(items.filter((item) => item.role === "tool"));
  if (!results.ok) return results;
  const long = results.value.find((turn) => turn.text.length > MESSAGE_MAX_CHARS);
  if (long !== undefined) return tooLong(long.where);
  const given = input.value.filter(({ role }) => role === "tool");
  if (given.length > CALLS_MAX)
    return wrong(given[CALLS_MAX]?.where ?? "", `is one of too many: there are at most ${CALLS_MAX} results`);
  const ids = new Set<string | undefined>();
  for (const { callId, where } of given) {
    if (ids.has(callId)) return wrong(where, `gives the call ${JSON.stringify(callId)} two results`);
    ids.add(callId);
  }
  const late = input.value.find((turn, at) => turn.role === "tool" && input.value[at - 1]?.role === "user");
  if (late !== undefined) return wrong(late.where, "must stand before the user's message");
  return ok({
    ...{ seed: seed.value, input: input.value, everyResult: results.value },
    system: system.value.map((turn) => turn.text),
  });
}

export function tooLong(param: string): ReturnType<typeof fail> {
  const details = { param };
  return fail("too_large", `${param}: a message has at most ${MESSAGE_MAX_CHARS} characters`, { details });
}

function joinTexts(texts: readonly string[]): string {
  return texts.filter((text) => text.trim() !== "").join("\n\n");
}

/** Joins consecutive messages to one. */
function inputOf(
  turns: readonly Turn[],
  param: string,
  hasResults: boolean,
): Result<Pick<AgentRequest, "text" | "images" | "senderName">> {
  const text = joinTexts(turns.map((turn) => turn.text));
  if (text.length > MESSAGE_MAX_CHARS) return tooLong(param);
  const images = turns.flatMap((turn) => turn.images);
  if (text === "" && images.length === 0 && !hasResults) {
    return wrong(param, "must end with a non-empty user message, which the agent answers");
  }
  if (!text.isWellFormed()) return wrong(param, "contains an unpaired surrogate");
  const name = turns.at(-1)?.name;
  return ok({ text, images, ...optional({ senderName: name }) });
}

/** Reads the fields that both APIs share. */
function common(api: OpenAiApi, body: Body) {
  const model = textIn(body, "model", USER_CHARS_MAX);
  if (!model.ok) return model;
  if (model.value === undefined) return wrong("model", "is required: name the agent as parley/<agentId>");
  const user = textIn(body, "user", USER_CHARS_MAX);
  if (!user.ok) return user;
  const stream = flagIn(body, "stream");
  if (!stream.ok) return stream;
  const options = body.stream_options ?? {};
  if (!isObject(options)) return wrong("stream_options", "must be an object");
  const usage = flagIn(options, "include_usage", "stream_options.include_usage");
  if (!usage.ok) return usage;
  const clientTools = clientToolsIn(body);
  if (!clientTools.ok) return clientTools;
  return ok({
    model: model.value,
    ...optional({ user: user.value, clientTools: clientTools.value }),
    stream: stream.value,
    includeUsage: usage.value,
    ignored: ignoredFields(api, body),
  });
}

function readChat(body: Body, namesSession: boolean): Result<AgentRequest> {
  const base = common("chat", body);
  if (!base.ok) return base;
  const thinking = thinkingIn(body.reasoning_effort, "reasoning_effort");
  if (!thinking.ok) return thinking;
  const format = chatFormat(body.response_format);
  if (!format.ok) return format;
  const items = chatItems(body.messages);
  if (!items.ok) return items;
  const said = divide(items.value, namesSession || base.value.user !== undefined);
  if (!said.ok) return said;
  return assembleRequest(
    { api: "chat", ...base.value, ...optional({ thinking: thinking.value, format: format.value }) },
    said.value,
    "messages",
  );
}

function readResponse(body: Body, namesSession: boolean): Result<AgentRequest> {
  const base = common("responses", body);
  if (!base.ok) return base;
  const { reasoning, instructions } = body;
  const effort = isObject(reasoning) ? reasoning.effort : reasoning;
  const thinking = thinkingIn(effort, "reasoning.effort");
  if (!thinking.ok) return thinking;
  const format = responseFormat(body.text);
  if (!format.ok) return format;
  const metadata = metadataIn(body.metadata);
  if (!metadata.ok) return metadata;
  const previous = previousIn(body);
  if (!previous.ok) return previous;
  const conversation = conversationIn(body, namesSession);
  if (!conversation.ok) return conversation;
  const store = flagIn({ store: true, ...optional({ store: body.store ?? undefined }) }, "store");
  if (!store.ok) return store;
  const background = flagIn(body, "background");
  if (!background.ok) return background;
  if (background.value && !store.value)
    return wrong("background", "needs store: the response is fetched later");
  if (instructions != null && typeof instructions !== "string")
    return wrong("instructions", "must be a string");
  const items = inputItems(body.input);
  if (!items.ok) return items;
  const lasting = base.value.user ?? previous.value ?? conversation.value;
  const keepsHistory = namesSession || lasting !== undefined;
  const said = divide(items.value, keepsHistory);
  if (!said.ok) return said;
  const known = {
    api: "responses" as const,
    ...base.value,
    ...optional({ thinking: thinking.value, format: format.value, metadata: metadata.value }),
    ...optional({ previousRunId: previous.value, background: background.value || undefined }),
    ...optional({ conversation: conversation.value }),
    store: store.value,
  };
  const system = instructions == null ? said.value.system : [instructions, ...said.value.system];
  return assembleRequest(known, { ...said.value, system }, "input");
}

function assembleRequest(
  known: Omit<
    AgentRequest,
    "seed" | "results" | "everyResult" | "text" | "images" | "senderName" | "instructions"
  >,
  said: Said,
  param: string,
): Result<AgentRequest> {
  const results = said.input.filter((turn) => turn.role === "tool");
  const input = inputOf(
    said.input.filter((turn) => turn.role === "user"),
    param,
    results.length > 0,
  );
  if (!input.ok) return input;
  const instructions = joinTexts(said.system).toWellFormed();
  if (instructions.length > MESSAGE_MAX_CHARS) return tooLong(param);
  return ok({
    ...known,
    ...input.value,
    results,
    everyResult: said.everyResult,
    seed: said.seed.filter(saysAnything),
    ...(instructions === "" ? {} : { instructions }),
  });
}

/** Parses a body. `namesSession`: a header of the request names the session. */
export function readRequest(api: OpenAiApi, body: unknown, namesSession: boolean): Result<AgentRequest> {
  if (!isObject(body)) return fail("invalid_argument", "the body must be one JSON object");
  const fields = checkFields(api, body);
  if (!fields.ok) return fields;
  return api === "chat" ? readChat(body, namesSession) : readResponse(body, namesSession);
}

/** Returns the agent of a model name: `parley/<agentId>` or `agent:<agentId>`. */
export function agentIn(model: string, agentIds: readonly string[]): Result<string> {
  const id = /^(?:parley\/|agent:)(.+)$/i.exec(model.trim())?.[1]?.toLowerCase();
  if (id !== undefined && agentIds.includes(id)) return ok(id);
  const valid = agentIds.map(modelName).join(", ");
  return fail("agent_not_found", `the model ${quoted(model, 100)} does not exist here`, {
    hint: `A model names an agent: ${valid}.`,
    details: { param: "model" },
  });
}

export function modelName(agentId: string): string {
  return `parley/${agentId}`;
}
