// Owns `parley completion`: prints the script that a shell reads.

import type { Command } from "commander";
import { type Cli, EXIT } from "../cli.ts";
import { completionScript } from "../completion.ts";
import type { Shell } from "../shells.ts";

/** For the commands of this program. Their parser has made sure that the shell is a known one. */
export function printCompletion(program: Command) {
  return async (cli: Cli, [named]: readonly string[]): Promise<number> => {
    const shell = named as Shell;
    const script = completionScript(program, shell);
    cli.write(script);
    cli.document({ ok: true, shell, script });
    return EXIT.done;
  };
}
