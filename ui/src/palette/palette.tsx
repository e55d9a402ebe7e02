// The palette: one field that finds sessions, views and actions.
// PA1: after a session or view was chosen, the focus is in the view; otherwise it is where it was before.

import "./palette.css";
import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import { pressed } from "../keys/table.ts";
import { Dialog } from "../parts/dialog.tsx";
import { comboboxOf, Listbox, nextOf } from "../parts/listbox.tsx";
import { Name } from "../parts/name.tsx";
import { hasWords } from "../parts/words.ts";
import { useFoundSessions } from "../sessions/find.ts";
import { type Entry, entries, visit } from "./entries.ts";

/** Returns the entries for a typed text, and whether the gateway has answered for that text. */
function useEntries(typed: string) {
  const { fitting, answered, search, searchSoon } = useFoundSessions();
  const others = useMemo(entries, []);
  useEffect(() => search(""), []);
  const text = typed.trim();
  const sessions: Entry[] = fitting(text).map(({ key, name }) => ({
    title: name,
    about: key,
    act: () => visit({ view: "sessions", key }),
  }));
  const fits = ({ title, about }: Entry): boolean => hasWords(`${title} ${about}`, text);
  const begins = ({ title }: Entry): number => (hasWords(title.slice(0, text.length), text) ? 0 : 1);
  const shown =
    text === ""
      ? [...sessions, ...others]
      : [...others.filter(fits), ...sessions].sort((a, b) => begins(a) - begins(b));
  return { shown, isWhole: answered === text, searchSoon: (next: string) => searchSoon(next.trim()) };
}

export function Palette({ onClose }: { onClose: () => void }) {
  const id = `${useId()}-list`;
  const [text, setText] = useState("");
  const [active, setActive] = useState(0);
  /** Enter was pressed before the gateway had answered. */
  const [waits, setWaits] = useState(false);
  const { shown, isWhole, searchSoon } = useEntries(text);
  const chosen = useRef<Entry | undefined>(undefined);
  // The dialog has returned the focus when the microtask runs.
  useEffect(() => () => queueMicrotask(() => chosen.current?.act()), []);
  const choose = (at: number): void => {
    chosen.current = shown[at];
    if (chosen.current !== undefined) onClose();
    else setWaits(false);
  };
  useEffect(() => {
    if (waits && isWhole) choose(0);
  }, [waits, isWhole]);
  const onInput = (next: string): void => {
    setText(next);
    setActive(0);
    setWaits(false);
    searchSoon(next);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const action = pressed("menu", event);
    if (pressed("page", event) === "palette") onClose();
    else if (action === "next" || action === "previous")
      setActive(nextOf(active, action === "next" ? 1 : -1, shown.length));
    else if (action === "choose") {
      // A session may come before the first entry.
      if (active === 0 && !isWhole) setWaits(true);
      else choose(active);
    } else return;
    event.preventDefault();
  };
  return (
    <Dialog title="Command palette" class="palette" onClose={onClose}>
      <input
        type="text"
        {...comboboxOf(id, active, shown.length)}
        aria-label="Session, view or action"
        placeholder="Session, view or action"
        value={text}
        onInput={(event) => onInput(event.currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      <Listbox
        id={id}
        class="palette"
        label="Sessions, views and actions"
        active={active}
        onPick={choose}
        options={shown.map(({ title, about }) => (
          <>
            <Name text={title} />
            <span class="soft">
              <Name text={about} />
            </span>
          </>
        ))}
      />
      {shown.length === 0 && (
        <p class="soft palette-none" role="status">
          {isWhole ? "No matches" : "Searching…"}
        </p>
      )}
    </Dialog>
  );
}
