// Reads the front matter of a SKILL.md: lines `key: value` between two lines `---`. Understands quotes, and
// values on the following indented lines; any other YAML is kept as text.

const QUOTED = /^(["'])(.*)\1$/;
const BLOCK = /^[>|][+-]?$/;

/** Returns the fields of the front matter, or undefined if the text has none. */
export function frontMatter(text: string): ReadonlyMap<string, string> | undefined {
  const lines = text.split(/\r?\n/);
  const end = lines.indexOf("---", 1);
  if (lines[0] !== "---" || end === -1) return undefined;
  const fields = new Map<string, string>();
  let key: string | undefined;
  for (const line of lines.slice(1, end)) {
    const [, name, value = ""] = /^([\w-]+):(?:\s+(.*))?$/.exec(line) ?? [];
    if (name !== undefined) {
      key = name;
      const plain = value.trim();
      fields.set(name, BLOCK.test(plain) ? "" : (QUOTED.exec(plain)?.[2] ?? plain));
    } else if (key !== undefined && /^\s+\S/.test(line)) {
      fields.set(key, `${fields.get(key) ?? ""} ${line.trim()}`.trim());
    }
  }
  return fields;
}
