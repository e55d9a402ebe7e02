// Owns the choice of a session by typing a part of its key, label or name.
// PK1: any text may be taken as a key: what is not in the list may be there all the same.

import { useCallback, useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import { safeLine } from "../../../src/core/safe-text.ts";
import { settled } from "../clock.ts";
import { ask } from "../gateway.ts";
import { Name, sessionName } from "../parts/name.tsx";

const OPTIONS_MAX = 8;
const TYPED_MS = 150;

interface Option {
  readonly key: string;
  readonly name: string;
}

interface PickerProps {
  readonly label: string;
  /** The chosen key; "": none. */
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

/** Options, and the words that they were found for. */
interface Found {
  readonly words: string;
  readonly options: readonly Option[];
}

/** What was found last, and how more is asked for. */
function useOptions(): { found: Found; search: (words: string) => void } {
  const [found, setFound] = useState<Found>({ words: "", options: [] });
  const latest = useRef(0);
  const search = useCallback((words: string) => {
    const mine = ++latest.current;
    // A list that can't be had is no obstacle: a key can be typed (PK1).
    find(words)
      .catch(() => [])
      .then((options) => mine === latest.current && setFound({ words, options }));
  }, []);
  return { found, search };
}

/** Until the answer to new words is there, what of the old one fits them. */
function fitting({ words, options }: Found, typed: string): readonly Option[] {
  if (words === typed) return options;
  const wanted = typed.trim().toLowerCase();
  return options.filter(({ key, name }) => `${key} ${name}`.toLowerCase().includes(wanted));
}

export function SessionPicker({ label, value, onPick, placeholder }: PickerProps) {
  const id = useId();
  const [text, setText] = useState(value);
  const [isOpen, setOpen] = useState(false);
  const [active, setActive] = useState(-1);
  const [words, setWords] = useState("");
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
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      open();
      const step = event.key === "ArrowDown" ? 1 : -1;
      const count = shown.length;
      if (count > 0) setActive((active + step + count + (active < 0 && step < 0 ? 1 : 0)) % count);
    } else if (event.key === "Enter") {
      event.preventDefault();
      const key = shown[active]?.key ?? text.trim();
      if (key !== "") pick(key);
    } else if (event.key === "Escape" && isOpen) {
      event.preventDefault();
      setOpen(false);
    }
  };
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
        onBlur={() => setOpen(false)}
      />
      <div
        id={`${id}-list`}
        class="picker-list"
        role="listbox"
        aria-label={label}
        hidden={shown.length === 0}
      >
        {shown.map((option, at) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are the input's, which keeps the focus
          <div
            key={option.key}
            id={`${id}-${at}`}
            class="picker-option"
            role="option"
            tabIndex={-1}
            aria-selected={at === active}
            onMouseDown={(event) => event.preventDefault()}
            onClick={() => pick(option.key)}
          >
            <Name text={option.name} />
            <span class="soft mono">
              <Name text={option.key} />
            </span>
          </div>
        ))}
      </div>
    </div>
  );
}
