// Parses a document: its commands in order, and the output that it shows. PG1: commands follow the rules of a
// shell: continued lines, open quotes and here-documents. PG2: a ```text block directly after a ```sh block
// is the output. PG3: a ```chat block is a conversation on a phone (phone.ts).

import { optional } from "../../src/core/optional.ts";

export interface Command {
  /** The command without its comment. */
  readonly text: string;
  /** The exit code in the command's comment. Default: 0. */
  readonly code: number;
  readonly line: number;
}

export interface Step {
  readonly commands: readonly Command[];
  /** The output lines in the document. Undefined if the document shows no output. */
  readonly shown?: readonly string[];
  /** The lines of a conversation on a phone; such a step has no commands. */
  readonly chat?: readonly string[];
  readonly line: number;
}

export interface Page {
  readonly steps: readonly Step[];
  /** Programs and configurations in the document, by language. */
  readonly blocks: readonly Block[];
  /** Line numbers of output blocks without commands before them. */
  readonly stray: readonly number[];
}

export interface Block {
  readonly language: string;
  readonly text: string;
  readonly line: number;
}

function fences(text: string): { block: Block; endsAt: number }[] {
  const lines = text.split("\n");
  const found: { block: Block; endsAt: number }[] = [];
  for (let at = 0; at < lines.length; at += 1) {
    const opened = /^( *)```(\w*)/.exec(lines[at] ?? "");
    if (opened === null) continue;
    const [, indent = "", language = ""] = opened;
    const from = at;
    const inner: string[] = [];
    for (at += 1; at < lines.length && !(lines[at] ?? "").startsWith(`${indent}\`\`\``); at += 1)
      inner.push((lines[at] ?? "").slice(indent.length));
    found.push({ block: { language, text: `${inner.join("\n")}\n`, line: from + 1 }, endsAt: at });
  }
  return found;
}

/** Returns the text before a comment, and true if a quote is open at its end. */
function scan(text: string): { bare: string; comment: string; isOpen: boolean } {
  let quote = "";
  for (let at = 0; at < text.length; at += 1) {
    const sign = text[at] ?? "";
    if (quote !== "") {
      if (sign === "\\" && quote === '"') at += 1;
      else if (sign === quote) quote = "";
    } else if (sign === "'" || sign === '"') quote = sign;
    else if (sign === "\\") at += 1;
    else if (sign === "#" && (at === 0 || /\s/.test(text[at - 1] ?? "")))
      return { bare: text.slice(0, at).trimEnd(), comment: text.slice(at), isOpen: false };
  }
  return { bare: text.trimEnd(), comment: "", isOpen: quote !== "" };
}

function commandsOf({ text, line }: Block): Command[] {
  const lines = text.split("\n");
  const commands: Command[] = [];
  for (let at = 0; at < lines.length; at += 1) {
    const first = at;
    let whole = lines[at] ?? "";
    const next = (): string => lines[++at] ?? "";
    while (at < lines.length - 1 && (whole.endsWith("\\") || scan(whole).isOpen)) whole += `\n${next()}`;
    const { bare, comment } = scan(whole);
    let command = bare;
    const end = /<<-?\s*'?(\w+)'?/.exec(bare)?.[1];
    if (end !== undefined) {
      do command += `\n${next()}`;
      while (lines[at] !== end && at < lines.length);
    }
    if (command.trim() === "") continue;
    const code = Number(/exit code (\d+)/.exec(comment)?.[1] ?? 0);
    commands.push({ text: command, code, line: line + first + 1 });
  }
  return commands;
}

export function readPage(text: string): Page {
  const found = fences(text);
  const lines = text.split("\n");
  const steps: Step[] = [];
  const stray: number[] = [];
  const used = new Set<number>();
  for (const [at, { block, endsAt }] of found.entries()) {
    if (block.language === "text" && !used.has(at)) stray.push(block.line);
    if (block.language === "chat")
      steps.push({ commands: [], chat: block.text.trimEnd().split("\n"), line: block.line });
    if (block.language !== "sh") continue;
    const next = found[at + 1];
    const follows =
      next?.block.language === "text" &&
      lines.slice(endsAt + 1, next.block.line - 1).every((line) => line.trim() === "");
    if (follows) used.add(at + 1);
    const shown = follows ? next.block.text.trimEnd().split("\n") : undefined;
    steps.push({ commands: commandsOf(block), line: block.line, ...optional({ shown }) });
  }
  return { steps, stray, blocks: found.map(({ block }) => block) };
}

/** Returns the commands in sentences and tables. */
export function inlineCommands(text: string): string[] {
  const prose = text.replace(/^( *)```[\s\S]*?^\1```/gm, "");
  return [...prose.matchAll(/`([^`\n]+)`/g)].map(([, code = ""]) => code);
}
