// A field to select a session by part of its key, label or name. Any text is accepted as a key, because the
// suggestions may not contain every session.

import { useEffect, useId, useState } from "preact/hooks";
import { safeLine } from "../../../src/core/text/safe-text.ts";
import { pressed } from "../keys/table.ts";
import { comboboxOf, Listbox, nextOf } from "../parts/listbox.tsx";
import { Name } from "../parts/name.tsx";
import { useFoundSessions } from "../sessions/find.ts";

interface PickerProps {
  readonly label: string;
  /** The selected key, or "" if no session is selected. */
  readonly value: string;
  readonly onPick: (key: string) => void;
  readonly placeholder?: string;
}

export function SessionPicker({ label, value, onPick, placeholder }: PickerProps) {
  const id = useId();
  const [text, setText] = useState(value);
  /** The words that the suggestions fit. Undefined: the list is closed. */
  const [words, setWords] = useState<string>();
  const [active, setActive] = useState(-1);
  const { fitting, search, searchSoon } = useFoundSessions();
  useEffect(() => setText(value), [value]);
  const shown = words === undefined ? [] : fitting(words);
  const close = (): void => setWords(undefined);
  const pick = (key: string): void => {
    setText(key);
    close();
    setActive(-1);
    onPick(key);
  };
  const open = (): void => {
    if (words !== undefined) return;
    setWords("");
    search("");
  };
  const onInput = (next: string): void => {
    setText(next);
    setWords(next);
    setActive(-1);
    searchSoon(next);
    if (next === "") onPick("");
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const action = pressed("menu", event);
    const isMove = action === "next" || action === "previous";
    if (!isMove && action !== "choose" && !(action === "leave" && words !== undefined)) return;
    event.preventDefault();
    if (isMove) {
      open();
      setActive(nextOf(active, action === "next" ? 1 : -1, shown.length));
    } else if (action === "leave") close();
    else {
      const chosen = shown[active]?.key ?? text.trim();
      if (chosen !== "") pick(chosen);
    }
  };
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
