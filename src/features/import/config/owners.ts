// Maps the people who may give every command.
// CO1: an entry that is not the id of one person makes nobody an owner.

import type { Tree } from "../../../config/source.ts";
import { fieldsOf, listOf } from "../../../core/json.ts";
import { textIn } from "../fields.ts";

const ENTRIES_MAX = 2_000;
const OWNER = /^(?:(telegram|tg|discord):)?(?:user:)?(\d{1,32})$/i;

/** Returns the owners that these entries name. An entry without a channel counts for each of `channels`. */
function ownersIn(entries: unknown, channels: readonly string[]): string[] {
  return listOf(entries)
    .slice(0, ENTRIES_MAX)
    .flatMap((entry) => {
      const text = textIn(typeof entry === "number" ? String(entry) : entry, 200) ?? "";
      const [, channel, id] = OWNER.exec(text) ?? [];
      if (id === undefined) return [];
      const named = channel?.toLowerCase().replace(/^tg$/, "telegram");
      return (named === undefined ? channels : [named]).map((one) => `${one}:${id}`);
    });
}

/**
 * Returns the owners. Like in the source, the people who may write directly are owners if the configuration
 * names none. `channels`: the mapped channels.
 */
export function mapOwners(named: unknown, channels: Tree): string[] {
  const mapped = Object.entries(channels).filter(([, channel]) => channel !== undefined);
  const explicit = ownersIn(
    named,
    mapped.map(([id]) => id),
  );
  if (listOf(named).length > 0) return [...new Set(explicit)];
  const allowed = mapped.flatMap(([id, channel]) => {
    const accounts = [channel, ...Object.values(fieldsOf(fieldsOf(channel).accounts))];
    return accounts.flatMap((account) => ownersIn(fieldsOf(account).allowFrom, [id]));
  });
  return [...new Set(allowed)];
}
