// The field for the session patterns of a token: typed text, a list of agents and sessions to add, and a
// warning about patterns that cover no session.

import { useEffect } from "preact/hooks";
import { matchesPattern } from "../../../../src/core/text/pattern.ts";
import { safeLine } from "../../../../src/core/text/safe-text.ts";
import { agents } from "../../agents/known.ts";
import { ask, listSessions } from "../../gateway.ts";
import { useCalmReading } from "../../parts/calm-reading.ts";
import { learnNames, nameOf } from "../../parts/names.ts";
import { useReading } from "../../parts/reading.ts";
import { Select } from "../../parts/select.tsx";
import { patternsIn } from "./words.ts";

const TYPED_MS = 300;
const OFFERED_MAX = 50;
const CHECKED_MAX = 20;
const KEYS_MAX = 1_000;

/** Returns whether a pattern covers no session. False if too many sessions match a part of it. */
async function coversNothing(pattern: string): Promise<boolean> {
  const search = pattern.split("*").reduce((longest, one) => (one.length > longest.length ? one : longest));
  const { sessions, nextCursor } = await ask("sessions.list", {
    ...(search === "" ? {} : { search }),
    limit: KEYS_MAX,
    includeArchived: true,
    includeGlobal: true,
  });
  return nextCursor === undefined && !sessions.some(({ key }) => matchesPattern(pattern, key));
}

/** Returns the patterns in the text that cover no session. They are checked when the reader pauses. */
function useEmpty(text: string): readonly string[] {
  const current = patternsIn(text);
  const { value = [] } = useCalmReading(text, TYPED_MS, async () => {
    const patterns = current.slice(0, CHECKED_MAX);
    // If a check fails, nothing is said: the warning is only a help.
    const areEmpty = await Promise.all(patterns.map((one) => coversNothing(one).catch(() => false)));
    return patterns.filter((_, at) => areEmpty[at]);
  });
  return value.filter((one) => current.includes(one));
}

/** A list of the agents and the newest sessions. The chosen one is added to the patterns. */
function Add({ onPick }: { onPick: (pattern: string) => void }) {
  const listed =
    useReading("token sessions", () => listSessions({ limit: OFFERED_MAX })).value?.sessions ?? [];
  useEffect(() => learnNames(listed), [listed]);
  return (
    <Select
      aria-label="Add an agent or a session"
      value=""
      options={[
        ["", "Add an agent or a session…"],
        ...(agents.value?.agents ?? []).map(({ id }) => [`agent:${id}:*`, `All sessions of ${id}`] as const),
        ...listed.map(({ key }) => [key, `Session ${nameOf(key)}`] as const),
      ]}
      onPick={onPick}
    />
  );
}

export function Sessions(props: { value: string; placeholder: string; onInput: (text: string) => void }) {
  const { value, placeholder, onInput } = props;
  const empty = useEmpty(value);
  return (
    <>
      <label>
        Sessions
        <input
          value={value}
          placeholder={placeholder}
          autocomplete="off"
          spellcheck={false}
          aria-describedby="token-sessions-help"
          onInput={(event) => onInput(event.currentTarget.value)}
        />
        <span id="token-sessions-help" class="soft small">
          Session keys, with * for any text, like agent:research:*. Empty: {placeholder.toLowerCase()}.
        </span>
      </label>
      <Add
        onPick={(pattern) => {
          if (pattern !== "") onInput([...new Set([...patternsIn(value), pattern])].join(", "));
        }}
      />
      <p class="small tone-warn" role="status">
        {empty.length > 0 && `No session yet: ${safeLine(empty.join(", "))}`}
      </p>
    </>
  );
}
