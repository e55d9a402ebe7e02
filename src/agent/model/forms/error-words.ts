// Finds the provider's words in the body of an error: JSON of any shape, a web page, or plain text.

import { fieldsOf, isObject, jsonOf, listOf } from "../../../core/json.ts";
import { head } from "../../../core/text/cut.ts";

/** Maximum characters of a web page that are searched for words. */
const PAGE_CHARS_MAX = 20_000;
/** Maximum characters of the status before the JSON of an error. */
const STATUS_CHARS_MAX = 80;
const DEPTH_MAX = 6;
const FIELDS = [
  ...["error", "message", "msg", "detail", "errors", "error_description", "status_msg"],
  ...["base_resp", "response"],
];

/** Returns the words of an error as one line, or undefined if the text has no known shape. */
export function messageIn(text: string): string | undefined {
  const start = text.search(/[{[<]/);
  if (start === -1 || start > STATUS_CHARS_MAX) return undefined;
  const body = text.slice(start);
  const words = body.startsWith("<") ? wordsOfPage(head(body, PAGE_CHARS_MAX)) : wordsIn(jsonOf(body), 0);
  return words === undefined || words.trim() === "" ? undefined : words.trim().replaceAll(/\s+/g, " ");
}

/** Looks for words where servers put them. */
function wordsIn(value: unknown, depth: number): string | undefined {
  if (depth > DEPTH_MAX) return undefined;
  if (typeof value === "string")
    return (/^\s*[{[]/.test(value) && wordsIn(jsonOf(value), depth + 1)) || value;
  if (Array.isArray(value)) {
    const all = value.map((item) => wordsIn(item, depth + 1)).filter((words) => words !== undefined);
    return all.length === 0 ? undefined : [...new Set(all)].join("; ");
  }
  if (!isObject(value)) return undefined;
  for (const name of FIELDS) {
    const words = wordsIn(value[name], depth + 1);
    if (words === undefined || words.trim() === "") continue;
    // Routers add the message of the provider behind them.
    const source = wordsIn(fieldsOf(value.metadata).raw, depth + 1);
    return addPlace(source === undefined || words.includes(source) ? words : `${words}: ${source}`, value);
  }
  return undefined;
}

/** Adds the field that a validator refuses. */
function addPlace(words: string, { loc, param }: Record<string, unknown>): string {
  const place = listOf(loc).join(".") || (typeof param === "string" ? param : "");
  return place === "" || words.includes(place) ? words : `${place}: ${words}`;
}

/** Returns the title of a web page, or the beginning of its text. */
function wordsOfPage(page: string): string {
  const title = /<title[^>]*>([^<]*)</i.exec(page)?.[1] ?? "";
  const heading = /<h1[^>]*>([^<]*)</i.exec(page)?.[1] ?? "";
  return title.trim() || heading.trim() || head(page.replaceAll(/<[^>]*>/g, " ").trim(), 200) || "a web page";
}
