// Commands as rows: a row has the summary, the arguments and the options of a command, and what it does.
// Help, completion, the reference and the type of the command's input come from the row.
// To start fast, a row loads the code of a larger command, and that of the connection, only when it runs.

import { Argument, type Command, CommanderError, Option } from "commander";
import { optional } from "../core/optional.ts";
import { type Cli, EXIT } from "./cli.ts";
import type { Link, Reply } from "./gateway-link.ts";

interface ArgumentRow {
  readonly text?: string;
  readonly choices?: readonly string[];
  readonly fallback?: string;
}

/** The arguments by their forms: `<name>`, `[name]` if it may be absent, `[name...]` for several. */
type Arguments = Readonly<Record<string, string | ArgumentRow>>;

/** An option. `T` is the type of its value. */
export interface OptionRow<T> {
  readonly text: string;
  /** Form of its value, like `<n>` or `<part...>`. Absent if the option takes none. */
  readonly value?: string;
  readonly short?: string;
  readonly choices?: readonly string[];
  /** Keys of options that cannot be used together with this one. */
  readonly conflicts?: string | string[];
  readonly isRequired?: boolean;
  readonly fallback?: T;
  /** Reads a value. `name`: like `--limit`. `before`: the value of an earlier use of the option. */
  read?(text: string, name: string, before: unknown): T;
}

/** The options by their keys: `keepTranscript` is `--keep-transcript`, `noStart` is `--no-start`. */
type Options = Readonly<Record<string, OptionRow<unknown>>>;

type Value<R> = R extends OptionRow<infer T> ? T : never;

/** The arguments and options that were given, by their keys. */
export type Input<A, O> = {
  readonly [K in keyof A as K extends `<${infer N}>` ? N : never]: string;
} & {
  readonly [K in keyof A as K extends `[${infer N}...]` ? N : never]: readonly string[];
} & {
  readonly [K in keyof A as K extends `[${infer N}]` ? N : never]?: string;
} & {
  readonly [K in keyof O as undefined extends Value<O[K]> ? never : K]: Value<O[K]>;
} & {
  readonly [K in keyof O as undefined extends Value<O[K]> ? K : never]?: Exclude<Value<O[K]>, undefined>;
};

interface Declared<A extends Arguments, O extends Options> {
  readonly summary: string;
  /** Whether the group runs this command if none is named. */
  readonly isDefault?: true;
  readonly args?: A;
  readonly options?: O;
}

export interface Row extends Declared<Arguments, Options> {
  run(cli: Cli, input: never): Promise<number>;
}

export interface Group {
  readonly summary: string;
  readonly commands: Commands;
}

export type Commands = Readonly<Record<string, Row | Group>>;

/** Tells why the input is wrong, and what to do. */
type Misuse = string | { readonly error: string; readonly hint: string } | undefined;

type None = Readonly<Record<never, never>>;
type Run<A, O> = (cli: Cli, input: Input<A, O>) => Promise<number>;

/** Returns the row of a command that is loaded when it runs. */
export function program<A extends Arguments = None, O extends Options = None>(
  row: Declared<A, O> & { load(): Promise<Run<A, O>> },
): Row {
  const run: Run<A, O> = async (cli, input) => (await row.load())(cli, input);
  return { ...row, run };
}

/** Returns the row of a command that works over a connection to the gateway. */
export function linked<A extends Arguments = None, O extends Options = None>(
  row: Declared<A, O> & {
    /** Returns why the input is wrong, before a connection is opened. */
    misuse?(input: Input<A, O>): Misuse;
    work(cli: Cli, link: Link, input: Input<A, O>): Promise<number>;
  },
): Row {
  const run: Run<A, O> = async (cli, input) => {
    const wrong = row.misuse?.(input);
    if (typeof wrong === "string") return cli.misuse(wrong);
    if (wrong !== undefined) return cli.misuse(wrong.error, wrong.hint);
    const { withLink } = await import("./gateway-link.ts");
    return withLink(cli, (link) => row.work(cli, link, input));
  };
  return { ...row, run };
}

/** Returns the row of a command that asks the gateway, and prints its answer: as lines, or as JSON. */
export function asks<T, F = undefined, A extends Arguments = None, O extends Options = None>(
  row: Declared<A, O> & {
    misuse?(input: Input<A, O>): Misuse;
    /** Finds what the input names, such as a session. */
    find?(link: Link, input: Input<A, O>, cli: Cli): Promise<Reply<F>>;
    ask(link: Link, input: Input<A, O>, found: F): Promise<Reply<T>>;
    print(cli: Cli, answer: T, found: F, input: Input<A, O>): void;
  },
): Row {
  return linked<A, O>({
    ...row,
    async work(cli, link, input) {
      const found = (await row.find?.(link, input, cli)) ?? { ok: true, value: undefined as F };
      if (!found.ok) return cli.fail(found);
      const answer = await row.ask(link, input, found.value);
      if (!answer.ok) return cli.fail(answer);
      row.print(cli, answer.value, found.value, input);
      cli.document(answer.value);
      return EXIT.done;
    },
  });
}

type More = Partial<Pick<OptionRow<never>, "short" | "conflicts">>;

/** An option without a value. */
export const flag = (text: string, more: More = {}): OptionRow<boolean | undefined> => ({ text, ...more });

/** An option with a text, or with several if the value is like `<part...>`. */
export function option<V extends string>(value: V, text: string, more: More = {}) {
  type Value = V extends `${string}...>` ? readonly string[] : string;
  return { value, text, ...more } as OptionRow<Value | undefined>;
}

/** An option with a text that must be given. */
export const required = (value: string, text: string) =>
  ({ value, text, isRequired: true }) as OptionRow<string>;

export const choice = <const T extends string>(
  value: string,
  text: string,
  choices: readonly T[],
): OptionRow<T | undefined> => ({ value, text, choices });

/** An option that may be given several times. */
export const repeated = (value: string, text: string): OptionRow<readonly string[] | undefined> => ({
  value,
  text,
  read: (one, _name, before) => [...((before as string[] | undefined) ?? []), one],
});

/** An option whose value is checked. `what` completes "must be", like `a number from 0 to 65535`. */
export const checked = <T>(
  value: string,
  text: string,
  what: string,
  parse: (text: string) => T | undefined,
): OptionRow<T | undefined> => ({
  value,
  text,
  read(given, name) {
    const read = parse(given);
    if (read !== undefined) return read;
    throw new CommanderError(EXIT.usage, "usage", `${name} must be ${what}, got "${given}"`);
  },
});

/** An option whose value is a number of at least `least`. */
export const amount = (value: string, text: string, least: number) =>
  checked(value, text, `a number of at least ${least}`, (given) => {
    const number = Number(given);
    return given.trim() !== "" && Number.isFinite(number) && number >= least ? number : undefined;
  });

export const withDefault = <T>(row: OptionRow<T>, fallback: Exclude<T, undefined>) =>
  ({ ...row, fallback }) as OptionRow<Exclude<T, undefined>>;

/** The option `--limit` of a list. */
export const limit = (fallback: number, what = "rows") =>
  withDefault(amount("<n>", `Show at most this many ${what}`, 1), fallback);

/** Matches the key of an option that forbids something: `noStart`. */
const NO = /^no([A-Z].*)$/;

function optionFrom(key: string, row: OptionRow<unknown>): Option {
  const { text, value = "", short, choices, conflicts, isRequired = false, fallback, read } = row;
  const name = `--${key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
  const made = new Option([short, `${name} ${value}`.trim()].filter(Boolean).join(", "), text);
  if (choices !== undefined) made.choices(choices);
  if (read !== undefined) made.argParser((given, before) => read(given, name, before));
  if (fallback !== undefined) made.default(fallback);
  if (conflicts !== undefined) made.conflicts(conflicts);
  return made.makeOptionMandatory(isRequired);
}

function argumentFrom(form: string, row: string | ArgumentRow): Argument {
  const { text, choices, fallback } = typeof row === "string" ? ({ text: row } as ArgumentRow) : row;
  const made = new Argument(form, text);
  if (choices !== undefined) made.choices(choices);
  return fallback === undefined ? made : made.default(fallback);
}

export function inputOf(command: Command, { args = {}, options = {} }: Row): object {
  const given: Readonly<Record<string, unknown>> = command.opts();
  const read = (key: string): unknown => {
    const [, rest = ""] = NO.exec(key) ?? [];
    if (rest !== "") return given[rest.charAt(0).toLowerCase() + rest.slice(1)] === false;
    return given[key] === false ? undefined : given[key];
  };
  const names = Object.keys(args).map((form) => form.replaceAll(/[<>[\].]/g, ""));
  return optional(
    Object.fromEntries([
      ...Object.keys(options).map((key) => [key, read(key)]),
      ...names.map((name, at) => [name, command.processedArgs[at]]),
    ]),
  );
}

/** Adds commands to a program or a group. `on`: sets what a command does. */
export function addCommands(
  parent: Command,
  commands: Commands,
  on: (command: Command, row: Row) => void,
): void {
  for (const [name, row] of Object.entries(commands)) {
    if ("commands" in row) {
      const group = parent.command(name).description(row.summary);
      addCommands(group, row.commands, on);
      group.helpCommand("help [command]", "Show the help of a command");
    } else {
      const isDefault = row.isDefault === true;
      const summary = isDefault ? `${row.summary} (default)` : row.summary;
      const command = parent.command(name, { isDefault }).description(summary);
      for (const [form, one] of Object.entries(row.args ?? {})) command.addArgument(argumentFrom(form, one));
      for (const [key, one] of Object.entries(row.options ?? {})) command.addOption(optionFrom(key, one));
      on(command, row);
    }
  }
}
