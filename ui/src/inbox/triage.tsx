// The filter of what needs the reader, and the actions for the rows that the reader has selected.

import type { AttentionItem } from "../../../src/contract/methods/attention.ts";
import { Button } from "../parts/button.tsx";
import { Select } from "../parts/select.tsx";
import { busy } from "./actions.ts";
import { FILTERS, type Filter, isWanted } from "./filter.ts";
import { DEED_WORDS, type Deed, styleOf } from "./marks.ts";
import { maySnooze, SNOOZES, type Snooze, snooze } from "./snooze.ts";

/** Actions for many rows. To allow needs a look at each. */
const DEEDS_FOR_MANY: readonly Deed[] = ["retry", "dismiss", "deny"];

export function SnoozeChoice({ items, onDone }: { items: readonly AttentionItem[]; onDone?: () => void }) {
  const pick = (until: Snooze | ""): void => {
    if (until === "") return;
    snooze(items, until);
    onDone?.();
  };
  if (!items.some(maySnooze)) return null;
  const times = Object.entries(SNOOZES) as [Snooze, string][];
  return <Select value="" options={[["", "Snooze…"], ...times]} onPick={pick} aria-label="Snooze" />;
}

export interface TriageUse {
  readonly filter: Filter;
  readonly onFilter: (filter: Filter) => void;
  /** Ids of the selected items. Undefined: the rows have no boxes. */
  readonly selected: ReadonlySet<string> | undefined;
  readonly onSelect: (selected: ReadonlySet<string> | undefined) => void;
  readonly onDeed: (items: readonly AttentionItem[], deed: Deed) => void;
}

/** `items`: all that need the reader and are not put off. */
export function TriageTools({ items, use }: { items: readonly AttentionItem[]; use: TriageUse }) {
  const { filter, onFilter, selected, onSelect } = use;
  const kinds = Object.entries(FILTERS).flatMap(([kind, words]) => {
    const name = kind as Filter;
    const count = items.filter((item) => isWanted(item, name)).length;
    return name !== filter && count === 0 ? [] : [[name, `${words} (${count})`] as const];
  });
  return (
    <div class="inbox-tools">
      {(kinds.length > 2 || filter !== "") && (
        <Select value={filter} options={kinds} onPick={onFilter} aria-label="Show" />
      )}
      {items.length > 1 && (
        <Button
          text="Select"
          aria-pressed={selected !== undefined}
          onClick={() => onSelect(selected === undefined ? new Set() : undefined)}
        />
      )}
    </div>
  );
}

/** `items`: those of the rows that the reader sees. */
export function SelectionBar({ items, use }: { items: readonly AttentionItem[]; use: TriageUse }) {
  const { selected, onSelect, onDeed } = use;
  if (selected === undefined) return null;
  const chosen = items.filter(({ id }) => selected.has(id));
  const isBusy = chosen.some(({ id }) => busy.value.has(id));
  return (
    <div class="bar inbox-selection" role="toolbar" aria-label="Selected rows">
      <label>
        <input
          type="checkbox"
          checked={chosen.length > 0 && chosen.length === items.length}
          onChange={(event) =>
            onSelect(new Set(event.currentTarget.checked ? items.map(({ id }) => id) : []))
          }
        />{" "}
        {chosen.length} selected
      </label>
      {DEEDS_FOR_MANY.map((deed) => {
        const count = chosen.filter(({ actions }) => actions.includes(deed)).length;
        return (
          count > 0 && (
            <Button
              text={`${DEED_WORDS[deed]} ${count}`}
              key={deed}
              class={styleOf(deed)}
              aria-busy={isBusy}
              aria-disabled={isBusy}
              onClick={() => isBusy || onDeed(chosen, deed)}
            />
          )
        );
      })}
      <SnoozeChoice items={chosen} onDone={() => onSelect(new Set())} />
    </div>
  );
}
