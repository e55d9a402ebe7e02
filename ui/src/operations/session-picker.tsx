// Selects a session by part of its key, label or name. Any text is accepted as a key, because some sessions
// may be missing from the list.

import { useCallback, useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import { safeLine } from "../../../src/core/text/safe-text.ts";
import { settled } from "../clock.ts";
import { ask } from "../gateway.ts";
import { Name } from "../parts/name.tsx";
import { sessionName } from "../parts/names.ts";

const OPTIONS_MAX = 8;
const TYPED_MS = 150;

interface Option {
  readonly key: string;
  readonly name: string;
}

interface PickerProps {
  readonly label: string;
  /** Selected key, or "" if none is selected. */
  readonly value: string;
  readonly onPick: (key: string) => void;
  readonly placeholder?: string;
}

async function find(text: string): Promise<readonly Option[]> {
  const search = text.trim();
  const more = search === "" ? {} : { search };
  const { sessions } = await ask("sessions.list", { limit: OPTIONS_MAX, includeArchived: true, ...more });
  return sessions.map((row) => ({ key: row.key, name: sessionName(row) }));
}

/** Suggested sessions, and the search text that they match. */
interface Found {
  readonly words: string;
  readonly options: readonly Option[];
}

/** Returns the latest suggestions, and a function that searches for new ones. */
function useOptions(): { found: Found; search: (words: string) => void } {
  const [found, setFound] = useState<Found>({ words: "", options: [] });
  const latest = useRef(0);
  const search = useCallback((words: string) => {
    const mine = ++latest.current;
    // If the search fails, the user can still type a key.
    find(words)
      .catch(() => [])
      .then((options) => mine === latest.current && setFound({ words, options }));
  }, []);
  return { found, search };
}

/** Filters the suggestions by the typed text, until the gateway has answered for that text. */
function fitting({ words, options }: Found, typed: string): readonly Option[] {
  if (words === typed) return options;
  const wanted = typed.trim().toLowerCase();
  return options.filter(({ key, name }) => `${key} ${name}`.toLowerCase().includes(wanted));
}

/** Shows the suggestions below the field. The focus stays in the field, which handles the keys. */
function Options(props: {
  id: string;
  label: string;
  shown: readonly Option[];
  active: number;
  onPick: (key: string) => void;
}) {
  const { id, label, shown, active, onPick } = props;
  return (
    <div id={`${id}-list`} class="picker-list" role="listbox" aria-label={label} hidden={shown.length === 0}>
      {shown.map((option, at) => (
        // biome-ignore lint/a11y/useKeyWithClickEvents: the field handles the keys
        <div
          key={option.key}
          id={`${id}-${at}`}
          class="picker-option"
          role="option"
          tabIndex={-1}
          aria-selected={at === active}
          onMouseDown={(event) => event.preventDefault()}
          onClick={() => onPick(option.key)}
        >
          <Name text={option.name} />
          <span class="soft mono">
            <Name text={option.key} />
          </span>
        </div>
      ))}
    </div>
  );
}

/**
 * Returns the index of the next or previous option, wrapping around. If no option is active, returns the
 * first or last one.
 */
function nextOf(active: number, step: 1 | -1, count: number): number {
  if (count === 0) return -1;
  return active < 0 ? (step > 0 ? 0 : count - 1) : (active + step + count) % count;
}

/** Owns the typed text, the matching suggestions and the keys. */
function usePicker(value: string, onPick: (key: string) => void) {
  const [text, setText] = useState(value);
  const [words, setWords] = useState("");
  const [isOpen, setOpen] = useState(false);
  const [active, setActive] = useState(-1);
  const { found, search } = useOptions();
  const typed = useMemo(() => settled(TYPED_MS, search), [search]);
  useEffect(() => setText(value), [value]);
  const shown = isOpen ? fitting(found, words) : [];

  const pick = (key: string): void => {
    setText(key);
    setOpen(false);
    setActive(-1);
    onPick(key);
  };
  const open = (): void => {
    if (isOpen) return;
    setWords("");
    search("");
    setOpen(true);
  };
  const onInput = (next: string): void => {
    setText(next);
    setWords(next);
    setOpen(true);
    setActive(-1);
    typed(next);
    if (next === "") onPick("");
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const { key } = event;
    const isMove = key === "ArrowDown" || key === "ArrowUp";
    if (!isMove && key !== "Enter" && !(key === "Escape" && isOpen)) return;
    event.preventDefault();
    if (isMove) {
      open();
      setActive(nextOf(active, key === "ArrowDown" ? 1 : -1, shown.length));
    } else if (key === "Escape") setOpen(false);
    else {
      const chosen = shown[active]?.key ?? text.trim();
      if (chosen !== "") pick(chosen);
    }
  };
  return { text, shown, active, pick, open, onInput, onKeyDown, close: () => setOpen(false) };
}

export function SessionPicker({ label, value, onPick, placeholder }: PickerProps) {
  const id = useId();
  const { text, shown, active, pick, open, onInput, onKeyDown, close } = usePicker(value, onPick);
  return (
    <div class="picker">
      <label for={`${id}-input`}>{label}</label>
      <input
        id={`${id}-input`}
        type="text"
        role="combobox"
        autoComplete="off"
        spellcheck={false}
        dir="ltr"
        aria-expanded={shown.length > 0}
        aria-controls={`${id}-list`}
        aria-autocomplete="list"
        aria-activedescendant={shown[active] === undefined ? undefined : `${id}-${active}`}
        placeholder={placeholder ?? "Key, label or name"}
        value={safeLine(text)}
        onFocus={open}
        onClick={open}
        onInput={(event) => onInput(event.currentTarget.value)}
        onKeyDown={onKeyDown}
        onBlur={close}
      />
      <Options id={id} label={label} shown={shown} active={active} onPick={pick} />
    </div>
  );
}
