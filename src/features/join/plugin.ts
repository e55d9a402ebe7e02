// Lets a coding agent join by its plugin: the plugin is the same in each folder, so its MCP server joins the
// folder in which it starts, and changes no files there. The plugin's hooks run the Parley that its MCP
// server runs, without npx, which would ask the registry before each prompt.

import { join } from "node:path";
import type { Cli } from "../../cli/cli.ts";
import { shellLine } from "../../cli/shell-words.ts";
import { replaceFile } from "../../config/replace-file.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import { PROGRAM, type ProgramId } from "./programs.ts";
import { handleFor, isOfPlugin, joinedFolder, recordFor, writeRecord } from "./record.ts";
import { makeTokens } from "./tokens.ts";

/** Name of the script that a plugin's hooks run, in the folder of the records. */
const HOOK_FILE = "hook.sh";

/** The arguments of a plugin's MCP server, as they appear in the command line of each process in between. */
export const mcpLine = (id: ProgramId): string => `mcp --plugin ${id}`;

/** Joins the current folder, unless it has been joined. Returns the program's name there. */
export async function joinByPlugin(cli: Cli, id: ProgramId): Promise<Result<string>> {
  const { parts } = cli;
  const known = recordFor(parts, id);
  if (known !== undefined && !isOfPlugin(known)) {
    const { name } = PROGRAM[id];
    return fail(
      "invalid_argument",
      `${name} has joined in this folder as ${known.handle}, without the plugin`,
      {
        hint: `To use the plugin here: npx parley-gateway leave ${id}`,
      },
    );
  }
  // Make new tokens at each start, because the gateway's token may have changed since the last one.
  const handle = known?.handle ?? handleFor(id, parts.folder);
  const tokens = await makeTokens(cli, handle, known?.series);
  if (!tokens.ok) return tokens;
  const { folder } = parts;
  writeRecord(parts, { ...known, handle, program: id, folder, changes: [], ...tokens.value });
  const { node, script } = parts.machine.launcher;
  const line = shellLine([node, script, "inbox", "--hook"]);
  replaceFile(join(joinedFolder(parts.home), HOOK_FILE), `exec ${line} "$1"\n`);
  return ok(handle);
}
