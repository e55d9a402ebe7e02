// The inbox: items that need the reader, and sessions that are running, waiting, failed or done. Only one row
// is expanded at a time.
// Enter opens the session of the row with the focus, and Space expands the row.

import type { RefObject } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { AttentionGroupRows, AttentionItem } from "../../../src/contract/methods/attention.ts";
import { GROUP_TITLES } from "../../../src/core/rules/attention/groups.ts";
import { INBOX_PARTS } from "../features.ts";
import { pressed } from "../keys/table.ts";
import { Button } from "../parts/button.tsx";
import { Confirm } from "../parts/dialog.tsx";
import { Examples } from "../parts/examples.tsx";
import { Awaited } from "../parts/failure.tsx";
import { useKept } from "../parts/kept.ts";
import { lazy } from "../parts/lazy.tsx";
import { counts } from "../sessions/model.ts";
import { Welcome } from "../welcome.tsx";
import { act, busy, doubtOfAll } from "./actions.ts";
import { type Entry, entriesOf } from "./causes.ts";
import { CALM, DEED_WORDS, type Deed, FAILED_ABOUT, SHOWN } from "./marks.ts";
import { groups, notify, problem, readAgain, turnNotify } from "./model.ts";
import { moved, useMoves } from "./moved.ts";
import "./inbox.css";
import { InboxRow } from "./row.tsx";
import { isSnoozed, snooze, wake } from "./snooze.ts";
import { type Filter, type InboxUse, isWanted, SelectionBar, TriageTools, toggleIds } from "./triage.tsx";

const Change = lazy(async () => (await import("./change.tsx")).Change);

/** Names the link to all failed sessions, which also are those that need the reader. */
const allFailed = (count = 0): string => (count < 2 ? "All failed sessions" : `All ${count} failed sessions`);

function Group({ rows, use }: { rows: AttentionGroupRows; use: InboxUse }) {
  const { group, more, items } = rows;
  const [all, setAll] = useKept(`all of ${group}`, false);
  const triages = group === "needs_you";
  const awake = triages ? items.filter((item) => !isSnoozed(item)) : items;
  const entries = entriesOf(triages ? awake.filter((item) => isWanted(item, use.filter)) : items);
  const snoozed = items.length - awake.length;
  const count = rows.count - snoozed;
  const shown = all ? entries : entries.slice(0, SHOWN[group]);
  const older = rows.count - items.length;
  if (count === 0 && !triages) return null;
  return (
    <section class={`stack inbox-${group}`} aria-labelledby={`inbox-${group}`}>
      <div class="row inbox-title">
        <h2 id={`inbox-${group}`} class="row">
          {GROUP_TITLES[group]}{" "}
          <span class={triages ? "chip tone-busy" : "soft"}>{more ? `${count}+` : count}</span>
        </h2>
        {triages && <TriageTools items={awake} use={use} />}
      </div>
      {triages && <SelectionBar items={shown.flatMap(({ items }) => items)} use={use} />}
      {group === "failed" && (
        <p class="soft">
          {FAILED_ABOUT} <a href="#/sessions?only=failed">{allFailed(counts.value?.failed)}</a>
        </p>
      )}
      {count === 0 && <p class="soft">{CALM}</p>}
      {count > 0 && (
        <ul class="inbox-rows rows card">
          {shown.map((entry) => (
            <InboxRow key={entry.id} entry={entry} triages={triages} use={use} />
          ))}
        </ul>
      )}
      {shown.length < entries.length && (
        <Button
          text={`Show ${entries.length - shown.length} more`}
          class="quiet at-start"
          onClick={() => setAll(true)}
        />
      )}
      {shown.length === entries.length && older > 0 && (
        <p class="soft">{older} older ones are in the list of sessions.</p>
      )}
      {snoozed > 0 && <Button text={`Show ${snoozed} snoozed`} class="quiet at-start" onClick={wake} />}
    </section>
  );
}

/**
 * Keeps the focus in the list when the row with the focus moves away. If that row is expanded, the focus
 * moves with it, unless an action of the reader moved it. Otherwise the row that takes its place gets the
 * focus.
 */
function useFocus(frame: RefObject<HTMLDivElement | null>, open: string | undefined) {
  const rowsOf = (part: Element | null | undefined): HTMLElement[] => [
    ...(part?.querySelectorAll<HTMLElement>("[data-row]") ?? []),
  ];
  // Read these values during rendering, because they must describe the page before the rows change.
  const { activeElement } = document;
  const row = rowsOf(activeElement?.closest(".inbox-row"))[0];
  const group = row?.closest("section");
  const at = row === undefined ? -1 : rowsOf(group).indexOf(row);
  const id = row?.dataset.row ?? "";
  const follows = id === open && !busy.value.has(id);
  useLayoutEffect(() => {
    if (at < 0 || activeElement?.isConnected === true) return;
    const all = rowsOf(frame.current);
    const same = follows ? all.find(({ dataset }) => dataset.row === id) : undefined;
    const left = group?.isConnected === true ? rowsOf(group) : [];
    (same ?? left[at] ?? left.at(-1) ?? all[0])?.focus();
  });
}

export function Inbox() {
  const [open, setOpen] = useKept<string | undefined>("open row", undefined);
  /** An action that the reader has still to confirm. */
  const [doubt, setDoubt] = useState<{ items: readonly AttentionItem[]; deed: Deed; words: string }>();
  const onPeek = (id: string): void => setOpen((before) => (before === id ? undefined : id));
  const [filter, setFilter] = useKept<Filter>("filter", "");
  const [selected, setSelected] = useState<ReadonlySet<string>>();
  const onDeed = (items: readonly AttentionItem[], deed: Deed): void => {
    const words = doubtOfAll(items, deed);
    if (words === undefined) void act(items, deed);
    else setDoubt({ items, deed, words });
  };
  const frame = useRef<HTMLDivElement>(null);
  const onKey = (event: KeyboardEvent, entry: Entry): void => {
    const target = event.target as HTMLElement;
    // It is the row of one failure below that of its cause.
    if (target.closest(".inbox-row") !== event.currentTarget) return;
    // A held key must not act on the row that gets the focus.
    if (event.repeat && event.key === "Enter" && target.matches("a, button")) event.preventDefault();
    const action = pressed("inbox", event);
    if (action === undefined || action === "enter") return;
    const ids = entry.items.map(({ id }) => id);
    // Space presses a button, and shows the rows of a cause.
    if (action === "peek" && (target.dataset.row === undefined || entry.items.length > 1)) return;
    event.preventDefault();
    if (event.repeat) return;
    if (action === "peek") onPeek(entry.id);
    else if (action === "select") setSelected(toggleIds(selected ?? new Set(), ids));
    else if (moved.value.has(entry.id)) return;
    else if (action === "snooze") snooze(entry.items, "hour");
    else if (entry.items.every(({ actions }) => actions.includes(action))) onDeed(entry.items, action);
  };
  const use = { open, onPeek, onKey, onDeed, filter, onFilter: setFilter, selected, onSelect: setSelected };
  useFocus(frame, open);
  useMoves(frame);
  const isEmpty = groups.value?.every(({ count }) => count === 0) === true;
  return (
    <div ref={frame} class="inbox" data-list>
      <div class="bar inbox-bar">
        <p class="soft small inbox-hint">
          <kbd>?</kbd> shows the keys
        </p>
        {notify.value !== "impossible" && (
          <Button
            text="Notify me"
            data-act=""
            aria-pressed={notify.value === "on"}
            onClick={() => void turnNotify()}
          />
        )}
        {INBOX_PARTS.map((Part, at) => (
          <Part key={at} />
        ))}
        <p class="visually-hidden" role="status">
          {[...busy.value.values()].includes("retry") && "Retrying."}
        </p>
      </div>
      <Awaited value={groups.value} problem={problem.value} again={() => void readAgain()} />
      {isEmpty ? (
        <div class="inbox-empty">
          <Welcome>
            <Examples />
          </Welcome>
          <p class="empty">
            Questions, failures and requests of your agents appear here, and running and finished work.
          </p>
        </div>
      ) : (
        groups.value?.map((rows) => <Group key={rows.group} rows={rows} use={use} />)
      )}
      {doubt !== undefined && (
        <Confirm
          title={`${DEED_WORDS[doubt.deed]}${doubt.items.length > 1 ? ` ${doubt.items.length}` : ""}?`}
          action={DEED_WORDS[doubt.deed]}
          onConfirm={() => void act(doubt.items, doubt.deed)}
          onClose={() => setDoubt(undefined)}
        >
          <p>{doubt.words}</p>
          {doubt.items.map((item) => item.kind === "instructions" && <Change key={item.id} item={item} />)}
        </Confirm>
      )}
    </div>
  );
}
