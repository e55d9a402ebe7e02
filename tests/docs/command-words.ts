// Checks documented commands of Parley against the program's help: their names and options.

import { run } from "../cli/kit.ts";

interface Help {
  readonly commands: readonly string[];
  readonly options: readonly string[];
}

const known = new Map<string, Promise<Help>>();

function helpOf(home: string, path: readonly string[]): Promise<Help> {
  const name = path.join(" ");
  const help = known.get(name) ?? readHelp(home, path);
  known.set(name, help);
  return help;
}

async function readHelp(home: string, path: readonly string[]): Promise<Help> {
  const { out } = await run(home, [...path, "--help"]);
  const [, below = ""] = out.split(/^Commands:$/m);
  const blocks = below.split(/^ {2}(?=[a-z])/m).slice(1);
  const commands = blocks.map((block) => /^[\w-]+/.exec(block)?.[0] ?? "");
  const options = [...out.matchAll(/(?<=[\s,])(--?[A-Za-z][\w-]*)/g)].map(([, name = ""]) => name);
  const atDefault = blocks.findIndex((block) => /\(default\)\s*$/.test(block));
  const usual = atDefault < 0 ? undefined : await helpOf(home, [...path, commands[atDefault] ?? ""]);
  return { commands, options: [...options, ...(usual?.options ?? [])] };
}

/**
 * Returns the problem with the words after `parley`, or undefined. Values and placeholders are not
 * checked.
 */
export async function usageProblem(home: string, words: readonly string[]): Promise<string | undefined> {
  const global = await helpOf(home, []);
  const path: string[] = [];
  let help = global;
  for (const [at, word] of words.entries()) {
    if (word.startsWith("-") && !/^-\d/.test(word)) {
      const name = word.replace(/=.*$/, "");
      if (!help.options.includes(name) && !global.options.includes(name))
        return `${path.join(" ")} has no option ${name}`;
    } else if (help.commands.length > 0 && /^[a-z][\w-]*$/.test(word)) {
      // The word is the value of the option before it.
      if (words[at - 1]?.startsWith("-") === true && !help.commands.includes(word)) continue;
      if (word === "help") return undefined;
      if (!help.commands.includes(word)) return `there is no ${[...path, word].join(" ")}`;
      path.push(word);
      help = await helpOf(home, path);
    }
  }
  return undefined;
}
