// Owns the look at a store directory from outside, for the doctor: what is there, and who holds it.
// Changes nothing.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { lockStore } from "./lock.ts";
import { StoreProblem } from "./problems.ts";
import { STORE_FILE } from "./sqlite.ts";

export interface StoreLook {
  readonly state: "absent" | "free" | "in_use" | "problem";
  /** For people: what was found, and the way out of a problem. */
  readonly text: string;
}

/** What is the matter with a store directory. Holds its lock for a moment if nobody does. */
export function inspectStoreDir(dir: string): StoreLook {
  const file = join(dir, STORE_FILE);
  if (!existsSync(file)) return { state: "absent", text: `${file} is made at the first start` };
  try {
    lockStore(dir)();
    return { state: "free", text: `${file} is there, and no gateway holds it` };
  } catch (error) {
    if (!(error instanceof StoreProblem)) throw error;
    if (error.problem !== "in_use") return { state: "problem", text: error.message };
    // That a gateway runs is nothing to be put right.
    return { state: "in_use", text: error.message.replace(error.wayOut, "").trim() };
  }
}
