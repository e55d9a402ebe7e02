// Checks the values of a channel account that people enter, by the form that its platform declares.

/** The form of a value, and the text for another one. */
export type AnswerForm = readonly [RegExp, problem: string];

const NON_EMPTY: AnswerForm = [/^\S+$/, "The value must not be empty or contain spaces."];

/** Matches a value like `${NAME}`, which is read from the environment at each start. */
export const FROM_ENVIRONMENT = /^\$\{[A-Za-z_]\w*\}$/;

/** Returns an error text for an invalid value, or undefined for a valid one. */
export function checkAccountValue(
  [pattern, problem]: AnswerForm = NON_EMPTY,
  value: string,
): string | undefined {
  return FROM_ENVIRONMENT.test(value) || pattern.test(value) ? undefined : problem;
}
