// The menu of commands in the composer. It is open while the message is the beginning of a command's name.
// CM1: it lists the commands that the gateway knows and the token may give.

import "./commands.css";
import { useState } from "preact/hooks";
import { COMMANDS, rightsFor } from "../../../src/core/rules/command.ts";
import { coversAll, may } from "../gateway.ts";
import { useMenu } from "../parts/listbox.tsx";

/** Returns the commands that begin with the text. One with exactly this name comes first. */
function commandsFor(text: string): readonly (typeof COMMANDS)[number][] {
  const [, begun] = /^\/([a-z0-9_-]*)$/i.exec(text) ?? [];
  const typed = begun?.toLowerCase();
  if (typed === undefined) return [];
  const fitting = COMMANDS.filter(({ name }) => {
    const { scope, everySession } = rightsFor(name);
    return name.startsWith(typed) && may(scope) && (!everySession || coversAll());
  });
  return fitting.toSorted((a, b) => Number(b.name === typed) - Number(a.name === typed));
}

/** Owns the menu for a text, which `write` replaces by the chosen command. */
export function useCommands(text: string, write: (text: string) => void) {
  const [closedFor, setClosedFor] = useState<string>();
  // A closed menu stays closed while the reader continues the same text.
  const isClosed = closedFor !== undefined && text.startsWith(closedFor);
  if (closedFor !== undefined && !isClosed) setClosedFor(undefined);
  return useMenu({
    ...{ label: "Commands", class: "commands", options: isClosed ? [] : commandsFor(text) },
    draw: ({ usage, description }) => (
      <>
        <span class="mono">{usage}</span>
        <span class="soft">{description}</span>
      </>
    ),
    onTake: ({ name, usage }) => write(usage.includes(" ") ? `/${name} ` : `/${name}`),
    onLeave: () => setClosedFor(text),
    isComplete: ({ name }) => text.toLowerCase() === `/${name}`,
  });
}
