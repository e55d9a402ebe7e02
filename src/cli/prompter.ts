// Asks a person questions in the terminal. A cancelled question is returned as a failure.

import type { Readable, Writable } from "node:stream";
import { fail, ok, type Result } from "../core/shapes/errors.ts";
import { safeLine } from "../core/text/safe-text.ts";
import { type Cli, EXIT } from "./cli.ts";
import type { CliParts } from "./parts.ts";

interface AskOptions {
  readonly secret: boolean;
  check(text: string): string | undefined;
}

export interface Prompter {
  show(title: string, lines: readonly string[]): void;
  choose<T extends string>(
    message: string,
    options: readonly { readonly value: T; readonly label: string }[],
  ): Promise<Result<T>>;
  ask(message: string, options: AskOptions): Promise<Result<string>>;
  confirm(message: string): Promise<Result<boolean>>;
}

const CANCELLED = fail("cancelled", "cancelled; nothing was written");

/** Returns a prompter that asks over the command's streams. Loads the prompt library. */
export async function openPrompter({ stdin, stdout }: Pick<CliParts, "stdin" | "stdout">): Promise<Prompter> {
  const clack = await import("@clack/prompts");
  const streams = { input: stdin as Readable, output: stdout as Writable };
  const readAnswer = <T>(answer: T): Result<Exclude<T, symbol>> =>
    clack.isCancel(answer) ? CANCELLED : ok(answer as Exclude<T, symbol>);
  return {
    show: (title, lines) =>
      clack.note(lines.map((line, at) => `${at + 1}. ${safeLine(line)}`).join("\n"), title, streams),
    async choose(message, options) {
      const shown = options.map(({ value, label }) => ({ value: value as string, label }));
      return readAnswer(await clack.select({ message, options: shown, ...streams })) as Result<never>;
    },
    async ask(message, { secret, check }) {
      const validate = (text: string | undefined): string | undefined => check((text ?? "").trim());
      const prompt = { message, validate, ...streams };
      const answer = readAnswer(await (secret ? clack.password(prompt) : clack.text(prompt)));
      return answer.ok ? ok(answer.value.trim()) : answer;
    },
    confirm: async (message) => readAnswer(await clack.confirm({ message, initialValue: false, ...streams })),
  };
}

/**
 * Asks before a change that cannot be undone. Returns the exit code if the user does not agree, or cannot be
 * asked. `what`: name of the change. `nothing`: tells that nothing was changed.
 */
export async function refusal(
  cli: Cli,
  question: string,
  what: string,
  nothing: string,
): Promise<number | undefined> {
  if (!cli.parts.isTTY || cli.options.json) {
    const error = `${what} needs --yes where no terminal can ask.`;
    return cli.fail({ code: "invalid_argument", error }, EXIT.usage);
  }
  const answer = await (await openPrompter(cli.parts)).confirm(safeLine(question));
  if (answer.ok && answer.value) return undefined;
  if (answer.ok || answer.code === "cancelled") return cli.fail({ code: "cancelled", error: nothing });
  return cli.fail(answer, EXIT.usage);
}
