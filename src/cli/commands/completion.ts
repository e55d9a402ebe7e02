// Implements `parley completion`: prints a completion script.

import type { Command } from "commander";
import { type Cli, EXIT } from "../cli.ts";
import { completionScript } from "../completion.ts";
import type { Shell } from "../shells.ts";

/**
 * Returns the action that prints the script for `program`. The parser has already checked the name of the
 * shell.
 */
export function printCompletion(program: Command) {
  return async (cli: Cli, [named]: readonly string[]): Promise<number> => {
    const shell = named as Shell;
    const script = completionScript(program, shell);
    cli.write(script);
    cli.document({ ok: true, shell, script });
    return EXIT.done;
  };
}
