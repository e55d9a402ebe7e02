// Runs a target, which is a part of Parley with properties to check. First runs the target's corpus (stored
// inputs), then rounds of generated inputs until the time budget is used up.
// DR1: a failure is reported with the seed and path that repeat it, and with the input.
// DR2: besides violating its property, an input fails if it causes an unhandled rejection, an uncaught error,
//      a changed prototype, or a run that does not end.

import { readFileSync } from "node:fs";
import fc, { type RunDetails } from "fast-check";
import { type FuzzTarget, must, type Property } from "./target.ts";
import { startWatchdog, type Watchdog } from "./watchdog.ts";

/** Time limit of one asynchronous run. A watchdog process ends runs that block. */
const RUN_MAX_MS = 60_000;
/** Time limit for shrinking a failing input. */
const SHRINK_MAX_MS = 120_000;
const INPUT_SHOWN_CHARS = 3_000;

export interface Budget {
  /** Returns true if enough inputs have run and no further round should begin. */
  enough(runs: number): boolean;
  /** Seed of the first round; each later round adds one. */
  readonly seed: number;
  /** Runs only this input of the round, to repeat a failure. */
  readonly path?: string;
  /** Maximum number of inputs in one round. */
  readonly runsMax?: number;
}

export interface Report {
  readonly target: string;
  readonly runs: number;
  /** Number of corpus inputs that were tried. */
  readonly corpus: number;
  /** Description of the failure. Absent if no input failed. */
  readonly failure?: string;
}

const PROTOTYPES = [Object, Array, String, Number, Function, Promise, Map].map(
  (made) => made.prototype as object,
);

/** Returns the number of properties of each prototype that an input could have changed. */
function prototypeNames(): string {
  return PROTOTYPES.map((one) => Reflect.ownKeys(one).length).join(" ");
}

/** Errors that no property has caught. */
interface Strays {
  /** Throws the first error, if there is one. */
  refuse(): void;
  end(): void;
}

function watchStrays(): Strays {
  const strays: unknown[] = [];
  const note = (error: unknown): void => void strays.push(error);
  process.on("unhandledRejection", note);
  process.on("uncaughtException", note);
  const names = prototypeNames();
  return {
    refuse() {
      must(prototypeNames() === names, "a prototype that everything shares was changed");
      const [first] = strays.splice(0);
      if (first !== undefined) throw new Error("an error that nobody handled", { cause: first });
    },
    end() {
      process.off("unhandledRejection", note);
      process.off("uncaughtException", note);
    },
  };
}

/** Matches `<<ab x3>>` in a corpus, which means `ababab`, so that long inputs are short in the file. */
const REPEATED = /<<([\s\S]+?) x(\d+)>>/g;

function corpusOf(name: string): readonly unknown[] {
  const file = new URL(`./corpus/${name}.json`, import.meta.url);
  const longer = (value: unknown): unknown =>
    typeof value === "string"
      ? value.replace(REPEATED, (_, text, count) => text.repeat(Number(count)))
      : value;
  return JSON.parse(readFileSync(file, "utf8"), (_, value) => longer(value)) as unknown[];
}

function described(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause === undefined ? "" : `\n  because of: ${described(error.cause)}`;
  return `${error.stack ?? error.message}${cause}`;
}

function cut(text: string): string {
  return text.length > INPUT_SHOWN_CHARS
    ? `${text.slice(0, INPUT_SHOWN_CHARS)}… (${text.length} characters)`
    : text;
}

/** Formats a failure for the developer who fixes it. */
function told(target: string, details: RunDetails<unknown>): string {
  const { seed, counterexamplePath: path, counterexample, errorInstance, numShrinks, interrupted } = details;
  const [input] = (counterexample ?? []) as readonly unknown[];
  return [
    `${target} fails after ${details.numRuns} runs and ${numShrinks} steps of shrinking${interrupted ? ", cut short" : ""}.`,
    `Again: npm run fuzz -- --target ${target} --seed ${seed} --path "${path ?? ""}"`,
    `Input: ${cut(fc.stringify(input))}`,
    described(errorInstance),
  ].join("\n");
}

/** State that the rounds share. */
interface Driver {
  readonly target: FuzzTarget<unknown>;
  readonly watchdog: Watchdog;
  readonly strays: Strays;
}

/** Runs one input, and checks everything that must be true afterwards. */
async function tryOne(
  { watchdog, strays }: Driver,
  property: Property<unknown>,
  input: unknown,
): Promise<void> {
  watchdog.beat();
  await property.check(input);
  strays.refuse();
}

/**
 * Opens the property, runs `work` and closes the property. If both fail, only the failure of `work` is
 * reported.
 */
async function opened<T>(driver: Driver, work: (property: Property<unknown>) => Promise<T>): Promise<T> {
  const property = await driver.target.open();
  let done: T;
  try {
    done = await work(property);
  } catch (error) {
    await property.close?.().catch(() => undefined);
    throw error;
  }
  await property.close?.();
  await new Promise((resolve) => setImmediate(resolve));
  driver.strays.refuse();
  return done;
}

/** Runs the corpus. A failure names the input by its number. */
async function tryCorpus(driver: Driver, corpus: readonly unknown[]): Promise<void> {
  const { name } = driver.target;
  driver.watchdog.watch(`${name}, corpus/${name}.json`);
  await opened(driver, async (property) => {
    for (const [index, input] of corpus.entries()) {
      try {
        await tryOne(driver, property, input);
      } catch (error) {
        throw new Error(`corpus/${name}.json, input ${index}: ${cut(JSON.stringify(input))}`, {
          cause: error,
        });
      }
    }
  });
}

/** Runs one round of generated inputs. Returns the description of a failure, or undefined. */
async function tryRound(
  driver: Driver,
  round: { readonly runs: number; readonly seed: number; readonly path?: string | undefined },
): Promise<string | undefined> {
  const { target, watchdog } = driver;
  watchdog.watch(`${target.name}, seed ${round.seed}`);
  return opened(driver, async (property) => {
    const rule = fc.asyncProperty(target.inputs, (input) => tryOne(driver, property, input));
    const details = await fc.check(rule, {
      numRuns: round.runs,
      seed: round.seed,
      ...(round.path === undefined ? {} : { path: round.path, endOnFailure: true }),
      plugins: [fc.interruptAfterTimeLimit(RUN_MAX_MS + SHRINK_MAX_MS), fc.timeout(RUN_MAX_MS)],
    });
    return details.failed ? told(target.name, details) : undefined;
  });
}

/** Runs one target until its budget is used up or an input fails. */
export async function drive(target: FuzzTarget<unknown>, budget: Budget): Promise<Report> {
  const driver: Driver = { target, watchdog: startWatchdog(), strays: watchStrays() };
  const corpus = corpusOf(target.name);
  const report = { target: target.name, corpus: corpus.length };
  let runs = 0;
  try {
    await tryCorpus(driver, corpus);
    for (let round = 0; round === 0 || !budget.enough(runs); round += 1) {
      const count = Math.min(target.roundRuns, (budget.runsMax ?? Number.POSITIVE_INFINITY) - runs);
      // Seeds are signed 32-bit numbers.
      const seed = (budget.seed + round) | 0;
      const failure = await tryRound(driver, { runs: count, seed, path: budget.path });
      runs += count;
      if (failure !== undefined) return { ...report, runs, failure };
      if (budget.path !== undefined) break;
    }
    return { ...report, runs };
  } catch (error) {
    return { ...report, runs, failure: `${target.name}: ${described(error)}` };
  } finally {
    driver.watchdog.rest();
    driver.strays.end();
    await driver.watchdog.end();
  }
}
