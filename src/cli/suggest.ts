// Suggests a command for an unknown word: first by its meaning ("kill" means "sessions stop"), then by its
// spelling.

import { nearestName } from "../core/text/nearest.ts";
import { added, PLATFORMS } from "../features.ts";

/** Words for which people look at the top level, by the command that does what they mean. */
const MEANINGS: Readonly<Record<string, string>> = {
  agents: "agent bot bots",
  "channels add": `channel ${Object.keys(PLATFORMS).join(" ")} connect`,
  "channels pair": "pair pairing",
  chat: "talk repl tui shell",
  "config check": "validate lint",
  deliveries: "outbox delivery",
  gateway: "start serve server up launch daemon restart",
  link: "open page ui web dashboard browser url login auth",
  logs: "log tail follow watch journal trace",
  models: "model provider providers llm key keys",
  permissions: "approve approval approvals allow deny permission",
  run: "ask exec query question prompt",
  send: "say message msg post tell",
  "sessions archive": "archive hide",
  "sessions delete": "delete remove rm del",
  "sessions export": "export download transcript",
  "sessions fork": "fork branch",
  "sessions history": "history messages read",
  "sessions instructions": "instructions instruct rules prompt system",
  "sessions list": "list ls ps session conversations chats",
  "sessions rename": "rename label title mv",
  "sessions reset": "reset clear new",
  "sessions show": "show describe",
  "sessions stop": "stop kill cancel abort halt interrupt end",
  "sessions tree": "tree subagents",
  status: "state info health ping stats top",
  "store backup": "backup dump save snapshot",
  "store restore": "restore",
  "tokens create": "token invite share",
  usage: "cost costs spend spending billing budget",
  "--version": "version",
};

/** Sets of words with one meaning, for the subcommands of a group. */
const SAME: readonly string[] = [
  "list ls all ps",
  "remove delete rm del uninstall unpair drop",
  "add create new",
  "stop kill cancel abort halt interrupt end",
  "show info get describe view status cat",
  "rename label title mv name",
  "history messages transcript log logs read",
  "approve allow accept yes",
  "reject deny refuse no",
  "run start trigger exec now invoke",
  "test check validate try",
  "update change edit set patch",
  "revoke remove delete rm",
  "reset clear",
  "restore unarchive undelete",
  "archive hide",
  "export download dump save",
  "fork branch copy",
  "install enable",
];

const COMMAND_OF: ReadonlyMap<string, string> = new Map(
  Object.entries<string>({ ...MEANINGS, ...added("commandWords") }).flatMap(([command, words]) =>
    words.split(" ").map((word) => [word, command]),
  ),
);

/** Returns the words of the table of meanings, with their commands. */
export const meanings = (): ReadonlyMap<string, string> => COMMAND_OF;

function sameIn(names: readonly string[], word: string): string | undefined {
  const sets = SAME.map((set) => set.split(" ")).filter((set) => set.includes(word));
  return names.find((name) => sets.some((set) => set.includes(name)));
}

/**
 * Returns the command that a word probably means. `names`: the commands of the group. `group`: name of the
 * group, "" for the program itself.
 */
export function suggestCommand(word: string, names: readonly string[], group: string): string | undefined {
  const lower = word.toLowerCase();
  if (group !== "") return sameIn(names, lower) ?? nearestName(lower, names);
  const meant = COMMAND_OF.get(lower);
  if (meant !== undefined) return meant;
  const nearest = nearestName(lower, [...names, ...COMMAND_OF.keys()]);
  return nearest === undefined ? undefined : (COMMAND_OF.get(nearest) ?? nearest);
}
