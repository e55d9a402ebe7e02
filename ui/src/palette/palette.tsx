// The palette: one field that finds sessions, views and actions.
// PA1: after a session or view was chosen, the focus is in the view; otherwise it is where it was before.
// PA2: while the text stays the same, the chosen row and the rows above it keep their order. Late answers of
//      the gateway and changes of the view add rows only below.

import "./palette.css";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { agentName } from "../agents/known.ts";
import { batched } from "../clock.ts";
import { has } from "../gateway.ts";
import { pressed } from "../keys/table.ts";
import { searchMessages, searchName, takeLetters } from "../overlay.ts";
import { Dialog } from "../parts/dialog.tsx";
import { comboboxOf, Listbox, nextOf } from "../parts/listbox.tsx";
import { Name } from "../parts/name.tsx";
import { useNews } from "../parts/reading.ts";
import { hasWords } from "../parts/words.ts";
import { useFoundSessions } from "../sessions/find.ts";
import { type Entry, entries, visit } from "./entries.ts";

/** Delay between a change of the view and the update of the actions that it offers. */
const REFRESH_MS = 200;

/** Returns the entries for a typed text, and whether the gateway has answered for that text. */
function useEntries(typed: string) {
  const { fitting, answered, search, searchSoon } = useFoundSessions();
  const text = typed.trim();
  useEffect(() => search(text), []);
  useNews("sessions", () => search(text));
  // The buttons of the view are entries.
  const [, setChanges] = useState(0);
  useEffect(() => {
    const view = document.getElementById("view");
    const changes = new MutationObserver(batched(REFRESH_MS, () => setChanges((count) => count + 1)));
    const attributeFilter = ["aria-label", "data-act", "disabled", "hidden"];
    if (view !== null) changes.observe(view, { attributeFilter, childList: true, subtree: true });
    return () => changes.disconnect();
  }, []);
  const others = entries();
  const sessions: Entry[] = fitting(text).map(({ key, name, agentId }) => ({
    id: key,
    title: name,
    about: name === agentName(agentId) ? "main session" : agentName(agentId),
    act: () => visit({ view: "sessions", key }),
  }));
  const fits = ({ title, about, words = "" }: Entry): boolean => hasWords(`${title} ${about} ${words}`, text);
  const begins = ({ title }: Entry): number => (hasWords(title.slice(0, text.length), text) ? 0 : 1);
  const found =
    text === ""
      ? [...sessions, ...others]
      : [...others.filter(fits), ...sessions].sort((a, b) => begins(a) - begins(b));
  const hasMatch = found.length > 0;
  // Until the gateway has answered, this must not be the only entry, because Enter would choose it.
  if (text !== "" && has("sessions.search") && (hasMatch || answered === text))
    found.push({ id: "messages", title: searchName(text), about: "", act: () => searchMessages(text) });
  return { found, hasMatch, answered, searchSoon: (next: string) => searchSoon(next.trim()) };
}

function useChoice() {
  const [text, setText] = useState(takeLetters);
  const [chosenId, setChosenId] = useState<string>();
  const { found, hasMatch, answered, searchSoon } = useEntries(text);
  const before = useRef<{ text: string; fixed: readonly Entry[] }>({ text, fixed: [] });
  const byId = new Map(found.map((entry) => [entry.id, entry]));
  const first = (before.current.text === text ? before.current.fixed : []).flatMap(
    ({ id }) => byId.get(id) ?? [],
  );
  for (const { id } of first) byId.delete(id);
  const shown = [...first, ...byId.values()];
  const at = shown.findIndex(({ id }) => id === chosenId);
  // Without a text, the sessions come first, so nothing is chosen before they are known.
  const isOpening = chosenId === undefined && text === "" && answered === undefined;
  const active = at >= 0 ? at : isOpening || shown.length === 0 ? -1 : 0;
  before.current = { text, fixed: shown.slice(0, active + 1) };
  const type = (next: string): void => {
    setText(next);
    setChosenId(undefined);
    searchSoon(next);
  };
  const move = (step: 1 | -1): void => setChosenId(shown[nextOf(active, step, shown.length)]?.id);
  return { text, shown, active, type, move, hasMatch, isWhole: answered === text.trim() };
}

export function Palette({ onClose }: { onClose: () => void }) {
  const id = `${useId()}-list`;
  const { text, shown, active, type, move, hasMatch, isWhole } = useChoice();
  /** Enter was pressed when nothing was shown that could be chosen. */
  const [waits, setWaits] = useState(false);
  const chosen = useRef<Entry | undefined>(undefined);
  // The dialog has returned the focus when the microtask runs.
  useEffect(() => () => queueMicrotask(() => chosen.current?.act()), []);
  const choose = (at: number): void => {
    chosen.current = shown[at];
    if (chosen.current !== undefined) onClose();
    else setWaits(!isWhole);
  };
  useEffect(() => {
    if (waits && isWhole) choose(active);
  }, [waits, isWhole]);
  const onKeyDown = (event: KeyboardEvent): void => {
    const action = pressed("menu", event);
    if (pressed("page", event) === "palette") onClose();
    else if (action === "next" || action === "previous") move(action === "next" ? 1 : -1);
    else if (action === "choose") choose(active);
    else return;
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
        onInput={(event) => {
          type(event.currentTarget.value);
          setWaits(false);
        }}
        onKeyDown={onKeyDown}
      />
      {!hasMatch && (
        <p class="soft palette-none" role="status">
          {isWhole ? "No matches" : "Searching…"}
        </p>
      )}
      <Listbox
        id={id}
        class="palette"
        label="Sessions, views and actions"
        active={active}
        onPick={choose}
        options={shown.map(({ title, about }) => (
          <>
            <Name text={title} />
            <Name as="span" class="soft" text={about} />
          </>
        ))}
      />
    </Dialog>
  );
}
