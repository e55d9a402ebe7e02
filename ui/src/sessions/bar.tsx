// The bar above the session list: search, filters with counts, the choice of tree or list, and a button for a
// new session.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { SESSION_KINDS } from "../../../src/core/shapes/session.ts";
import { agents } from "../agents/known.ts";
import { settled } from "../clock.ts";
import { has, may } from "../gateway.ts";
import { pressed } from "../keys/table.ts";
import { overlay, searchMessages } from "../overlay.ts";
import { type Option, Select } from "../parts/select.tsx";
import { counts, picture, want } from "./model.ts";
import { SEARCH_MAX_CHARS, type Wish, wish } from "./wish.ts";

/** Time after the last key press at which the search starts. */
const TYPED_MS = 200;
/** Maximum count that the gateway returns for a filter. */
const COUNTED_MAX = 1_000;

const KINDS: readonly Option<Wish["kind"]>[] = [
  ["", "Any kind"],
  ...SESSION_KINDS.map((one) => (one === "other" ? ([one, "chat, sub-agent, other"] as const) : one)),
];

function Search() {
  const typed = useMemo(
    () => settled<string>(TYPED_MS, (search) => search !== wish.value.search && want({ search })),
    [],
  );
  const input = useRef<HTMLInputElement>(null);
  const { search } = wish.value;
  /** The text that was in the field when Enter was pressed, before its matches were read. */
  const [entered, setEntered] = useState<string>();
  const { lines, of } = picture.value;
  const isRead = of === wish.value && lines[0]?.kind !== "more";
  const hasMatch = lines.length > 0;
  const listOf = () => input.current?.closest(".sessions")?.querySelector<HTMLElement>("[data-list]");
  useEffect(() => {
    if (entered === undefined || !isRead || entered !== search.trim()) return;
    setEntered(undefined);
    if (hasMatch) listOf()?.focus();
    else if (has("sessions.search")) searchMessages(entered);
  });
  const press = (event: KeyboardEvent & { currentTarget: HTMLInputElement }): void => {
    const action = pressed("rows", event);
    const text = event.currentTarget.value;
    if (action === "choose" && text.trim() !== "") {
      if (text.trim() !== search.trim()) want({ search: text });
      setEntered(text.trim());
    } else if (listOf() != null || (action !== "next" && action !== "choose")) return;
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
      class="session-search"
      aria-label="Search sessions"
      placeholder="Search sessions"
      title="Part of a title or a key"
      defaultValue={search}
      maxLength={SEARCH_MAX_CHARS}
      onInput={(event) => {
        setEntered(undefined);
        typed(event.currentTarget.value);
      }}
      onKeyDown={press}
    />
  );
}

function Shape() {
  const { shape } = wish.value;
  const button = (one: Wish["shape"], text: string, title: string) => (
    <button
      type="button"
      aria-pressed={shape === one}
      title={title}
      data-act={`Sessions as a ${one}`}
      onClick={() => want({ shape: one })}
    >
      {text}
    </button>
  );
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms
    <div class="session-shape" role="group" aria-label="Layout">
      {button("tree", "Tree", "Sessions below those that spawned them")}
      {button("list", "List", "All sessions, newest first")}
    </div>
  );
}

const ONLY = [
  ["", "All", "All sessions"],
  ["running", "Active", "Sessions with a running, waiting or queued run"],
  ["failed", "Failed", "Sessions whose last run failed, also dismissed ones and jobs"],
  ["mine", "Mine", "Sessions to which your token sent a message"],
] as const;

function Only() {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms
    <div class="session-only" role="group" aria-label="Show">
      {ONLY.map(([only, text, title]) => {
        const count = only === "" ? 0 : (counts.value?.[only] ?? 0);
        const isBad = only === "failed" && count > 0;
        return (
          <button
            key={only}
            type="button"
            class={isBad ? "tone-bad" : ""}
            aria-pressed={wish.value.only === only}
            title={title}
            data-act={title}
            onClick={() => want({ only })}
          >
            {text}
            {count > 0 && <span class="number"> {count >= COUNTED_MAX ? `${COUNTED_MAX}+` : count}</span>}
          </button>
        );
      })}
    </div>
  );
}

function Filters() {
  const { kind, agentId, archived } = wish.value;
  return (
    <>
      <Select aria-label="Kind" value={kind} options={KINDS} onPick={(kind) => want({ kind })} />
      <Select
        aria-label="Agent"
        value={agentId}
        options={[
          ["", "Any agent"],
          ...(agents.value?.agents ?? []).map(({ id, name = id }) => [id, name] as const),
        ]}
        onPick={(agentId) => want({ agentId })}
      />
      <label class="session-archived">
        <input
          type="checkbox"
          checked={archived}
          onChange={(event) => want({ archived: event.currentTarget.checked })}
        />
        Archived
      </label>
    </>
  );
}

export function Bar() {
  return (
    <div class="session-bar">
      <div class="session-bar-line">
        <Search />
        <Shape />
        {may("operator.write") && has("sessions.create") && (
          <button
            type="button"
            onClick={() => {
              overlay.value = "new-session";
            }}
            aria-label="New session"
            title="New session"
          >
            <span aria-hidden="true">+</span> New
          </button>
        )}
      </div>
      <div class="session-bar-line">
        <Filters />
      </div>
      <div class="session-bar-line">
        <Only />
        {has("sessions.search") && (
          <button
            type="button"
            class="quiet session-messages"
            title="Find words in the messages of all sessions"
            onClick={() => searchMessages()}
          >
            Search messages
          </button>
        )}
      </div>
    </div>
  );
}
