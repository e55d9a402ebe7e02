// Chooses the row that a user names by its id or its name.

import { quoted } from "../core/text/cut.ts";
import { nearestNames } from "../core/text/nearest.ts";
import type { Reply } from "./gateway-link.ts";

interface Named {
  readonly id: string;
  readonly name?: string;
}

interface About<T> {
  /** Noun for a row, like `job`. */
  readonly kind: string;
  /** The command that lists the rows. */
  readonly list: string;
  readonly all: readonly T[];
  /** Returns the error for several matches. `ids`: their ids. */
  several(ids: string): string;
}

/** Returns the only match of a word, or the failure that there is none or are several. */
export function onlyMatch<T extends Named>(word: string, matches: readonly T[], about: About<T>): Reply<T> {
  const [only, ...others] = matches;
  if (only !== undefined && others.length === 0) return { ok: true, value: only };
  if (only !== undefined)
    return {
      ok: false,
      code: "INVALID_REQUEST",
      error: about.several(matches.map(({ id }) => id).join(", ")),
    };
  const names = about.all.flatMap(({ name }) => name ?? []);
  const nearest = nearestNames(word, names, 1).map((name) => ` Did you mean ${JSON.stringify(name)}?`);
  const error = `No ${about.kind} has the id or name ${quoted(word, 80)}.${nearest.join("")}`;
  return {
    ok: false,
    code: "NOT_FOUND",
    error,
    hint: `List ids and names: npx parley-gateway ${about.list}`,
  };
}
