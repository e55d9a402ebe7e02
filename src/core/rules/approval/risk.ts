// Decides whether a command may do more than read files of its workspace.
// AR1: a command is not risky only if it can be read completely (AW1 of words.ts), each of its programs is
//      listed with these arguments (AP1 of programs.ts), and no word names a place outside of the workspace.

import { quoted } from "../../text/cut.ts";
import { READING_PROGRAMS } from "./programs.ts";
import { readCommands, type Word } from "./words.ts";

const SHOWN_MAX_CHARS = 80;
/** A path that begins at the root or at a home, also as the value of an option, or that goes up. */
const OUTSIDE = /(^|=|^-[A-Za-z]+)[~/]|:~|(^|[=/:]|^-[A-Za-z]+)\.\.(\/|$)/;

/** A pattern that stands for `..` in bash before 5.2. */
const MAY_GO_UP = /(^|[=/:]|^-[A-Za-z]+)\.[^/]*[*?[]/;

function isInside({ text, isPattern }: Word, folder: string): boolean {
  if (isPattern && MAY_GO_UP.test(text)) return false;
  if (text === "/dev/null" || !OUTSIDE.test(text)) return true;
  if (folder === "" || text.split("/").includes("..")) return false;
  return text === folder || text.startsWith(`${folder}/`);
}

function riskOfCommand([first, ...args]: readonly Word[], folder: string): string | undefined {
  const name = first?.text ?? "";
  const check = READING_PROGRAMS.get(name);
  if (check === undefined)
    return `${quoted(name, SHOWN_MAX_CHARS)} is not on the list of programs that only read`;
  const outside = args.find((word) => !isInside(word, folder));
  if (outside === undefined) {
    const why = check(args);
    return why === undefined ? undefined : `${name}: ${why}`;
  }
  return `${quoted(outside.text, SHOWN_MAX_CHARS)} may be outside of the workspace`;
}

/** Returns why a command is risky, or undefined if it only reads in its workspace `folder` (AR1). */
export function riskOf(command: string, folder: string): string | undefined {
  const read = readCommands(command);
  if (read.kind === "unread") return `the command ${read.why}`;
  for (const words of read.commands) {
    const risk = riskOfCommand(words, folder);
    if (risk !== undefined) return risk;
  }
  return undefined;
}
