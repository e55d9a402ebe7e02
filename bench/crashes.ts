// As many rounds of crashes as one likes: `npm run crashes -- --rounds 200 [--seed S] [--story N]`; with
// `--cluster` of three processes over one PostgreSQL, started for it, or on the server of `--database URL`.
// Each story begins with an empty store and ends with all the checks; a line for each round, totals at the
// end. `--pause S`: in the first round of each story a process stands still for S seconds.
// A seed repeats the choices of the load and of the kills, not the moments at which they meet the processes.

import { parseArgs } from "node:util";
import { crashStory, type StoryCounts } from "../tests/kit/crash-story.ts";
import { FLEET_OPTIONS, fleetGround } from "./fleet-ground.ts";
import { machine } from "./measure.ts";

/** Rounds between two looks at everything. */
const STORY_ROUNDS = 20;

const { values } = parseArgs({
  options: {
    ...FLEET_OPTIONS,
    rounds: { type: "string", default: "200" },
    seed: { type: "string", default: String(Date.now()) },
    story: { type: "string", default: String(STORY_ROUNDS) },
    pause: { type: "string" },
  },
});

type Totals = Record<string, number>;

function add(totals: Totals, counts: StoryCounts): void {
  const { runs, ...numbers } = counts;
  const named = Object.entries(runs).map(([state, count]) => [`runs ${state}`, count] as const);
  for (const [name, count] of [...Object.entries(numbers), ...named]) {
    totals[name] = (totals[name] ?? 0) + Number(count);
  }
}

const rounds = Number(values.rounds);
const { ground, processes, end } = await fleetGround(values);
const from = performance.now();
const totals: Totals = {};
console.log(`${machine()}; ${ground.name}, ${processes} process(es), seed ${values.seed}`);
for (let done = 0, story = 1; done < rounds; story += 1) {
  const now = Math.min(Number(values.story), rounds - done);
  const seed = `${values.seed}-${story}`;
  const counts = await crashStory({
    seed,
    rounds: now,
    ground,
    processes,
    ...(values.pause === undefined ? {} : { pauseMs: Number(values.pause) * 1_000 }),
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
