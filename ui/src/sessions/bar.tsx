// The bar above the session list: search, a menu with the filters, and a button for a new session.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { safeLine } from "../../../src/core/text/safe-text.ts";
import { agentName } from "../agents/known.ts";
import { settled } from "../clock.ts";
import { has, may } from "../gateway.ts";
import { pressed } from "../keys/table.ts";
import { overlay, searchMessages } from "../overlay.ts";
import { Button } from "../parts/button.tsx";
import { lazy } from "../parts/lazy.tsx";
import { picture, want } from "./model.ts";
import { ONLY_WORDS, SEARCH_MAX_CHARS, wish } from "./wish.ts";

/** Time after the last key press at which the search starts. */
const TYPED_MS = 200;
const Fields = lazy(async () => (await import("./filters.tsx")).Fields);

function Search() {
  const input = useRef<HTMLInputElement>(null);
  const { search } = wish.value;
  const typed = useMemo(
    () =>
      settled<string>(TYPED_MS, (text) => text.trim() !== wish.value.search.trim() && want({ search: text })),
    [],
  );
  const findList = () => input.current?.closest(".sessions")?.querySelector<HTMLElement>("[data-list]");
  /** Goes to the matches of a text. If there are none, searches the messages for it. */
  const enter = async (text: string): Promise<void> => {
    await want({ search: text });
    const [first] = picture.value.lines;
    // The matches did not come, or the text was changed meanwhile.
    if (first?.kind === "more" || wish.value.search.trim() !== text) return;
    if (first !== undefined) findList()?.focus();
    else if (has("sessions.search")) searchMessages(text);
  };
  const press = (event: KeyboardEvent & { currentTarget: HTMLInputElement }): void => {
    const action = pressed("rows", event);
    const text = event.currentTarget.value.trim();
    if (action === "choose" && text !== "") void enter(text);
    else if (findList() != null || (action !== "next" && action !== "choose")) return;
    // Without a list, the key must not move the focus to a list elsewhere in the view.
    event.preventDefault();
  };
  useEffect(() => {
    // Show the search text of the URL, because the URL has changed. But while the user types, keep the
    // field's text, because it is newer.
    if (input.current !== null && document.activeElement !== input.current) input.current.value = search;
  }, [search]);
  return (
    <input
      ref={input}
      type="search"
      class="fill"
      aria-label="Search sessions"
      placeholder="Search sessions"
      title="Part of a title or a key"
      defaultValue={search}
      maxLength={SEARCH_MAX_CHARS}
      onInput={(event) => typed(event.currentTarget.value)}
      onKeyDown={press}
    />
  );
}

/** A button that names the filters in force, and opens the menu with all of them. */
function Filters() {
  const [open, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const { kind, agentId, archived, only } = wish.value;
  const chosen = [only && ONLY_WORDS[only], kind, agentId && agentName(agentId), archived && "Archived"];
  const names = chosen.filter(Boolean).join(", ");
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: Escape and the focus leave the menu
    <div
      class="session-filter"
      onKeyDown={(event) => {
        if (!open || event.key !== "Escape") return;
        event.stopPropagation();
        setOpen(false);
        button.current?.focus();
      }}
      onFocusOut={({ currentTarget, relatedTarget }) => {
        if (!currentTarget.contains(relatedTarget as Node | null)) setOpen(false);
      }}
    >
      <button
        ref={button}
        type="button"
        class="cut"
        aria-expanded={open}
        onClick={(event) => {
          // Some browsers do not focus a button on a click.
          event.currentTarget.focus();
          setOpen(!open);
        }}
      >
        {names === "" ? "Filters" : `Filters: ${safeLine(names)}`}
      </button>
      {open && (
        // The menu takes the focus of clicks between its fields.
        // biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms
        <div class="session-menu stack card" role="group" aria-label="Filters" tabIndex={-1}>
          <Fields />
        </div>
      )}
    </div>
  );
}

export function Bar() {
  return (
    <div class="bar strip session-bar">
      <Search />
      <Filters />
      {may("operator.write") && has("sessions.create") && (
        <Button
          text="+ New"
          aria-label="New session"
          title="New session"
          onClick={() => {
            overlay.value = "new-session";
          }}
        />
      )}
    </div>
  );
}
