// The cause and the consequence of a failed run, in words. Pure.

const CAUSES: Readonly<Record<string, string>> = {
  model_unauthorized: "The provider of the model refused the key.",
  invalid_model: "The model is not there.",
  budget_used: "The agent has used today's budget.",
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

/** Returns the cause of a failure in words, or else the `reason` that the gateway gives. */
export const describeFailure = (code: string | undefined, reason: string): string =>
  CAUSES[code ?? ""] ?? reason;

export const causeOf = (code: string): string => describeFailure(code, "The run failed.");

/** Returns the hint of a model's test without the names of settings, which are for readers of the file. */
export const plainHint = (hint: string): string =>
  hint
    .replace(/ \(models\.providers\.\S+\)/, "")
    .replace(/models\.providers\.[\w-]+\.baseUrl/, "the address of the provider")
    .replace(/models\.providers\.[\w-]+/, "the settings of the provider");

/** Whether the form mends all failures of this kind together. */
export const mendsAll = (code: string): boolean => code === "model_unauthorized" || code === "chain_limit";

/** Returns the provider of a model. */
export const providerIn = (model: string): string => model.split("/", 1)[0] ?? "";

const KEPT = "The message is kept.";

/** `begun`: the model has answered; undefined: unknown. `retriable`: the reader may retry it. */
export function consequenceOf(begun: boolean | undefined, retriable: boolean): string {
  const done =
    begun === false
      ? `${KEPT} The agent has done nothing yet.`
      : `${KEPT} So are the answers and changes that the agent made before; the rest was not done.`;
  return retriable ? `${done} Retry sends the message again.` : done;
}
