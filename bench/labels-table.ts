// Plays the attacks and the benign tasks of tests/labels/attacks.ts in each mode of `labels.mode`, and prints
// how many attacks were stopped and how many tasks were kept, as Markdown. An owner denies every question.

import { ATTACKS, BENIGN, MODES, play, type Scenario, SUITES } from "../tests/labels/attacks.ts";

const HEADS = MODES.map((mode) => `\`${mode}\``.replace("`ask`", "`ask`, denied"));

const lines = new Map<string, string[]>([...SUITES, "all"].map((suite) => [suite, []]));
const missed: string[] = [];

/** Returns the scenarios that succeed. */
async function successes(scenarios: readonly Scenario[], mode: (typeof MODES)[number]): Promise<Scenario[]> {
  const done: Scenario[] = [];
  for (const one of scenarios) if (await play(one, mode)) done.push(one);
  return done;
}

for (const mode of MODES) {
  const attacks = await successes(ATTACKS, mode);
  const tasks = await successes(BENIGN, mode);
  for (const [suite, cells] of lines) {
    const count = (scenarios: readonly Scenario[]): number =>
      scenarios.filter((one) => suite === "all" || one.suite === suite).length;
    cells.push(`${count(ATTACKS) - count(attacks)}/${count(ATTACKS)} · ${count(tasks)}/${count(BENIGN)}`);
  }
  if (mode === "ask") missed.push(...attacks.map(({ name }) => name));
}

console.log(`| attacks stopped · tasks kept | ${HEADS.join(" | ")} |`);
console.log(`|---|${MODES.map(() => "---|").join("")}`);
for (const [suite, cells] of lines) console.log(`| ${suite} | ${cells.join(" | ")} |`);
console.log(`\nNot stopped with \`ask\`: ${missed.join("; ")}.`);
process.exit(0);
