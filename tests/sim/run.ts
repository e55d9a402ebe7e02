// Command line of the simulation (docs/internals/SIMULATION.md): `npm run sim -- --seeds 100000`.

import { availableParallelism } from "node:os";
import { optional } from "../../src/core/optional.ts";
import { orEnd, readNumber, typed } from "../kit/typed.ts";
import type { TellingLine } from "./checks/telling-line.ts";
import { MUTANTS } from "./mutants.ts";
import { tellAll } from "./workers.ts";

const USAGE = `npm run sim -- [options]
  --seeds N      tell so many stories (default 1000)
  --from S       from this seed on (default 1)
  --seed X       tell one story, with all that happens in it
  --workers W    processes side by side (default: one a core)
  --mutant NAME  with this change of the source; "list" names them, "all" tries each in turn`;

const PROGRESS_EVERY = 500;

const values = typed(USAGE, {
  seeds: { type: "string", default: "1000" },
  from: { type: "string", default: "1" },
  seed: { type: "string" },
  workers: { type: "string", default: String(availableParallelism()) },
  mutant: { type: "string" },
});
const numbers = orEnd(USAGE, () => ({
  count: readNumber("--seeds", values.seeds, 1),
  from: readNumber("--from", values.from, 0),
  workers: readNumber("--workers", values.workers, 1),
  ...(values.seed === undefined ? {} : { seed: readNumber("--seed", values.seed, 0) }),
}));

const say = (text: string): void => {
  process.stdout.write(`${text}\n`);
};

/** Prints one story, line by line. */
async function tellOne(seed: number, mutant: string | undefined): Promise<TellingLine | undefined> {
  let told: TellingLine | undefined;
  const hear = (line: TellingLine): void => {
    told = line;
  };
  await tellAll({ from: seed, count: 1, trace: true, ...optional({ mutant }) }, hear);
  for (const line of told?.trace ?? []) say(line);
  say(told?.wrong === undefined ? `seed ${seed}: nothing wrong` : `SEED ${seed}: ${told.wrong}`);
  say(`${told?.runs} runs, ${told?.moments} moments, mark ${told?.mark}`);
  return told;
}

async function tellMany(from: number, count: number, mutant: string | undefined): Promise<boolean> {
  const begun = performance.now();
  let [stories, runs] = [0, 0];
  const rate = (): string => {
    const seconds = (performance.now() - begun) / 1_000;
    return `${stories} stories, ${runs} runs, ${(stories / seconds).toFixed(1)} stories a second`;
  };
  const order = { from, count, workers: numbers.workers, ...optional({ mutant }) };
  const wrong = await tellAll(order, (line) => {
    stories += 1;
    runs += line.runs;
    if (stories % PROGRESS_EVERY === 0) say(rate());
  });
  say(rate());
  if (wrong === undefined) return true;
  if (mutant === undefined) await tellOne(wrong.seed, mutant);
  else say(`${mutant}: seed ${wrong.seed} finds ${wrong.wrong?.slice(0, 300)}`);
  return false;
}

async function tellMutants(from: number, count: number): Promise<boolean> {
  const missed: string[] = [];
  for (const { name } of MUTANTS) if (await tellMany(from, count, name)) missed.push(name);
  say(missed.length === 0 ? `all ${MUTANTS.length} are found` : `not found: ${missed.join(", ")}`);
  return missed.length === 0;
}

async function main(): Promise<boolean> {
  const { mutant } = values;
  const { from, count, seed } = numbers;
  if (mutant === "list") {
    for (const one of MUTANTS) say(`${one.name}: ${one.breaks}`);
    return true;
  }
  if (mutant === "all") return tellMutants(from, count);
  if (seed !== undefined) return (await tellOne(seed, mutant))?.wrong === undefined;
  const clean = await tellMany(from, count, mutant);
  return mutant === undefined ? clean : !clean;
}

process.exitCode = (await main()) ? 0 : 1;
