// Shows failures of one cause as one row, with actions for all of them. Its rows are below it on demand.

import type { ComponentChildren } from "preact";
import { useId, useState } from "preact/hooks";
import type { AttentionItem } from "../../../src/contract/methods/attention.ts";
import { Button } from "../parts/button.tsx";
import { Name } from "../parts/name.tsx";
import { Time } from "../parts/time.tsx";
import { busy } from "./actions.ts";
import { deedsForAll, type Entry, namesIn } from "./causes.ts";
import { DEED_WORDS, type Deed, markOf, styleOf, toneOf } from "./marks.ts";
import { itemName } from "./model.ts";
import { moved } from "./moved.ts";

export function Bundle(props: {
  entry: Entry;
  select: ComponentChildren;
  onDeed: (items: readonly AttentionItem[], deed: Deed) => void;
  children: ComponentChildren;
}) {
  const { entry, select, onDeed, children } = props;
  const { id, items } = entry;
  const [open, setOpen] = useState(false);
  const rowsId = useId();
  const [newest] = items;
  const isBusy = items.some((item) => busy.value.has(item.id));
  const held = isBusy || moved.value.has(id);
  const turn = (): void => setOpen(!open);
  return (
    <li data-item class={`inbox-row inbox-bundle tone-${toneOf(newest)} ${open ? "open" : ""}`}>
      <div class="inbox-head">
        <span class="row inbox-mark">
          {select}
          <span class="chip">{markOf(newest)}</span>
        </span>
        <p class="line inbox-name">
          <Button
            text={<Name text={newest.summary} />}
            class="plain inbox-link"
            data-row={id}
            aria-expanded={open}
            aria-controls={open ? rowsId : undefined}
            onClick={turn}
          />
          <span class="inbox-times">×{items.length}</span>
        </p>
        <Time class="inbox-age small" at={newest.since} as="age" />
        <div class="inbox-actions">
          {deedsForAll(items).map((deed) => (
            <Button
              text={
                isBusy && busy.value.get(newest.id) === deed && deed === "retry"
                  ? "Retrying…"
                  : `${DEED_WORDS[deed]} all`
              }
              key={deed}
              class={styleOf(deed)}
              aria-busy={isBusy}
              aria-disabled={held}
              onClick={() => held || onDeed(items, deed)}
            />
          ))}
          <button
            type="button"
            class="quiet inbox-more"
            aria-label={`Show all ${items.length}`}
            aria-expanded={open}
            onClick={turn}
          >
            <span aria-hidden="true">{open ? "▴" : "▾"}</span>
          </button>
        </div>
      </div>
      {!open && <Name as="p" class="cut inbox-summary" text={namesIn(items.map(itemName))} />}
      {open && (
        <ul class="inbox-rows rows" id={rowsId}>
          {children}
        </ul>
      )}
    </li>
  );
}
