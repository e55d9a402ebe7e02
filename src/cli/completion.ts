// Generates completion scripts for bash, zsh and fish from the declared commands, options and choices.
// A script contains all the data it needs: completing a word starts no program and needs no gateway.

import type { Command } from "commander";
import { inQuotes } from "./shell-words.ts";

/** A command and the words that may follow it. */
interface CommandNode {
  /** Names of the command, like `sessions list`. Empty for the program itself. */
  readonly path: string;
  readonly commands: readonly Offer[];
  readonly options: readonly OptionOffer[];
  /** Valid values of the command's arguments. */
  readonly values: readonly string[];
  /** True if one of the command's arguments is a file or a directory. */
  readonly takesFiles: boolean;
}

interface Offer {
  readonly word: string;
  readonly text: string;
}

interface OptionOffer extends Offer {
  /** Long and short form of the option. */
  readonly flags: readonly string[];
  /** Valid values of the option, `"files"` for a path, or `"any"`. Absent if the option takes no value. */
  readonly value?: readonly string[] | "files" | "any";
}

const FILE = /^(file|dir|folder|path)$/;

function optionsOf(command: Command): OptionOffer[] {
  return command.options
    .filter(({ hidden }) => !hidden)
    .map(({ long, short, flags, description, required, optional, argChoices }) => {
      const named = /<([^>]+)>/.exec(flags)?.[1] ?? "";
      const value = argChoices ?? (FILE.test(named) ? "files" : "any");
      const word = long ?? short ?? "";
      const each = [long, short].filter((flag) => typeof flag === "string");
      return { word, text: description, flags: each, ...(required || optional ? { value } : {}) };
    });
}

function commandNodes(program: Command): CommandNode[] {
  const nodes: CommandNode[] = [];
  const visit = (command: Command, path: string): void => {
    // The subcommand that a group runs if none is named.
    const name = (command as { _defaultCommandName?: string })._defaultCommandName;
    const standIn = command.commands.find((one) => one.name() === name);
    const own = [...optionsOf(command), ...(standIn === undefined ? [] : optionsOf(standIn))];
    const { registeredArguments } = command;
    nodes.push({
      path,
      commands: command.commands.map((one) => ({ word: one.name(), text: one.description() })),
      options: path === "" ? [] : own,
      values: registeredArguments.flatMap(({ argChoices }) => argChoices ?? []),
      takesFiles: registeredArguments.some((one) => FILE.test(one.name())),
    });
    for (const one of command.commands) visit(one, path === "" ? one.name() : `${path} ${one.name()}`);
  };
  visit(program, "");
  return nodes;
}

interface Parts {
  readonly nodes: readonly CommandNode[];
  /** The options of `parley` itself, which every command accepts. */
  readonly global: readonly OptionOffer[];
}

const HELP: OptionOffer = { word: "--help", text: "Show help", flags: ["--help", "-h"] };

/**
 * Returns the `case` branches (bash, zsh) for a word before the cursor: a subcommand, or an option that takes
 * a value.
 */
function stepLines({ nodes, global }: Parts): string[] {
  const takes = (options: readonly OptionOffer[]) => options.filter(({ value }) => value !== undefined);
  const patterns = (path: string, { flags }: OptionOffer) =>
    flags.map((flag) => `${path}${inQuotes(`:${flag}`)}`).join("|");
  const lines = takes(global).map((one) => `${patterns("*", one)}) need=${inQuotes(`:${one.word}`)};;`);
  for (const { path, options, commands } of nodes) {
    const at = path === "" ? "" : inQuotes(path);
    for (const one of takes(options))
      lines.push(`${patterns(at, one)}) need=${inQuotes(`${path}:${one.word}`)};;`);
    for (const one of commands) {
      const below = path === "" ? one.word : `${path} ${one.word}`;
      lines.push(`${inQuotes(`${path}:${one.word}`)}) at=${inQuotes(below)};;`);
    }
  }
  return lines;
}

const FILES = "files=1";

/** Returns the `case` branches (bash, zsh) that list the candidates at the cursor. */
function offerLines({ nodes, global }: Parts): string[] {
  const set = (value: OptionOffer["value"]): string =>
    value === "files"
      ? FILES
      : value === "any" || value === undefined
        ? ":"
        : `offers=${inQuotes(value.join(" "))}`;
  const everywhere = [...global, HELP].map((one) => one.word);
  const lines = global
    .filter(({ value }) => value !== undefined)
    .map((one) => `${inQuotes(`:${one.word}`)}) ${set(one.value)};;`);
  for (const { path, options, commands, values, takesFiles } of nodes) {
    for (const one of options)
      if (one.value !== undefined) lines.push(`${inQuotes(`${path}:${one.word}`)}) ${set(one.value)};;`);
    const words = [...commands.map((one) => one.word), ...values].join(" ");
    const flags = [...new Set([...options.map((one) => one.word), ...everywhere])].join(" ");
    const also = takesFiles ? `; ${FILES}` : "";
    lines.push(`${inQuotes(path)}) offers=${inQuotes(words)}; flags=${inQuotes(flags)}${also};;`);
  }
  return lines;
}

/** Returns shell code for bash and zsh that finds the candidates for the word at the cursor. */
function walk(parts: Parts): string {
  const indent = (lines: readonly string[]) => lines.map((line) => `      ${line}`).join("\n");
  return `# The words before the cursor are given; sets offers, flags and files.
_parley_look() {
  local at='' need='' one
  offers='' flags='' files=''
  for one in "$@"; do
    if [ -n "$need" ]; then need=''; continue; fi
    case "$at:$one" in
${indent(stepLines(parts))}
    esac
  done
  case "\${need:-$at}" in
${indent(offerLines(parts))}
  esac
}
`;
}

function bashScript(parts: Parts): string {
  return `# Completion of parley for bash. In ~/.bashrc: source <(parley completion bash)
${walk(parts)}
_parley() {
  local offers flags files cur=\${COMP_WORDS[COMP_CWORD]} last=$COMP_CWORD
  # bash splits "--by=agent" into three words.
  if [ "$cur" = '=' ]; then cur=''; elif [ "\${COMP_WORDS[last-1]}" = '=' ]; then last=$((last - 1)); fi
  local before=() one
  for one in "\${COMP_WORDS[@]:1:last-1}"; do [ "$one" = '=' ] || before+=("$one"); done
  _parley_look "\${before[@]}"
  case $cur in -*) [ -z "$flags" ] || offers=$flags;; esac
  COMPREPLY=($(compgen -W "$offers" -- "$cur"))
  if [ -n "$files" ] && [ \${#COMPREPLY[@]} -eq 0 ]; then
    compopt -o filenames 2>/dev/null
    local IFS=$'\\n'
    COMPREPLY=($(compgen -f -- "$cur"))
  fi
}
complete -F _parley parley
`;
}

function zshScript(parts: Parts): string {
  return `#compdef parley
# Completion of parley for zsh. In ~/.zshrc, after compinit: source <(parley completion zsh)
${walk(parts)}
_parley() {
  local offers flags files
  _parley_look "\${(@)words[2,CURRENT-1]}"
  [[ \${words[CURRENT]} == -* && -n $flags ]] && offers=$flags
  [[ -n $offers ]] && compadd -- \${(s: :)offers}
  [[ -n $files ]] && _files
  return 0
}
if [ "$funcstack[1]" = _parley ]; then _parley "$@"; else compdef _parley parley; fi
`;
}

/** Quotes a word for fish. */
const fishWord = (text: string): string => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;

function fishScript({ nodes, global }: Parts): string {
  const takers = global.map((one): readonly [string, OptionOffer] => ["*", one]);
  for (const { path, options } of nodes) takers.push(...options.map((one) => [path, one] as const));
  const needs = takers.flatMap(([path, { flags, value }]) =>
    value === undefined ? [] : flags.map((flag) => fishWord(`${path}:${flag}`)),
  );
  const below = nodes.flatMap(({ path, commands }) => commands.map((one) => fishWord(`${path}:${one.word}`)));
  const option = (when: string, { flags, text, value }: OptionOffer): string => {
    const names = flags.map((flag) =>
      flag.startsWith("--") ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`,
    );
    const takes = value === undefined ? "" : value === "files" ? " -r -F" : " -x";
    const list = Array.isArray(value) ? ` -a ${fishWord(value.join(" "))}` : "";
    return `complete -c parley${when} ${names.join(" ")}${takes}${list} -d ${fishWord(text)}`;
  };
  const lines = [...global, HELP].map((one) => option("", one));
  for (const { path, commands, options, values, takesFiles } of nodes) {
    const when = ` -n ${fishWord(`__parley_at ${fishWord(path)}`)}`;
    for (const one of commands)
      lines.push(`complete -c parley${when} -a ${fishWord(one.word)} -d ${fishWord(one.text)}`);
    for (const one of options) lines.push(option(when, one));
    if (values.length > 0) lines.push(`complete -c parley${when} -a ${fishWord(values.join(" "))}`);
    if (takesFiles) lines.push(`complete -c parley${when} -F`);
  }
  return `# Completion of parley for fish: parley completion fish > ~/.config/fish/completions/parley.fish
# Succeeds if the words before the cursor lead to this command.
function __parley_at
    set -l at ''
    set -l need ''
    for one in (commandline -opc)[2..-1]
        if test -n "$need"
            set need ''
            continue
        end
        switch "$at:$one"
            case ${needs.join(" ")}
                set need 1
            case ${below.join(" ")}
                set at (string trim -- "$at $one")
        end
    end
    test "$at" = "$argv[1]"
end
complete -c parley -f
${lines.join("\n")}
`;
}

export function completionScript(program: Command, shell: string): string {
  const parts = { nodes: commandNodes(program), global: optionsOf(program) };
  if (shell === "bash") return bashScript(parts);
  return shell === "zsh" ? zshScript(parts) : fishScript(parts);
}
