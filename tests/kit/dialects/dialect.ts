// The shape of a provider dialect: how a server checks requests, how it writes answers, and how it words
// errors. The dialects themselves are in hosted.ts, makers.ts and local.ts.

import type { ProviderApi } from "../../../src/core/shapes/settings/settings.ts";
import type { Refusal } from "./overflow.ts";

export type Json = Record<string, unknown>;

/** A request as a server's own check sees it. */
export interface Checked {
  readonly body: Json;
  /** Messages of a chat completion. Empty for other APIs. */
  readonly messages: readonly Json[];
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** A part of a server's check. Returns the words of the refusal, or undefined. */
export interface Rule {
  /** Names the rule in a failure. A gateway may break it once per model, and must learn from the refusal. */
  readonly name: string;
  readonly status: number;
  /** True if each refusal with other words is a lesson of its own, such as one about each field. */
  readonly isByWords?: boolean;
  check(request: Checked): string | undefined;
}

/** The way in which a server of chat completions writes its stream. */
export interface ChatStyle {
  /** Index of the pieces of calls: counted, always 0, or absent. Default: counted. */
  readonly index?: "zero" | "none";
  /** Returns the id of a call. Absent: OpenAI's form. `null`: calls have no ids. */
  readonly id?: ((number: number) => string) | null;
  /** Arguments in pieces (default), in one piece, or as an object. */
  readonly given?: "whole" | "object";
  /** Later pieces of a call repeat its empty id and name. */
  readonly hasEmptyHeads?: boolean;
  /** The last chunk repeats all calls whole. */
  readonly repeatsCalls?: boolean;
  /** Content is a string (default), or a list of parts. */
  readonly content?: "list";
  /** The text is in `delta` (default), in `message`, or in both, where `message` has the whole text so far. */
  readonly place?: "message" | "both";
  /**
   * The field of the thinking, tags in the text, parts of a content list, or not shown at all. Default:
   * reasoning_content.
   */
  readonly thinking?: "hidden" | "reasoning" | "both" | "tags" | "parts" | "details";
  /** Finish reasons. Default: OpenAI's. */
  readonly reasons?: { readonly stop?: string; readonly calls?: string; readonly length?: string };
  /** Whether `[DONE]` ends the stream. Default true. */
  readonly hasDone?: boolean;
  /** Whether the connection stays open behind the end. Default false. */
  readonly staysOpen?: boolean;
  /** Bytes before the first chunk, and between chunks. */
  readonly before?: string;
  readonly between?: string;
  /** Place of the usage: a chunk of its own without choices (default), the last choice, or the last chunk. */
  readonly usage?: "choice" | "last" | "x_groq" | "none";
  readonly lineEnd?: string;
  /** More fields of a tool call. */
  readonly callMore?: Json;
}

export interface Dialect {
  /** Id of the provider in a configuration. */
  readonly id: string;
  /** Name of the server for people. */
  readonly name: string;
  readonly api: ProviderApi;
  /** The address that people write into their configuration. */
  readonly baseUrl: string;
  readonly rules: readonly Rule[];
  /** Returns the body of an error with these words. */
  word(words: string, status: number): unknown;
  readonly style?: ChatStyle;
  readonly overflow: Refusal;
  /** A refusal of the request with status, and the words that people must see. */
  readonly refusal: Refusal & { readonly words: string };
  /** Whether models of this server see pictures, think and call tools. */
  readonly can: { readonly see: boolean; readonly think: boolean; readonly call: boolean };
  /** The quirks in few words, for the documentation. */
  readonly quirks: string;
}

export const ALL = { see: true, think: true, call: true } as const;
export const BLIND = { ...ALL, see: false } as const;
