// A list of options for a field. The focus stays in the field, which handles the keys.

import type { ComponentChildren } from "preact";
import { useEffect, useId, useState } from "preact/hooks";
import { pressed } from "../keys/table.ts";

const optionId = (id: string, at: number): string => `${id}-${at}`;

function fieldOf(id: string, active: number, count: number) {
  return {
    "aria-autocomplete": "list",
    "aria-controls": id,
    "aria-activedescendant": active >= 0 && active < count ? optionId(id, active) : undefined,
  } as const;
}

/** Like `fieldOf`, for a field of one line. */
export function comboboxOf(id: string, active: number, count: number) {
  return {
    role: "combobox",
    autoComplete: "off",
    spellcheck: false,
    "aria-expanded": count > 0,
    ...fieldOf(id, active, count),
  } as const;
}

/** Returns the index of a neighbour, wrapping around. If no option is active, the first or last one. */
export function nextOf(active: number, step: 1 | -1, count: number): number {
  if (count === 0) return -1;
  return active < 0 ? (step > 0 ? 0 : count - 1) : (active + step + count) % count;
}

export function Listbox(props: {
  id: string;
  label: string;
  /** Beginning of the classes of the list and its options. */
  class: string;
  options: readonly ComponentChildren[];
  active: number;
  onPick: (at: number) => void;
}) {
  const { id, label, class: name, options, active, onPick } = props;
  useEffect(() => {
    document.getElementById(optionId(id, active))?.scrollIntoView({ block: "nearest" });
  }, [active, options.length]);
  return (
    <div id={id} class={`${name}-list`} role="listbox" aria-label={label} hidden={options.length === 0}>
      {options.map((option, at) => (
        // biome-ignore lint/a11y/useKeyWithClickEvents: the field handles the keys
        <div
          key={optionId(id, at)}
          id={optionId(id, at)}
          class={`${name}-option`}
          role="option"
          tabIndex={-1}
          aria-selected={at === active}
          onMouseDown={(event) => event.preventDefault()}
          onClick={() => onPick(at)}
        >
          {option}
        </div>
      ))}
    </div>
  );
}

/** Owns the menu below a text field while somebody types what its options stand for. */
export function useMenu<T>(props: {
  label: string;
  class: string;
  options: readonly T[];
  draw: (option: T) => ComponentChildren;
  onTake: (option: T) => void;
  /** Closes the menu. Without it, the key is left to others. */
  onLeave?: () => void;
  /** Whether the text is the option already: then Enter sends it, and Tab leaves the field. */
  isComplete?: (option: T) => boolean;
}) {
  const { options, draw, onTake, onLeave, isComplete, ...list } = props;
  const id = `${useId()}-list`;
  const [active, setActive] = useState(0);
  const at = Math.min(active, options.length - 1);
  const take = (index: number): void => {
    const option = options[index];
    setActive(0);
    if (option !== undefined) onTake(option);
  };
  /** Returns true if the menu has handled the key. */
  const press = (event: KeyboardEvent): boolean => {
    const action = pressed("menu", event);
    const option = options[at];
    if (option === undefined || action === undefined || (action === "leave" && !onLeave)) return false;
    if (isComplete?.(option) && (action === "choose" || action === "complete")) return false;
    event.preventDefault();
    if (action === "next") setActive(nextOf(at, 1, options.length));
    else if (action === "previous") setActive(nextOf(at, -1, options.length));
    else if (action === "leave") onLeave?.();
    else take(at);
    return true;
  };
  return {
    press,
    field: { "aria-haspopup": "listbox", ...fieldOf(id, at, options.length) } as const,
    menu: <Listbox id={id} {...list} active={at} onPick={take} options={options.map(draw)} />,
  };
}
