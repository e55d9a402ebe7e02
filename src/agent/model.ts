// Owns what the agent loop asks of a model, and which models there are.
// M1: a failure of the model is a value (`ModelOutcome`); a port throws only on a bug.
// M2: this file imports no provider code, so that naming a model costs nothing at start.

import type { BudgetState } from "../core/budget.ts";
import { fail, ok, type Result } from "../core/errors.ts";
import type { AssistantMessage, Entry, Usage } from "../core/message.ts";
import type { ModelRetry } from "../core/model-retry.ts";
import {
  type AnswerLimits,
  type ModelSettings,
  modelsNamed,
  OFFLINE_WINDOW,
  type ProviderSettings,
  type ThinkingLevel,
} from "../core/settings.ts";
import type { TextDelta } from "../core/text-delta.ts";
import type { ToolSpec } from "../core/tool.ts";
import type { Log } from "../world.ts";

/** A model that can be called: one of a configured provider, or the built-in offline one. */
export type ResolvedModel = {
  /** `<provider>/<model>`, as settings and people write it. */
  readonly ref: string;
  readonly settings: ModelSettings;
} & ({ readonly kind: "offline" } | { readonly kind: "provider"; readonly provider: ProviderSettings });

export interface ModelRequest {
  readonly model: ResolvedModel;
  readonly system: string;
  /** The transcript as it is stored; the port makes of it what its provider accepts. */
  readonly entries: readonly Entry[];
  readonly tools: readonly ToolSpec[];
  readonly thinking: ThinkingLevel;
  /** Lets a provider find its prompt cache again. */
  readonly sessionId: string;
  /** Past one of them the answer is not read on. */
  readonly limits: Pick<AnswerLimits, "maxAnswerBytes" | "maxAnswerToolCalls">;
  /** Told before each further try of this call. Absent: nobody watches. */
  readonly onRetry?: ((retry: ModelRetry) => void) | undefined;
}

/** Marks a tool call whose arguments weren't a JSON object; its value is what the model wrote. */
export const UNREADABLE_ARGUMENTS = "_unreadable_arguments";

export type BudgetCode = BudgetState["code"];
/** Why a call failed for good, other than by its provider. */
export type FailureCode = BudgetCode | "answer_too_large";

/** What a model wrote, before the loop gives it an id. */
export type WrittenMessage = Omit<AssistantMessage, "id">;

export type ModelOutcome =
  | { readonly kind: "message"; readonly message: WrittenMessage }
  /** The request is larger than the model's context window. */
  | { readonly kind: "overflow"; readonly error: string }
  /** Retries are used up or senseless. `partial`: text that was already handed to `onText`. */
  | {
      readonly kind: "failed";
      readonly error: string;
      /** A budget refused the call, or the answer passed a limit. */
      readonly code?: FailureCode;
      readonly partial?: WrittenMessage;
    }
  | { readonly kind: "aborted"; readonly partial?: WrittenMessage };

export interface ModelPort {
  /**
   * Calls the model once and waits for its whole message. `onText` gets its text as it comes. Settles within
   * 100 ms of an abort, whatever the provider's client does.
   */
  call(
    request: ModelRequest,
    onText: (delta: TextDelta) => void,
    signal: AbortSignal,
    /** Of the run that calls. Default: the port's own. */
    log?: Log,
  ): Promise<ModelOutcome>;
}

/** Usage of one call, as the provider reported it. */
export function usageOf(outcome: ModelOutcome): Usage | undefined {
  if (outcome.kind === "message") return outcome.message.usage;
  return outcome.kind === "overflow" ? undefined : outcome.partial?.usage;
}

/** What a call of a model came to, for whoever counts. */
export interface ModelCall {
  /** `<provider>/<model>` */
  readonly ref: string;
  readonly outcome: ModelOutcome["kind"];
  /** From the request to the whole message, further tries included. */
  readonly ms: number;
  /** What it cost; absent where nothing was written. */
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

/** Every model that a session may be set to: the configured ones, then the offline one. */
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

/** At most this many names stand in the error for an unknown model. */
const NAMES_MAX = 30;

/** The full name of a model, `<provider>/<model>`, from any name that it may have. */
export function fullModelName(providers: readonly ProviderSettings[], name: string): Result<string> {
  const found = resolveModel(providers, name);
  return found.ok ? ok(found.value.ref) : found;
}

/**
 * Finds the model that `<provider>/<model>` names (the model part may itself contain slashes), or a bare id
 * that one provider has.
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
