// Runs any number of crash rounds (tests/kit/crashes), grouped in stories. Each story begins with an empty
// store and ends with all checks. Prints a line for each round, and totals at the end. A seed repeats the
// random choices, but not the moments at which kills hit the processes.

import { optional } from "../src/core/optional.ts";
import { crashStory, type StoryCounts } from "../tests/kit/crashes/story.ts";
import { orEnd, readNumber, typed } from "../tests/kit/typed.ts";
import { FLEET_OPTIONS, FLEET_USAGE, fleetGround } from "./fleet-ground.ts";
import { machine } from "./measure.ts";

/** Number of rounds in a story. */
const STORY_ROUNDS = 20;

const USAGE = `npm run crashes -- [options]
  --rounds N      (default 200)
  --story N       rounds in a story (default ${STORY_ROUNDS})
  --seed S
  --pause S       suspend a process for S seconds in the first round of each story
${FLEET_USAGE}`;

const values = typed(USAGE, {
  rounds: { type: "string", default: "200" },
  seed: { type: "string", default: String(Date.now()) },
  story: { type: "string", default: String(STORY_ROUNDS) },
  pause: { type: "string" },
  ...FLEET_OPTIONS,
});
const numbers = orEnd(USAGE, () => ({
  rounds: readNumber("--rounds", values.rounds, 1),
  storyRounds: readNumber("--story", values.story, 1),
  ...(values.pause === undefined ? {} : { pauseMs: readNumber("--pause", values.pause, 0) * 1_000 }),
  processes: values.processes === undefined ? undefined : readNumber("--processes", values.processes, 1),
}));

type Totals = Record<string, number>;

function add(totals: Totals, counts: StoryCounts): void {
  const { runs, ...numbers } = counts;
  const named = Object.entries(runs).map(([state, count]) => [`runs ${state}`, count] as const);
  for (const [name, count] of [...Object.entries(numbers), ...named]) {
    totals[name] = (totals[name] ?? 0) + Number(count);
  }
}

const { ground, processes, end } = await fleetGround({ ...values, processes: numbers.processes });
const { rounds, storyRounds, pauseMs } = numbers;
const from = performance.now();
const totals: Totals = {};
console.log(`${machine()}; ${ground.name}, ${processes} process(es), seed ${values.seed}`);
for (let done = 0, story = 1; done < rounds; story += 1) {
  const now = Math.min(storyRounds, rounds - done);
  const seed = `${values.seed}-${story}`;
  const counts = await crashStory({
    seed,
    rounds: now,
    ground,
    processes,
    ...optional({ pauseMs }),
    report: (line) => console.log(line),
  });
  add(totals, counts);
  done += now;
  console.log(`story ${story} (seed ${seed}), ${done} rounds: ${JSON.stringify(counts)}`);
}
const seconds = Math.round((performance.now() - from) / 1_000);
console.log(`seed ${values.seed}: ${rounds} rounds in ${seconds} s, nothing lost, nothing twice`);
console.log(JSON.stringify(totals));
await end();
process.exit(0);
