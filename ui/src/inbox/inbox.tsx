// The inbox: items that need the reader, and sessions that are running, waiting, failed or done. Only one row
// is expanded at a time.
// Enter opens the session of the row with the focus, and Space expands the row.

import type { RefObject } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { AttentionGroupRows, AttentionItem } from "../../../src/contract/methods/attention.ts";
import { GROUP_TITLES } from "../../../src/core/rules/attention/groups.ts";
import { pressed } from "../keys/table.ts";
import { Confirm } from "../parts/dialog.tsx";
import { Examples } from "../parts/examples.tsx";
import { Awaited } from "../parts/failure.tsx";
import { counts } from "../sessions/model.ts";
import { Welcome } from "../welcome.tsx";
import { act, busy, doubtOf } from "./actions.ts";
import { CALM, DEED_WORDS, type Deed, FAILED_ABOUT, SHOWN } from "./marks.ts";
import { groups, notify, problem, readAgain, turnNotify } from "./model.ts";
import { moved, useMoves } from "./moved.ts";
import "./inbox.css";
import { InboxRow } from "./row.tsx";

interface Doubt {
  readonly item: AttentionItem;
  readonly deed: Deed;
  readonly words: string;
}

interface RowUse {
  readonly open: string | undefined;
  readonly onPeek: (id: string) => void;
  readonly onDeed: (item: AttentionItem, deed: Deed) => void;
}

/** Names the link to all failed sessions, which also are those that need the reader. */
const allFailed = (count = 0): string => (count < 2 ? "All failed sessions" : `All ${count} failed sessions`);

function Group({ rows, use }: { rows: AttentionGroupRows; use: RowUse }) {
  const [all, setAll] = useState(false);
  const { group, count, more, items } = rows;
  const shown = all ? items : items.slice(0, SHOWN[group]);
  const hidden = count - shown.length;
  if (count === 0 && group !== "needs_you") return null;
  return (
    <section class={`inbox-group inbox-${group}`} aria-labelledby={`inbox-${group}`}>
      <h2 id={`inbox-${group}`}>
        {GROUP_TITLES[group]} <span class="inbox-count">{more ? `${count}+` : count}</span>
      </h2>
      {group === "failed" && (
        <p class="soft inbox-about">
          {FAILED_ABOUT} <a href="#/sessions?only=failed">{allFailed(counts.value?.failed)}</a>
        </p>
      )}
      {count === 0 && <p class="inbox-calm">{CALM}</p>}
      {count > 0 && (
        <ul class="inbox-rows card">
          {shown.map((item) => (
            <InboxRow
              key={item.id}
              item={item}
              open={use.open === item.id}
              onPeek={() => use.onPeek(item.id)}
              onDeed={(deed) => use.onDeed(item, deed)}
            />
          ))}
        </ul>
      )}
      {hidden > 0 &&
        (shown.length < items.length ? (
          <button type="button" class="quiet" onClick={() => setAll(true)}>
            Show {items.length - shown.length} more
          </button>
        ) : (
          <p class="soft inbox-rest">{hidden} older ones are in the list of sessions.</p>
        ))}
    </section>
  );
}

function NotifyButton() {
  const state = notify.value;
  if (state === "impossible") return null;
  return (
    <button type="button" data-act="" aria-pressed={state === "on"} onClick={() => void turnNotify()}>
      Notify me
    </button>
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

function Empty() {
  return (
    <div class="inbox-empty">
      <Welcome>
        <Examples />
      </Welcome>
      <p class="empty">
        Questions, failures and requests of your agents appear here, and running and finished work.
      </p>
    </div>
  );
}

export function Inbox() {
  const [open, setOpen] = useState<string>();
  const [doubt, setDoubt] = useState<Doubt>();
  const onPeek = (id: string): void => setOpen((before) => (before === id ? undefined : id));
  const onDeed = (item: AttentionItem, deed: Deed): void => {
    if (moved.value.has(item.id)) return;
    const words = doubtOf(item, deed);
    if (words === undefined) void act(item, deed);
    else setDoubt({ item, deed, words });
  };
  const frame = useRef<HTMLDivElement>(null);
  const press = (event: KeyboardEvent): void => {
    const target = event.target as HTMLElement;
    // A held key must not act on the row that gets the focus.
    if (event.repeat && event.key === "Enter" && target.matches("a, button")) event.preventDefault();
    const id = target.dataset.row;
    if (id === undefined || pressed("inbox", event) !== "peek") return;
    event.preventDefault();
    onPeek(id);
  };
  const shown = groups.value;
  useFocus(frame, open);
  useMoves(frame);
  const isEmpty = shown?.every(({ count }) => count === 0) === true;
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the rows in it have the focus
    <div ref={frame} class="inbox" data-list onKeyDown={press}>
      <div class="inbox-bar">
        <p class="soft inbox-hint">
          <kbd>?</kbd> shows the keys
        </p>
        <NotifyButton />
        <p class="visually-hidden" role="status">
          {[...busy.value.values()].includes("retry") && "Retrying."}
        </p>
      </div>
      <Awaited value={shown} problem={problem.value} again={() => void readAgain()} />
      {isEmpty ? (
        <Empty />
      ) : (
        shown?.map((rows) => <Group key={rows.group} rows={rows} use={{ open, onPeek, onDeed }} />)
      )}
      {doubt !== undefined && (
        <Confirm
          title={`${DEED_WORDS[doubt.deed]}?`}
          action={DEED_WORDS[doubt.deed]}
          onConfirm={() => void act(doubt.item, doubt.deed)}
          onClose={() => setDoubt(undefined)}
        >
          <p>{doubt.words}</p>
        </Confirm>
      )}
    </div>
  );
}
