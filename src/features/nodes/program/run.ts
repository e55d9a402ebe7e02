// Runs this machine as a node of a gateway.

import { join } from "node:path";
import { findAddress } from "../../../cli/address.ts";
import { type Cli, stopOnSignals } from "../../../cli/cli.ts";
import { safeLine } from "../../../core/text/safe-text.ts";
import { execPatternProblem } from "../exec-patterns.ts";
import { nodeCommands } from "./commands.ts";
import { nodeIdentity } from "./identity.ts";
import { NodeProgram } from "./program.ts";

const ID_SHOWN_CHARS = 12;

interface RunOptions {
  readonly name?: string;
  readonly allowExec?: readonly string[];
  readonly cwd?: string;
  readonly key?: string;
}

export async function runNode(cli: Cli, options: RunOptions): Promise<number> {
  const { parts } = cli;
  const { allowExec = [], cwd = parts.home, name = parts.machine.hostName } = options;
  for (const pattern of allowExec) {
    const problem = execPatternProblem(pattern);
    if (problem === undefined) continue;
    return cli.misuse(`--allow-exec ${JSON.stringify(pattern)} ${problem}`);
  }
  const address = await findAddress(cli);
  if (!address.ok) return cli.fail(address);
  const key = await nodeIdentity(options.key ?? join(parts.home, ".parley", "node.json"));
  if (!key.ok) return cli.fail(key);
  const { platform, version } = parts.machine;
  const show = (text: string): void => cli.note(text);
  const commands = nodeCommands({ parts, allowExec, cwd, platform, show });
  const runs = allowExec.length === 0 ? "none (allow some with --allow-exec)" : allowExec.join(", ");
  cli.note(safeLine(`Node "${name}" (${key.value.id.slice(0, ID_SHOWN_CHARS)}). Allowed programs: ${runs}.`));
  using stop = stopOnSignals(parts);
  const known = { cli, address: address.value, key: key.value, name, version, commands };
  return await new NodeProgram({ ...known, stop: stop.signal }).run();
}
