// Completes commands (/…), sessions (@… and after /open) and files (Tab) in the input of the chat.

import {
  type AutocompleteItem,
  type AutocompleteProvider,
  CombinedAutocompleteProvider,
} from "@earendil-works/pi-tui";
import { optional } from "../../core/optional.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import type { Choice } from "./screen.ts";

const SESSION_START = /(?:^|\s)@(\S*)$/;

export interface CommandHint {
  readonly name: string;
  readonly description: string;
}

/** Returns an item that is safe to show, or nothing if its value would change by that. */
function safeItem({ value, label, description }: Choice | AutocompleteItem): AutocompleteItem[] {
  if (safeLine(value) !== value) return [];
  const shown = description === undefined ? undefined : safeLine(description);
  return [{ value, label: safeLine(label), ...optional({ description: shown }) }];
}

/** `folder`: relative names of files begin here. `sessions`: finds sessions by part of a name. */
export function completionsOf(
  commands: readonly CommandHint[],
  folder: string,
  sessions: (part: string) => Promise<readonly Choice[]>,
): AutocompleteProvider {
  const safeSessions = async (part: string) => (await sessions(part)).flatMap(safeItem);
  const own = commands.map(({ name, description }) =>
    name === "open"
      ? { name, description, getArgumentCompletions: safeSessions }
      : { value: name, label: name, description },
  );
  const inner = new CombinedAutocompleteProvider(own, folder);
  return {
    async getSuggestions(lines, line, column, options) {
      const part = SESSION_START.exec((lines[line] ?? "").slice(0, column))?.[1];
      if (part !== undefined) return { items: await safeSessions(part), prefix: `@${part}` };
      const found = await inner.getSuggestions(lines, line, column, options);
      return found && { ...found, items: found.items.flatMap(safeItem) };
    },
    applyCompletion: (...given) => inner.applyCompletion(...given),
    shouldTriggerFileCompletion: (...given) => inner.shouldTriggerFileCompletion(...given),
  };
}
