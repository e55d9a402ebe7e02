// Colours code: splits it into spans with a class for each kind of token. This file is loaded when the first
// code block with a known language is shown.
// HL1: all spans together are exactly the code, and the code is inserted only as text.

import { parse } from "sugar-high/core";
import { lang, languages } from "sugar-high/lang";

/** Kinds of tokens that have a colour of their own. */
const COLOURED = ["keyword", "string", "comment", "class", "entity"];
/** Languages in which the names of properties are highlighted. */
const KEYED = ["json", "yaml", "toml", "css"];

/** Returns the DOM nodes for code, or undefined if its language is unknown. */
export function highlighted(code: string, language: string): Node[] | undefined {
  const id = lang(language);
  if (id === undefined || id === "plaintext") return undefined;
  const { lines } = parse(code, languages.find((one) => one.id === id)?.config);
  const nodes = lines.flatMap(({ tokens }, at) => {
    const line = tokens.map(({ type, value }): Node => {
      const text = document.createTextNode(value);
      if (!COLOURED.includes(type) && !(type === "property" && KEYED.includes(id))) return text;
      const span = document.createElement("span");
      span.className = `hl-${type}`;
      span.append(text);
      return span;
    });
    return at === 0 ? line : [document.createTextNode("\n"), ...line];
  });
  return nodes.map(({ textContent }) => textContent).join("") === code ? nodes : undefined;
}
