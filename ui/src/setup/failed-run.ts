// The cause and the consequence of a failed run, in words. Pure.

const CAUSES: Readonly<Record<string, string>> = {
  model_unauthorized: "The provider of the model refused the key.",
  invalid_model: "The model is not there.",
  budget_used: "The agent has used its budget of today.",
  chain_limit: "This conversation between sessions has reached a limit.",
  answer_too_large: "The answer was longer than the agent's limit.",
  run_timeout: "The run took longer than its limit.",
  run_crashed: "The gateway stopped during this run, several times.",
};

/** Failures for which the page has a form, with the words of its button. */
export const FIX_WORDS: Readonly<Record<string, string>> = {
  model_unauthorized: "Set the key",
  invalid_model: "Choose a model",
  budget_used: "Change the budget",
  chain_limit: "Change the limits",
};

export const causeOf = (code: string): string => CAUSES[code] ?? "The run failed.";

const KEPT = "The message is kept.";

/** `begun`: the model has answered; undefined: unknown. `retriable`: the reader may retry it. */
export function consequenceOf(begun: boolean | undefined, retriable: boolean): string {
  const done =
    begun === false
      ? `${KEPT} The agent has done nothing yet.`
      : `${KEPT} So are the answers and changes that the agent made before; the rest was not done.`;
  return retriable ? `${done} Retry sends the message again.` : done;
}
