// A process that replays the records in the given files, and prints a JSON line about each. `mutant`: a change
// of the source.

import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import type { ChainRecord } from "../../../src/core/shapes/record/chain.ts";
import { mutate } from "../../sim/mutants/mutate.ts";
import { REPLAY_MUTANTS } from "./mutants.ts";

const { values, positionals } = parseArgs({
  options: { mutant: { type: "string" } },
  allowPositionals: true,
});

if (values.mutant !== undefined) mutate(REPLAY_MUTANTS, values.mutant);
// Imported here, after `mutate`, so that the mutant takes effect.
const { replayChain } = await import("../../../src/features/replay/play/play.ts");

for (const file of positionals) {
  const replayed = await replayChain(JSON.parse(readFileSync(file, "utf8")) as ChainRecord);
  if (!replayed.ok) throw new Error(replayed.error);
  const { step, expected, got } = replayed.value.difference ?? {};
  process.stdout.write(`${JSON.stringify({ file, step, expected, got })}\n`);
}
