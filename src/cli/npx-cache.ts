// Refuses to write the path of a program that may vanish: a copy in the cache of npx.

import { type Failure, fail } from "../core/shapes/errors.ts";
import type { Cli } from "./cli.ts";

/** Returns the failure if this program is such a copy. `then`: the command to repeat once it is installed. */
export function inNpxCache({ parts }: Cli, then: string): Failure | undefined {
  if (!/[\\/]_npx[\\/]/.test(parts.machine.launcher.script)) return undefined;
  return fail("invalid_argument", "this Parley is in the cache of npx, which npm may empty at any time", {
    hint: `Install it first: npm install --global parley-gateway. Then: ${then}`,
  });
}
