// The filter of what needs the reader, and the rows that the reader has selected, with actions for them.

import type { AttentionItem } from "../../../src/contract/methods/attention.ts";
import { safeLine } from "../../../src/core/text/safe-text.ts";
import { Button } from "../parts/button.tsx";
import { Select } from "../parts/select.tsx";
import { busy } from "./actions.ts";
import type { Entry } from "./causes.ts";
import { DEED_WORDS, type Deed, styleOf } from "./marks.ts";
import { maySnooze, SNOOZES, type Snooze, snooze } from "./snooze.ts";

const FILTERS = {
  "": "Everything",
  permissions: "Permissions",
  questions: "Questions",
  failures: "Failures",
  deliveries: "Deliveries",
  others: "Others",
} as const;
export type Filter = keyof typeof FILTERS;

const FILTER_OF: Readonly<Partial<Record<AttentionItem["kind"], Filter>>> = {
  permission: "permissions",
  unanswered: "permissions",
  question: "questions",
  run: "failures",
  budget: "failures",
  delivery: "deliveries",
};

export const isWanted = (item: AttentionItem, filter: Filter): boolean =>
  filter === "" || (FILTER_OF[item.kind] ?? "others") === filter;

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

/** The choices of the reader in the inbox, and the actions of its rows. */
export interface InboxUse {
  /** Id of the row whose details are shown. */
  readonly open: string | undefined;
  readonly onPeek: (id: string) => void;
  readonly onKey: (event: KeyboardEvent, entry: Entry) => void;
  readonly filter: Filter;
  readonly onFilter: (filter: Filter) => void;
  /** Ids of the selected items. Undefined: the rows have no boxes. */
  readonly selected: ReadonlySet<string> | undefined;
  readonly onSelect: (selected: ReadonlySet<string> | undefined) => void;
  readonly onDeed: (items: readonly AttentionItem[], deed: Deed) => void;
}

type Props = { readonly items: readonly AttentionItem[]; readonly use: InboxUse };

/** Adds these ids to a selection, or removes them if all of them are in it. */
export function toggleIds(selected: ReadonlySet<string>, ids: readonly string[]): ReadonlySet<string> {
  const hasAll = ids.every((id) => selected.has(id));
  return new Set(hasAll ? [...selected].filter((id) => !ids.includes(id)) : [...selected, ...ids]);
}

export function Box({ items, name, use: { selected, onSelect } }: Props & { name: string }) {
  if (selected === undefined) return null;
  const ids = items.map(({ id }) => id);
  return (
    <input
      type="checkbox"
      aria-label={`Select ${safeLine(name)}`}
      checked={ids.every((id) => selected.has(id))}
      onChange={() => onSelect(toggleIds(selected, ids))}
    />
  );
}

/** `items`: all that need the reader and are not put off. */
export function TriageTools({ items, use }: Props) {
  const { filter, onFilter, selected, onSelect } = use;
  const kinds = Object.entries(FILTERS).flatMap(([kind, words]) => {
    const name = kind as Filter;
    const count = items.filter((item) => isWanted(item, name)).length;
    return name !== filter && count === 0 ? [] : [[name, `${words} (${count})`] as const];
  });
  return (
    <div class="row">
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
export function SelectionBar({ items, use }: Props) {
  const { selected, onSelect, onDeed } = use;
  if (selected === undefined) return null;
  const chosen = items.filter(({ id }) => selected.has(id));
  const isBusy = chosen.some(({ id }) => busy.value.has(id));
  return (
    <div class="bar card inbox-selection" role="toolbar" aria-label="Selected rows">
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
