// docs/reference/CONFIGURATION.md: every key of the configuration file.

import { configKeys, type Key, keyWords } from "../../../src/config/schema/keys.ts";
import { anchor, code, GENERATED, page, plain, table, wrapped } from "./markdown.ts";

/** Groups the keys into the page's sections: one for each first part of a path. */
function sections(keys: readonly Key[]): Map<string, Key[]> {
  const found = new Map<string, Key[]>();
  for (const key of keys) {
    const parts = key.path.split(".");
    const deep =
      ["agents", "tools", "channels", "models", "hooks"].includes(parts[0] ?? "") && parts.length > 2;
    const name = deep ? parts.slice(0, 2).join(".").replace("[]", "") : (parts[0] ?? "").replace("[]", "");
    found.set(name, [...(found.get(name) ?? []), key]);
  }
  return found;
}

/** Removes the section's name from a path, because table cells are narrow. */
function within(section: string, path: string): string {
  return path.startsWith(`${section}.`) || path.startsWith(`${section}[`)
    ? path.slice(section.length).replace(/^\./, "")
    : path;
}

/** Removes the keys of accounts, because they repeat the keys of their channel. */
function withoutDoubles(keys: readonly Key[]): Key[] {
  const CHANNEL = /^channels\.(\w+)\.(.+)$/;
  const ids = new Set(keys.flatMap(({ path }) => CHANNEL.exec(path)?.[1] ?? []));
  const alike = new Map<string, number>();
  const rest = (path: string): string => CHANNEL.exec(path)?.[2] ?? "";
  for (const { path } of keys) alike.set(rest(path), (alike.get(rest(path)) ?? 0) + 1);
  const [first = ""] = ids;
  return keys.flatMap((key) => {
    const { path } = key;
    if (rest(path).startsWith("accounts.<name>.")) return [];
    if (rest(path) === "" || alike.get(rest(path)) !== ids.size) return [key];
    return path.startsWith(`channels.${first}.`)
      ? [{ ...key, path: `channels.<channel>.${rest(path)}` }]
      : [];
  });
}

export function configurationPage(): string {
  const all = sections(withoutDoubles(configKeys()));
  return page(
    "# Configuration reference",
    GENERATED,
    "Examples by task: [CONFIGURATION.md](../CONFIGURATION.md). A changed file applies to new runs within\n" +
      "seconds; `parley config check` names the settings that only a restart applies. A list is written `[]`, a name of your\n" +
      "own `<name>`. Sizes are bytes, in powers of 1024 where that is shorter.",
    wrapped(
      "Parts:",
      [...all.keys()].map((name) => `[\`${name}\`](#${anchor(name)})`),
      ".",
    ),
    ...[...all].map(([name, keys]) =>
      page(
        `## ${plain(name)}`,
        table(
          ["key", "type", "unit", "default", "meaning"],
          keys.map((key) => {
            const { type, unit = "", required, fallback, meaning } = keyWords(key);
            const byDefault = fallback === undefined ? "" : code(fallback);
            return [code(within(name, key.path)), type, unit, required ? "*required*" : byDefault, meaning];
          }),
        ),
      ).trimEnd(),
    ),
  );
}
