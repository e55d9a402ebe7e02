// Colours code: splits it into spans with a class for each kind of token. This file is loaded when the first
// code block with a known language is shown.
// HL1: all spans together are exactly the code, and the code is inserted only as text.

import { type ParseOptions, parse } from "sugar-high/core";
import * as c from "sugar-high/lang/c";
import * as diff from "sugar-high/lang/diff";
import * as go from "sugar-high/lang/go";
import * as html from "sugar-high/lang/html";
import * as javascript from "sugar-high/lang/javascript";
import * as json from "sugar-high/lang/json";
import * as python from "sugar-high/lang/python";
import * as rust from "sugar-high/lang/rust";
import * as shell from "sugar-high/lang/shell";
import * as typescript from "sugar-high/lang/typescript";
import * as yaml from "sugar-high/lang/yaml";

const COLOURED = ["keyword", "string", "comment", "class", "entity"];
/** Switches off what only JavaScript has. */
const PLAIN: ParseOptions = { jsx: false, regex: false, templateStrings: false };

interface Language {
  readonly names: string;
  readonly config: ParseOptions;
  /** The names of properties have the colour of a keyword. */
  readonly keyed?: true;
}

/** The languages that are coloured. C also stands for C++. */
const LANGUAGES: readonly Language[] = [
  { names: "javascript js jsx node", config: javascript as ParseOptions },
  { names: "typescript ts tsx", config: typescript as ParseOptions },
  { names: "html htm xml", config: html as unknown as ParseOptions },
  { names: "python py python3", config: { ...python, ...PLAIN } },
  { names: "c cpp c++ cc", config: { ...c, ...PLAIN } },
  { names: "go golang", config: { ...go, ...PLAIN } },
  { names: "rust rs", config: { ...rust, ...PLAIN } },
  { names: "shell sh bash zsh", config: { ...shell, ...PLAIN } },
  { names: "diff patch", config: { ...diff, ...PLAIN } },
  { names: "json jsonc", config: { ...json, ...PLAIN }, keyed: true },
  { names: "yaml yml", config: { ...yaml, ...PLAIN }, keyed: true },
];

/** Returns the DOM nodes for code, or undefined if its language is unknown. */
export function highlighted(code: string, language: string): Node[] | undefined {
  const name = language.trim().toLowerCase();
  const known = LANGUAGES.find(({ names }) => names.split(" ").includes(name));
  if (known === undefined) return undefined;
  const { lines } = parse(code, known.config);
  const nodes = lines.flatMap(({ tokens }, at) => {
    const line = tokens.map(({ type, value }): Node => {
      const text = document.createTextNode(value);
      if (!COLOURED.includes(type) && !(type === "property" && known.keyed)) return text;
      const span = document.createElement("span");
      span.className = `hl-${type}`;
      span.append(text);
      return span;
    });
    return at === 0 ? line : [document.createTextNode("\n"), ...line];
  });
  return nodes.map(({ textContent }) => textContent).join("") === code ? nodes : undefined;
}
