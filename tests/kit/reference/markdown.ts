// Markdown of the generated pages of docs/reference: tables, lists of names, anchors.

/** Maximum length of a line of a generated page, because GitHub shows longer lines badly. */
export const LINE_MAX_CHARS = 280;

/** Escapes placeholders such as `<name>` outside of code, because Markdown would read them as HTML. */
export function plain(text: string): string {
  return text.replaceAll(/(`[^`]*`)|<(?=[\w.-]+>)/g, (_, inCode?: string) => inCode ?? "\\<");
}

/** Escapes text for a table cell, because a vertical bar would end the cell. */
function cell(text: string): string {
  return plain(text)
    .replaceAll("|", "\\|")
    .replaceAll(/\s*\n\s*/g, " ");
}

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return "";
  const line = (cells: readonly string[]): string => `| ${cells.map(cell).join(" | ")} |`;
  return [line(head), `|${"---|".repeat(head.length)}`, ...rows.map(line)].join("\n");
}

/** Returns the browser's anchor of a heading. */
export function anchor(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\w\- ]/g, "")
    .replaceAll(" ", "-");
}

export function link(heading: string, text = `\`${heading}\``): string {
  return `[${text}](#${anchor(heading)})`;
}

/** Joins the paragraphs that are not empty. */
export function page(...parts: readonly string[]): string {
  return `${parts.filter((part) => part !== "").join("\n\n")}\n`;
}

export const code = (text: string): string => `\`${text}\``;
export const codes = (texts: readonly string[]): string => texts.map(code).join(", ");

const WRAPPED_CHARS = 120;

/** Returns a list as one paragraph, wrapped to lines. */
export function wrapped(first: string, items: readonly string[], end: string): string {
  const lines = [first];
  for (const [at, item] of items.entries()) {
    const word = `${item}${at === items.length - 1 ? end : ","}`;
    const line = lines.at(-1) ?? "";
    if (line.length + word.length < WRAPPED_CHARS) lines[lines.length - 1] = `${line} ${word}`;
    else lines.push(word);
  }
  return lines.join("\n");
}

/** Returns a paragraph, wrapped to lines. */
export function prose(text: string): string {
  return plain(text)
    .replaceAll(new RegExp(`(.{1,${WRAPPED_CHARS}})(?: +|$)`, "g"), "$1\n")
    .trimEnd();
}

/** Returns error codes as links to their descriptions. */
export function linkedCodes(names: readonly string[]): string[] {
  return names.map((name) => `[\`${name}\`](ERRORS.md#${name})`);
}

export const GENERATED =
  "Generated from the schemas that the program checks with. Update it with " +
  "`npx vitest run tests/reference.test.ts --update`.";
