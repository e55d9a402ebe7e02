// The menu with the filters of the session list, their counts, and the choice of tree or list.

import { SESSION_KINDS } from "../../../src/core/shapes/session.ts";
import { agents } from "../agents/known.ts";
import { has } from "../gateway.ts";
import { searchMessages } from "../overlay.ts";
import { Button } from "../parts/button.tsx";
import { type Option, Select } from "../parts/select.tsx";
import { counts, want } from "./model.ts";
import { ONLY_WORDS, type Wish, wish } from "./wish.ts";

/** Maximum count that the gateway returns for a filter. */
const COUNTED_MAX = 1_000;

const KINDS: readonly Option<Wish["kind"]>[] = [
  ["", "Any kind"],
  ...SESSION_KINDS.map((one) => (one === "other" ? ([one, "chat, sub-agent, other"] as const) : one)),
];

const ONLY = [
  ["", "All", "All sessions"],
  ["running", ONLY_WORDS.running, "Sessions with a running, waiting or queued run"],
  ["failed", ONLY_WORDS.failed, "Sessions whose last run failed, also dismissed ones and jobs"],
  ["mine", ONLY_WORDS.mine, "Sessions to which your token sent a message"],
] as const;

const SHAPES = [
  ["tree", "Tree", "Sessions below those that spawned them"],
  ["list", "List", "All sessions, newest first"],
] as const;

export function Fields() {
  const { kind, agentId, archived, only: chosen, shape: layout } = wish.value;
  const count = (only: (typeof ONLY)[number][0]): number => (only === "" ? 0 : (counts.value?.[only] ?? 0));
  const known = agents.value?.agents.map(({ id, name = id }) => [id, name] as const) ?? [];
  return (
    <>
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms */}
      <div class="line session-only" role="group" aria-label="Show">
        {ONLY.map(([only, text, title]) => (
          <button
            key={only}
            type="button"
            class={`small ${only === "failed" && count(only) > 0 ? "tone-bad toned" : ""}`}
            aria-pressed={chosen === only}
            title={title}
            data-act={title}
            onClick={() => want({ only })}
          >
            {text}
            {count(only) > 0 && (
              <span class="number"> {count(only) >= COUNTED_MAX ? `${COUNTED_MAX}+` : count(only)}</span>
            )}
          </button>
        ))}
      </div>
      <Select aria-label="Kind" value={kind} options={KINDS} onPick={(kind) => want({ kind })} />
      <Select
        aria-label="Agent"
        value={agentId}
        options={[["", "Any agent"], ...known]}
        onPick={(agentId) => want({ agentId })}
      />
      <label class="row">
        <input
          type="checkbox"
          checked={archived}
          onChange={(event) => want({ archived: event.currentTarget.checked })}
        />
        Archived
      </label>
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms */}
      <div class="joined" role="group" aria-label="Layout">
        {SHAPES.map(([shape, text, title]) => (
          <Button
            text={text}
            key={shape}
            aria-pressed={layout === shape}
            title={title}
            data-act={`Sessions as a ${shape}`}
            onClick={() => want({ shape })}
          />
        ))}
      </div>
      {has("sessions.search") && (
        <Button
          text="Search messages"
          class="quiet at-start"
          title="Find words in the messages of all sessions"
          onClick={() => searchMessages()}
        />
      )}
    </>
  );
}
