// Defines the model port of the agent loop, and resolves model names. A failure of a model is a value
// (`ModelOutcome`); a port throws only on a bug. This file imports no provider code, so that naming a model
// costs nothing at start.

import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { AssistantMessage, Entry, HistoryPart, Usage } from "../../core/shapes/message.ts";
import type { ModelRetry } from "../../core/shapes/model-retry.ts";
import type { AnswerFormat } from "../../core/shapes/run.ts";
import {
  type AnswerLimits,
  type ModelSettings,
  modelsNamed,
  OFFLINE_WINDOW,
  type ProviderSettings,
  type ThinkingLevel,
} from "../../core/shapes/settings/settings.ts";
import type { ToolSpec } from "../../core/shapes/tool.ts";
import type { TextDelta } from "../../core/text/text-delta.ts";
import type { Log } from "../../world.ts";

/** A callable model: one of a configured provider, or the built-in offline one. */
export type ResolvedModel = {
  /** `<provider>/<model>`, as in the settings. */
  readonly ref: string;
  readonly settings: ModelSettings;
} & ({ readonly kind: "offline" } | { readonly kind: "provider"; readonly provider: ProviderSettings });

export interface ModelRequest {
  readonly model: ResolvedModel;
  readonly system: string;
  /** The stored transcript. The port converts it to its provider's format. */
  readonly entries: readonly Entry[];
  readonly tools: readonly ToolSpec[];
  readonly thinking: ThinkingLevel;
  /** Format of the answer's text. Default: free text. */
  readonly format?: AnswerFormat | undefined;
  /** Name of the tool that the model must call, or true for any. Default: none. */
  readonly mustCall?: string | true;
  /** Key of the provider's prompt cache. */
  readonly sessionId: string;
  /** Limits of the answer. Reading stops at a limit. */
  readonly limits: Pick<AnswerLimits, "maxAnswerBytes" | "maxAnswerToolCalls">;
  /**
   * Makes the pause of `ms` before a retry, and resolves when the retry may be sent. If it throws, the call
   * does. Default: only pauses.
   */
  readonly pauseRetry?: ((pause: () => Promise<unknown>, ms: number) => Promise<unknown>) | undefined;
  /** Called before each retry of this call. Default: none. */
  readonly onRetry?: ((retry: ModelRetry) => void) | undefined;
  /** Gets the streamed thinking. After a retry it starts again at offset 0. Default: none. */
  readonly onThinking?: ((delta: TextDelta) => void) | undefined;
}

/** Asks the model of a run during a tool call, beside its transcript. The usage counts for the run. */
export type AskAside = (
  asked: Pick<ModelRequest, "system" | "entries"> & { readonly maxOutputTokens: number },
  signal: AbortSignal,
) => Promise<ModelOutcome>;

/** Marks a tool call whose arguments are not a JSON object. Its value is the text that the model wrote. */
export const UNREADABLE_ARGUMENTS = "_unreadable_arguments";

/** Causes of a final failure that have a code of their own. */
export const FAILURE_CODES = [
  "budget_used",
  "chain_limit",
  "answer_too_large",
  "model_unauthorized",
  "invalid_model",
] as const;
export type FailureCode = (typeof FAILURE_CODES)[number];

/** A model's message, before the loop gives it an id. */
export type WrittenMessage = Omit<AssistantMessage, "id">;

export type ModelOutcome =
  | { readonly kind: "message"; readonly message: WrittenMessage }
  /** The request is larger than the model's context window. */
  | { readonly kind: "overflow"; readonly error: string }
  /** The provider refused this part of the conversation, not the whole. */
  | { readonly kind: "refused"; readonly part: HistoryPart; readonly error: string }
  /** Retries are exhausted or useless. `partial`: the text that `onText` already got. */
  | {
      readonly kind: "failed";
      readonly error: string;
      /** Set if a budget refused the call, the answer exceeded a limit, or the provider refused the key. */
      readonly code?: FailureCode;
      /** Set if the same request may succeed later. */
      readonly isPassing?: true;
      readonly partial?: WrittenMessage;
    }
  | { readonly kind: "aborted"; readonly partial?: WrittenMessage };

export interface ModelPort {
  /**
   * Calls the model once and waits for its whole message. `onText` gets the streamed text. Settles within 100
   * ms of an abort, even if the provider's client does not.
   */
  call(
    request: ModelRequest,
    onText: (delta: TextDelta) => void,
    signal: AbortSignal,
    /** The run's log. Default: the port's own. */
    log?: Log,
  ): Promise<ModelOutcome>;
}

/** Returns the usage of one call, as the provider reported it. */
export function usageOf(outcome: ModelOutcome): Usage | undefined {
  if (outcome.kind === "message") return outcome.message.usage;
  return "partial" in outcome ? outcome.partial?.usage : undefined;
}

/** The outcome of a model call, for metrics. */
export interface ModelCall {
  /** `<provider>/<model>` */
  readonly ref: string;
  readonly outcome: ModelOutcome["kind"];
  /** Time from the request to the whole message, including retries. */
  readonly ms: number;
  /** The usage. Absent if the model wrote nothing. */
  readonly usage?: Usage;
}

export const OFFLINE_PROVIDER = "offline";
export const OFFLINE_MODEL_ID = "rehearsal";

const OFFLINE: ResolvedModel = {
  kind: "offline",
  ref: `${OFFLINE_PROVIDER}/${OFFLINE_MODEL_ID}`,
  settings: {
    id: OFFLINE_MODEL_ID,
    name: "Offline rehearsal",
    contextWindow: OFFLINE_WINDOW,
    maxOutputTokens: 8_000,
    reasoning: false,
    images: false,
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
  },
};

/** Returns every model that a session may use: the configured ones, then the offline one. */
export function listModels(providers: readonly ProviderSettings[]): ResolvedModel[] {
  const configured = providers.flatMap((provider) =>
    provider.models.map(
      (settings): ResolvedModel => ({
        kind: "provider",
        ref: `${provider.id}/${settings.id}`,
        settings,
        provider,
      }),
    ),
  );
  return [...configured, OFFLINE];
}

/** Maximum number of model names in the error for an unknown model. */
const NAMES_MAX = 30;

/** Returns the full name of a model, `<provider>/<model>`, for any of its names. */
export function fullModelName(providers: readonly ProviderSettings[], name: string): Result<string> {
  const found = resolveModel(providers, name);
  return found.ok ? ok(found.value.ref) : found;
}

/**
 * Finds the model with the name `<provider>/<model>` (the model part may contain slashes), or with an id that
 * only one provider has.
 */
export function resolveModel(providers: readonly ProviderSettings[], ref: string): Result<ResolvedModel> {
  const models = listModels(providers);
  const names = models.map((model) => model.ref);
  const meant = modelsNamed(ref, names);
  const found = meant.length === 1 ? models.find((model) => model.ref === meant[0]) : undefined;
  if (found !== undefined) return ok(found);
  if (meant.length > 1) {
    return fail("invalid_model", `"${ref}" is a model of several providers: write ${meant.join(" or ")}`, {
      details: { validModels: meant.slice(0, NAMES_MAX) },
    });
  }
  const shown = names.slice(0, NAMES_MAX).join(", ");
  const more = names.length > NAMES_MAX ? ` and ${names.length - NAMES_MAX} more` : "";
  return fail("invalid_model", `unknown model "${ref}"; valid models: ${shown}${more}`, {
    hint: "Write it as <provider>/<model>.",
    details: { validModels: names.slice(0, NAMES_MAX) },
  });
}
