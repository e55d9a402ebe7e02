// A process that plays stories one after the other and prints a JSON line about each. `from`, `step`,
// `count`: the seeds. `mutant`: a change of the source. `trace`: prints all events. `cluster`: stories of
// several processes over one store.

import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { TellingLine } from "./checks/telling-line.ts";
import { mutate } from "./mutants/mutate.ts";
import { CLUSTER_MUTANTS, MUTANTS } from "./mutants.ts";

const { values } = parseArgs({
  options: {
    from: { type: "string", default: "1" },
    step: { type: "string", default: "1" },
    count: { type: "string", default: "1" },
    mutant: { type: "string" },
    trace: { type: "boolean", default: false },
    cluster: { type: "boolean", default: false },
  },
});

if (values.mutant !== undefined) mutate([...MUTANTS, ...CLUSTER_MUTANTS], values.mutant);
// Imported here, after `mutate`, so that the mutant takes effect.
const { tell, noteUnhandled } = await import("./checks/tell.ts");
const { tellCluster } = await import("./cluster/cluster.ts");
const { sqliteDatabases } = await import("./world/sqlite-database.ts");
const { METHODS } = await import("../../src/contract/methods.ts");
const { checkParams } = await import("../../src/contract/check.ts");
const { acceptedBy, TOOLS } = await import("../../src/contract/tools.ts");
const { readArguments } = await import("../../src/tools/arguments.ts");

process.on("unhandledRejection", (error) => noteUnhandled(error));
// Compiles all schemas before the first story, so that this does not change the timing of one story.
for (const name of Object.keys(METHODS)) await checkParams(name as keyof typeof METHODS, {});
for (const name of Object.keys(TOOLS)) await readArguments(acceptedBy(name as keyof typeof TOOLS), {});

// Stored now, because a worker that finds a failure is ended at once.
flushCompileCache();

const memory = "/dev/shm";
const parent = mkdtempSync(join(existsSync(memory) ? memory : tmpdir(), "parley-sim-"));
process.on("exit", () => rmSync(parent, { recursive: true, force: true }));
const newDatabase = sqliteDatabases(join(parent, "empty"));
const [from, step, count] = [Number(values.from), Number(values.step), Number(values.count)];
for (let at = 0; at < count; at += 1) {
  const seed = from + at * step;
  const told = await (values.cluster ? tellCluster(seed, parent) : tell(seed, newDatabase, parent));
  const { violation, trace, ...facts } = told;
  const line: TellingLine = {
    ...facts,
    ...(violation === undefined ? {} : { wrong: violation.message, invariant: violation.invariant }),
    ...(values.trace ? { trace } : {}),
  };
  process.stdout.write(`${JSON.stringify(line)}\n`);
  if (violation !== undefined) break;
}
