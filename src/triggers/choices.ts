// Validates the options of runs that no person starts: text, model, time limit and thinking. An invalid
// option is refused before anything is written, with the valid values.

import { fail, ok, type Result } from "../core/shapes/errors.ts";
import {
  findAgent,
  outsideKind,
  type Settings,
  THINKING_LEVELS,
  thinkingNamed,
} from "../core/shapes/settings/settings.ts";
import { quoted } from "../core/text/cut.ts";
import { checkLabel } from "../core/text/label.ts";

/** The settings and the check of models that the validation needs. */
export interface ChoiceRules {
  readonly settings: Settings;
  /** Checks that a model with this name could run; a failure lists the valid ones. */
  checkModel(name: string): Result<string>;
}

/** Options that can be set or removed. */
export interface RunChoices {
  readonly name?: string | null | undefined;
  readonly model?: string | null | undefined;
  readonly thinking?: string | null | undefined;
  readonly message?: string | undefined;
  /** Time limit of a run; 0 means no limit. */
  readonly timeoutSeconds?: number | undefined;
}

const TIMEOUT_MAX_SECONDS = 7 * 86_400;

/** Checks a text for the agent: it must not be empty or too long, or contain lone surrogates. */
export function checkWords(name: string, text: string, charsMax: number): Result<void> {
  if (text.trim() === "") {
    return fail("invalid_argument", `${name} must not be empty: the agent gets this text`);
  }
  if (text.length > charsMax) {
    return fail("too_large", `${name} has ${text.length} characters; the maximum is ${charsMax}`);
  }
  return text.isWellFormed()
    ? ok(undefined)
    : fail("invalid_argument", `${name} contains half a character (a lone surrogate)`);
}

export function checkChoices(rules: ChoiceRules, agentId: string, choices: RunChoices): Result<unknown> {
  const { name, model, thinking, message, timeoutSeconds = 0 } = choices;
  if (name != null) {
    const line = checkLabel(name, "name");
    if (!line.ok) return line;
  }
  if (message !== undefined && message.trim() === "") {
    return fail("invalid_argument", "message must not be empty: the agent gets this text");
  }
  if (timeoutSeconds > TIMEOUT_MAX_SECONDS) {
    return fail("invalid_argument", `timeoutSeconds must be at most ${TIMEOUT_MAX_SECONDS} (7 days)`);
  }
  if (thinking != null && thinkingNamed(thinking) === undefined) {
    const shown = quoted(thinking, 40);
    return fail("invalid_thinking", `thinking ${shown} is not valid; valid: ${THINKING_LEVELS.join(", ")}`);
  }
  if (model == null) return ok(undefined);
  const { runtime } = findAgent(rules.settings, agentId) ?? {};
  if (runtime !== undefined) {
    return fail("invalid_model", `agent "${agentId}" is ${outsideKind(runtime)} and chooses its own model`, {
      hint: "Omit model.",
    });
  }
  return rules.checkModel(model);
}
