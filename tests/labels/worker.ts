// A process that plays stories of labels one after the other until one goes wrong, and prints that one as JSON.
// `from`, `count`: the seeds. `mutant`: a change of the source.

import { parseArgs } from "node:util";
import { mutate } from "../sim/mutants/mutate.ts";
import { LABEL_MUTANTS } from "./mutants.ts";

const { values } = parseArgs({
  options: {
    from: { type: "string", default: "1" },
    count: { type: "string", default: "1" },
    mutant: { type: "string" },
  },
});
if (values.mutant !== undefined) mutate(LABEL_MUTANTS, values.mutant);
// Imported here, after `mutate`, so that the mutant takes effect.
const { playStory } = await import("./story.ts");

const [from, count] = [Number(values.from), Number(values.count)];
for (let seed = from; seed < from + count; seed += 1) {
  const wrong = await playStory(seed);
  if (wrong === undefined) continue;
  process.stdout.write(`${JSON.stringify({ seed, wrong })}\n`);
  break;
}
process.exit();
