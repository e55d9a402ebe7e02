// A field to select a session by part of its key, label or name. Any text is accepted as a key, because the
// suggestions may not contain every session.

import { useEffect, useId, useState } from "preact/hooks";
import { safeLine } from "../../../src/core/text/safe-text.ts";
import { pressed } from "../keys/table.ts";
import { comboboxOf, Listbox, nextOf } from "../parts/listbox.tsx";
import { Name } from "../parts/name.tsx";
import { type FoundSession, useFoundSessions } from "../sessions/find.ts";

interface PickerProps {
  readonly label: string;
  /** The selected key, or "" if no session is selected. */
  readonly value: string;
  readonly onPick: (key: string) => void;
  readonly placeholder?: string;
}

/** Owns the typed text, the matching suggestions and the keys. */
function usePicker(value: string, onPick: (key: string) => void) {
  const [text, setText] = useState(value);
  const [words, setWords] = useState("");
  const [isOpen, setOpen] = useState(false);
  const [active, setActive] = useState(-1);
  const { fitting, search, searchSoon } = useFoundSessions();
  useEffect(() => setText(value), [value]);
  const shown: readonly FoundSession[] = isOpen ? fitting(words) : [];

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
    searchSoon(next);
    if (next === "") onPick("");
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const action = pressed("menu", event);
    const isMove = action === "next" || action === "previous";
    if (!isMove && action !== "choose" && !(action === "leave" && isOpen)) return;
    event.preventDefault();
    if (isMove) {
      open();
      setActive(nextOf(active, action === "next" ? 1 : -1, shown.length));
    } else if (action === "leave") setOpen(false);
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
        dir="ltr"
        {...comboboxOf(`${id}-list`, active, shown.length)}
        placeholder={placeholder ?? "Key, label or name"}
        value={safeLine(text)}
        onFocus={open}
        onClick={open}
        onInput={(event) => onInput(event.currentTarget.value)}
        onKeyDown={onKeyDown}
        onBlur={close}
      />
      <Listbox
        id={`${id}-list`}
        class="picker"
        label={label}
        active={active}
        onPick={(at) => pick(shown[at]?.key ?? "")}
        options={shown.map(({ key, name }) => (
          <>
            <Name text={name} />
            <Name as="span" class="soft mono" text={key} />
          </>
        ))}
      />
    </div>
  );
}
