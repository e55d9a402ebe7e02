// Reads a bash command line as plain commands and their words, before bash sees it.
// AW1: a text is read only if bash splits it into the same words. Expansions, substitutions, groups,
//      background jobs, and redirections to files are not read.

/** A word of a command, as the program gets it. */
export interface Word {
  readonly text: string;
  /** True if bash may replace the word by file names. */
  readonly isPattern: boolean;
  /** True if bash may replace the word by file names, whose beginning could be an option. */
  readonly mayBecomeOption: boolean;
}

export type Commands =
  | { readonly kind: "read"; readonly commands: readonly (readonly Word[])[] }
  /** `why`: the end of a sentence that begins with "the command". */
  | { readonly kind: "unread"; readonly why: string };

/** Output that is discarded or joined to the other output. */
const HARMLESS_REDIRECTION = /(?:&?>>?[ \t]*\/dev\/null|>&[12])(?=[ \t\n;&|]|$)/y;
const CONTROL = /[^\P{Cc}\n\t]/u;
const NOT_ASCII = /[^\0-\x7f]/;
/** A dollar sign that bash leaves as it is, between double quotes. */
const LITERAL_DOLLAR = /\$(?=["| /)])/y;
const SEPARATOR = /&&|\|\||[;\n]|\|(?!&)/y;
const SPECIAL: ReadonlyMap<string, string> = new Map([
  ["$", "has an expansion or a substitution ($)"],
  ["`", "has a substitution (`)"],
  ["<", "has a redirection (<)"],
  [">", "has a redirection to a file (>)"],
  ["&", "starts a background job (&)"],
  ["(", "has parentheses"],
  [")", "has parentheses"],
  ["{", "has braces"],
  ["}", "has braces"],
]);

class Reader {
  readonly #text: string;
  #at = 0;
  #commands: Word[][] = [[]];
  /** The word that is being read. Absent between words. */
  #word: { text: string; isQuoted: boolean; globAt: number | undefined } | undefined;
  #why: string | undefined;

  constructor(text: string) {
    this.#text = text;
  }

  read(): Commands {
    while (this.#at < this.#text.length && this.#why === undefined) this.#step();
    this.#endWord();
    if (this.#why !== undefined) return { kind: "unread", why: this.#why };
    return { kind: "read", commands: this.#commands.filter((words) => words.length > 0) };
  }

  /** Returns the text that matches here, and moves behind it. */
  #take(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0];
    this.#at += found?.length ?? 0;
    return found;
  }

  #add(text: string, isQuoted = false): void {
    this.#word ??= { text: "", isQuoted: false, globAt: undefined };
    this.#word.text += text;
    this.#word.isQuoted ||= isQuoted;
  }

  #endWord(): void {
    const word = this.#word;
    this.#word = undefined;
    if (word === undefined) return;
    const { text, globAt } = word;
    const mayBecomeOption = globAt !== undefined && (globAt === 0 || text.startsWith("-"));
    this.#commands.at(-1)?.push({ text, isPattern: globAt !== undefined, mayBecomeOption });
  }

  #step(): void {
    const char = this.#text[this.#at] ?? "";
    if (char === "'") this.#single();
    else if (char === '"') this.#double();
    else if (char === "\\") this.#escape();
    else if (!((char === ">" || char === "&") && this.#redirection())) this.#unquoted(char);
  }

  #unquoted(char: string): void {
    if (this.#take(SEPARATOR) !== undefined) {
      this.#endWord();
      this.#commands.push([]);
    } else if (char === " " || char === "\t") {
      this.#endWord();
      this.#at += 1;
    } else this.#plain(char);
  }

  #plain(char: string): void {
    this.#why = SPECIAL.get(char);
    if (char === "|") this.#why = "has a pipe that is not plain (|&)";
    if (char === "#" && this.#word === undefined) this.#why = "has a comment (#)";
    if (NOT_ASCII.test(char)) this.#why = "has a letter outside of ASCII and outside of quotes";
    if (this.#why !== undefined) return;
    if ("*?[".includes(char)) {
      this.#add("");
      if (this.#word !== undefined) this.#word.globAt ??= this.#word.text.length;
    }
    this.#add(char);
    this.#at += 1;
  }

  /** Skips a redirection to nowhere, with the number of the output before it. */
  #redirection(): boolean {
    const found = this.#take(HARMLESS_REDIRECTION);
    if (found === undefined) return false;
    const { text = "", isQuoted = false } = this.#word ?? {};
    if (found.startsWith(">") && !isQuoted && /^\d+$/.test(text)) this.#word = undefined;
    this.#endWord();
    return true;
  }

  #escape(): void {
    const next = this.#text[this.#at + 1];
    if (next === undefined) this.#why = "ends with a backslash";
    // Bash removes a backslash with the line break after it.
    else if (next !== "\n") this.#add(next, true);
    this.#at += 2;
  }

  #single(): void {
    const end = this.#text.indexOf("'", this.#at + 1);
    if (end < 0) this.#why = "has an open quote";
    else this.#add(this.#text.slice(this.#at + 1, end), true);
    this.#at = end + 1;
  }

  #double(): void {
    this.#at += 1;
    this.#add("", true);
    for (;;) {
      const char = this.#text[this.#at];
      if (char === '"') break;
      if (char === undefined) this.#why = "has an open quote";
      if (char === "`") this.#why = "has a substitution (`)";
      if (char === "$" && this.#take(LITERAL_DOLLAR) === undefined) this.#why = SPECIAL.get("$");
      if (this.#why !== undefined) return;
      if (char === "$") this.#add("$");
      else this.#quoted(char ?? "");
    }
    this.#at += 1;
  }

  #quoted(char: string): void {
    const next = this.#text[this.#at + 1] ?? "";
    const escapes = char === "\\" && '$`"\\\n'.includes(next) && next !== "";
    if (!escapes) this.#add(char);
    else if (next !== "\n") this.#add(next);
    this.#at += escapes ? 2 : 1;
  }
}

/** Reads a command line (AW1). */
export function readCommands(text: string): Commands {
  if (CONTROL.test(text)) return { kind: "unread", why: "has a control character" };
  // In some encodings a backslash or a quote can be a part of such a letter.
  if (NOT_ASCII.test(text) && text.includes("\\"))
    return { kind: "unread", why: "has a backslash and a letter outside of ASCII" };
  return new Reader(text).read();
}
