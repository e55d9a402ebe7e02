// The bar above the session list: search, filters, tree or list, and a button for a new session.

import { useMemo, useState } from "preact/hooks";
import { SESSION_KINDS } from "../../../src/core/shapes/session.ts";
import { settled } from "../clock.ts";
import { ask, has, may } from "../gateway.ts";
import { useReading } from "../parts/reading.ts";
import { type Option, Select } from "../parts/select.tsx";
import { type Wish, want, wish } from "./model.ts";
import { NewSession } from "./new-session.tsx";

/** Pause after the last key before the search starts. */
const TYPED_MS = 200;
/** The gateway's limit for a search text. */
const SEARCH_MAX_CHARS = 512;

const KINDS: readonly Option<Wish["kind"]>[] = [
  ["", "Any kind"],
  ...SESSION_KINDS.map((one) => (one === "other" ? ([one, "chat, sub-agent, other"] as const) : one)),
];

function Search() {
  const typed = useMemo(() => settled<string>(TYPED_MS, (search) => want({ search })), []);
  return (
    <input
      type="search"
      class="session-search"
      aria-label="Search sessions"
      placeholder="Search"
      title="Part of a label, a name or a key"
      defaultValue={wish.value.search}
      maxLength={SEARCH_MAX_CHARS}
      onInput={(event) => typed(event.currentTarget.value)}
    />
  );
}

function Shape() {
  const { shape } = wish.value;
  const button = (one: Wish["shape"], text: string, title: string) => (
    <button type="button" aria-pressed={shape === one} title={title} onClick={() => want({ shape: one })}>
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

function Filters() {
  const { kind, agentId, archived } = wish.value;
  const agents = useReading("agents", () => ask("agents.list"));
  return (
    <>
      <Select aria-label="Kind" value={kind} options={KINDS} onPick={(kind) => want({ kind })} />
      <Select
        aria-label="Agent"
        value={agentId}
        options={[["", "Any agent"], ...(agents.value?.agents ?? []).map(({ id }) => id)]}
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
  const [making, setMaking] = useState(false);
  return (
    <div class="session-bar">
      <div class="session-bar-line">
        <Search />
        <Shape />
        {may("operator.write") && has("sessions.create") && (
          <button type="button" onClick={() => setMaking(true)} aria-label="New session" title="New session">
            <span aria-hidden="true">+</span> New
          </button>
        )}
      </div>
      <div class="session-bar-line">
        <Filters />
      </div>
      {making && <NewSession onClose={() => setMaking(false)} />}
    </div>
  );
}
