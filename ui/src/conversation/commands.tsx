// The menu of commands in the composer. It is open while the message is the beginning of a command's name.
// CM1: it lists the commands that the gateway knows and the token may give.

import "./commands.css";
import { useEffect, useId, useState } from "preact/hooks";
import { COMMANDS, rightsFor } from "../../../src/core/rules/command.ts";
import { coversAll, may } from "../gateway.ts";
import { pressed } from "../keys/table.ts";
import { fieldOf, Listbox, nextOf } from "../parts/listbox.tsx";

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
  const id = `${useId()}-list`;
  const [active, setActive] = useState(0);
  const [closedFor, setClosedFor] = useState<string>();
  // A closed menu stays closed while the reader continues the same text.
  const isClosed = closedFor !== undefined && text.startsWith(closedFor);
  useEffect(() => {
    if (!isClosed) setClosedFor(undefined);
  }, [isClosed]);
  const shown = isClosed ? [] : commandsFor(text);
  const at = Math.min(active, shown.length - 1);
  const take = (index: number): void => {
    const { name = "", usage = "" } = shown[index] ?? {};
    setActive(0);
    write(usage.includes(" ") ? `/${name} ` : `/${name}`);
  };
  /** Returns true if the menu has handled the key. */
  const press = (event: KeyboardEvent): boolean => {
    const action = pressed("menu", event);
    const name = shown[at]?.name;
    if (name === undefined || action === undefined) return false;
    // Enter sends a name that is already complete, and Tab leaves the field.
    const isComplete = text.toLowerCase() === `/${name}`;
    if (isComplete && (action === "choose" || action === "complete")) return false;
    event.preventDefault();
    if (action === "next") setActive(nextOf(at, 1, shown.length));
    else if (action === "previous") setActive(nextOf(at, -1, shown.length));
    else if (action === "leave") setClosedFor(text);
    else take(at);
    return true;
  };
  const field = {
    "aria-haspopup": "listbox",
    ...fieldOf(id, at, shown.length),
  } as const;
  const menu = (
    <Listbox
      id={id}
      class="commands"
      label="Commands"
      active={at}
      onPick={take}
      options={shown.map(({ usage, description }) => (
        <>
          <span class="mono">{usage}</span>
          <span class="soft">{description}</span>
        </>
      ))}
    />
  );
  return { press, field, menu };
}
