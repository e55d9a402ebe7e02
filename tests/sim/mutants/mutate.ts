// Applies a mutant to the source of this process.

import { registerHooks } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Mutant } from "./mutant.ts";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));

/**
 * Applies a mutant to the source while it is loaded. The file on disk stays unchanged. Call it before the
 * source is imported: the process ends with code 3 if the file was never loaded.
 */
export function mutate(mutants: readonly Mutant[], name: string): void {
  const mutant = mutants.find((one) => one.name === name);
  if (mutant === undefined) throw new Error(`there is no mutant ${name}`);
  const path = join(ROOT, mutant.file);
  let done = false;
  registerHooks({
    load(url, context, next) {
      const loaded = next(url, context);
      if (!url.startsWith("file:") || fileURLToPath(url) !== path) return loaded;
      const source = String(loaded.source);
      if (!source.includes(mutant.from)) throw new Error(`${mutant.file} has no ${mutant.from}`);
      done = true;
      return { ...loaded, source: source.replace(mutant.from, () => mutant.to) };
    },
  });
  process.on("exit", () => {
    if (!done) process.exitCode = 3;
  });
}
