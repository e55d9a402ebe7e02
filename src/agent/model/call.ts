// Defines one attempt of a model request, and the parts of it that depend on the settings alone.

import { fieldsOf } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import type { AnswerFormat } from "../../core/shapes/run.ts";
import type { ProviderApi } from "../../core/shapes/settings/settings.ts";
import type { World } from "../../world.ts";
import type { Answer } from "./answer.ts";
import type { ModelRequest, ResolvedModel } from "./model.ts";

export type ProviderModel = Extract<ResolvedModel, { kind: "provider" }>;

/** The headers of a response. `get` returns null or undefined for a missing header. */
export interface AnswerHeaders {
  get(name: string): string | null | undefined;
}

/** Facts about the HTTP response, for error messages. */
export interface Seen {
  status?: number;
  headers?: AnswerHeaders;
  /** Origin of a refused redirect's target. */
  redirectedTo?: string;
  /** True if no connection was made in time. */
  notConnected?: boolean;
  /** Words of the server, or of the innermost cause of a failed connection. */
  words?: string;
}

/** One attempt of a model request. */
export interface Call {
  readonly world: Pick<World, "clock" | "gather" | "log">;
  readonly model: ProviderModel;
  readonly request: ModelRequest;
  readonly answer: Answer;
  readonly seen: Seen;
  readonly signal: AbortSignal;
  /** Counts received bytes; may abort the signal. */
  heard(bytes: number): void;
}

/** An expected failure of a request. Any other error is a bug. */
export class RequestError extends Error {}

/**
 * Returns the key to send. Some local servers need one although they do not check it. The settings may
 * contain it as a header instead.
 */
export function keyFor({ apiKey, headers }: ProviderModel["provider"]): string | undefined {
  if (apiKey !== undefined && apiKey !== "") return apiKey;
  const names = Object.keys(headers).map((name) => name.toLowerCase());
  return names.includes("authorization") || names.includes("x-api-key") ? undefined : "none";
}

/** Returns the body with the format. Without a format, the body is returned unchanged. */
export function withFormat(api: ProviderApi, body: object, format: AnswerFormat | undefined): object {
  if (format === undefined) return body;
  const fields = fieldsOf(body);
  const schema = format.type === "json_schema" ? format.schema : undefined;
  switch (api) {
    case "openai-completions":
      return { ...fields, response_format: nestFormat(format) };
    case "openai-responses":
      return { ...fields, text: { ...fieldsOf(fields.text), format } };
    case "anthropic-messages": {
      const config = fieldsOf(fields.output_config);
      return { ...fields, output_config: { ...config, format: { type: format.type, schema } } };
    }
    case "google-generative-ai": {
      const json = { responseMimeType: "application/json", ...optional({ responseJsonSchema: schema }) };
      return { ...fields, config: { ...fieldsOf(fields.config), ...json } };
    }
  }
}

/** Returns the body with the tool that the model must call. Without one, the body is returned unchanged. */
export function withToolChoice(api: ProviderApi, body: object, must: string | true | undefined): object {
  if (must === undefined) return body;
  const name = must === true ? undefined : must;
  switch (api) {
    case "openai-completions":
      return {
        ...body,
        tool_choice: name === undefined ? "required" : { type: "function", function: { name } },
      };
    case "openai-responses":
      return { ...body, tool_choice: name === undefined ? "required" : { type: "function", name } };
    case "anthropic-messages":
      return { ...body, tool_choice: name === undefined ? { type: "any" } : { type: "tool", name } };
    case "google-generative-ai": {
      const functionCallingConfig = { mode: "ANY", ...(name && { allowedFunctionNames: [name] }) };
      const { config } = fieldsOf(body);
      return { ...body, config: { ...fieldsOf(config), toolConfig: { functionCallingConfig } } };
    }
  }
}

function nestFormat(format: AnswerFormat): object {
  if (format.type === "json_object") return format;
  const { type, ...json_schema } = format;
  return { type, json_schema };
}
