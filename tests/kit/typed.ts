// Parses the command lines of the programs that developers run by hand. After an invalid command line, the
// program prints a message and ends before it does anything.

import { type ParseArgsConfig, parseArgs } from "node:util";

/** An error that explains what is wrong with a command line. */
export class WrongUsage extends Error {}

type Known = NonNullable<ParseArgsConfig["options"]>;

const HELP = { help: { type: "boolean", default: false } } as const;

/** Parses the options, `--help` included. Throws `WrongUsage`. */
export function readTyped<const T extends Known>(
  args: readonly string[],
  known: T,
  allowPositionals = false,
) {
  try {
    return parseArgs({ args: [...args], options: { ...known, ...HELP }, allowPositionals });
  } catch (error) {
    const [what = ""] = (error as Error).message.split(". ");
    const names = Object.keys(known).map((name) => `--${name}`);
    throw new WrongUsage(`${what}; there are: ${names.join(", ")}`);
  }
}

/** Parses a number from the command line. Throws `WrongUsage`. */
export function readNumber(option: string, text: string, least: number): number {
  const value = text.trim() === "" ? Number.NaN : Number(text);
  if (value >= least && Number.isFinite(value)) return value;
  throw new WrongUsage(`${option} takes a number from ${least}, got ${JSON.stringify(text)}`);
}

/** Runs `read`. If it throws `WrongUsage`, prints the usage and exits. */
export function orEnd<T>(usage: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof WrongUsage)) throw error;
    process.stderr.write(`${error.message}\n\n${usage}\n`);
    process.exit(2);
  }
}

/** Returns the options of this process. With `--help`, prints the usage and exits. */
export function typed<const T extends Known>(usage: string, known: T) {
  const { values } = orEnd(usage, () => readTyped(process.argv.slice(2), known));
  if (!(values as { help: boolean }).help) return values;
  process.stdout.write(`${usage}\n`);
  process.exit(0);
}
