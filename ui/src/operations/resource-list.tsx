// Owns the lists of the tabs for operators: title, loading, failure, emptiness, rows, and the actions of a
// row with the question or the dialog before each. A tab declares its rows and its words.

import { Button } from "../parts/button.tsx";
import "./rows.css";
import type { ComponentChildren, RefObject } from "preact";
import { useState } from "preact/hooks";
import { safeLine } from "../../../src/core/text/safe-text.ts";
import { tick } from "../clock.ts";
import { Confirm } from "../parts/dialog.tsx";
import { Awaited } from "../parts/failure.tsx";
import { ago } from "../parts/format.ts";
import { Name } from "../parts/name.tsx";
import { complain, say } from "../parts/notices.tsx";
import type { Reading } from "../parts/reading.ts";

export interface DialogProps {
  readonly onClose: () => void;
  readonly onDone: () => void;
}

export interface RowAction {
  readonly label: string;
  /** The thing that it acts on, which tells equal buttons apart for screen readers. */
  readonly about?: string;
  readonly class?: "primary" | "danger" | "quiet";
  readonly disabled?: boolean;
  /** It shows and hides a part of the row. */
  readonly expanded?: boolean;
  readonly run?: () => unknown;
  /** News after it succeeded. */
  readonly done?: string;
  /** Asks before it runs. */
  readonly question?: { readonly title: string; readonly text: ComponentChildren } | undefined;
  /** Opens a dialog in place of `run`. */
  readonly dialog?: (props: DialogProps) => ComponentChildren;
}

export interface ResourceRow {
  readonly key: string;
  readonly class?: string;
  readonly state?: ComponentChildren;
  /** The name of the thing, from anybody. */
  readonly name?: string;
  /** Follows the name on its line. */
  readonly beside?: ComponentChildren;
  /** Facts of lesser weight, each on a line of its own. Texts may come from anybody. */
  readonly facts?: readonly ComponentChildren[];
  readonly error?:
    | { readonly text: string; readonly at?: number | undefined; readonly class?: string }
    | undefined;
  readonly body?: ComponentChildren;
  readonly when?: ComponentChildren;
  readonly actions?: readonly RowAction[];
  /** A link in place of actions. */
  readonly link?: ComponentChildren;
  /** Below the row, as wide as it. */
  readonly below?: ComponentChildren;
}

function Row({ row, onPress }: { row: ResourceRow; onPress: (action: RowAction) => void }) {
  const { name, state, beside, facts = [], error, body, when, actions = [], link, below } = row;
  return (
    <li class={`out-row ${row.class ?? ""}`}>
      {state !== undefined && <div class="row-state">{state}</div>}
      <div class="row-main">
        {(name ?? beside) !== undefined && (
          <p class="line">
            {name !== undefined && <Name as="strong" text={name} />}
            {beside}
          </p>
        )}
        {facts.map((fact, at) => (
          <p key={at} class="soft">
            {typeof fact === "string" ? <Name text={fact} /> : fact}
          </p>
        ))}
        {body}
        {error !== undefined && (
          <p class={`small row-error ${error.class ?? "tone-bad"}`}>
            <Name text={error.text} />
            {error.at !== undefined && <span class="soft"> · {ago(error.at, tick.value)}</span>}
          </p>
        )}
      </div>
      {when}
      {(link ?? actions[0]) !== undefined && (
        <div class="row-actions">
          {link}
          {actions.map((action) => (
            <Button
              text={action.label}
              key={action.label}
              class={action.class}
              aria-label={
                action.about === undefined ? undefined : `${action.label} ${safeLine(action.about)}`
              }
              aria-disabled={action.disabled}
              aria-expanded={action.expanded}
              onClick={() => action.disabled || onPress(action)}
            />
          ))}
        </div>
      )}
      {below}
    </li>
  );
}

/** Rows with their actions. `again`: reads them anew. */
export function Rows<R>(props: {
  label: string;
  rows: readonly R[] | undefined;
  row: (one: R) => ResourceRow;
  empty?: ComponentChildren;
  again: () => unknown;
  busy?: boolean | undefined;
  frame?: RefObject<HTMLUListElement | null>;
}) {
  const { label, rows, row, empty, again, busy, frame } = props;
  const [open, setOpen] = useState<RowAction>();
  const onClose = (): void => setOpen(undefined);
  const perform = async ({ run, done }: RowAction): Promise<void> => {
    try {
      await run?.();
      if (done !== undefined) say(done);
    } catch (problem) {
      complain(problem);
    }
    again();
  };
  const press = (action: RowAction): void => {
    if (action.question === undefined && action.dialog === undefined) void perform(action);
    else setOpen(action);
  };
  return (
    <>
      {rows?.length === 0 && empty !== undefined && <div class="empty">{empty}</div>}
      {rows !== undefined && (
        <ul ref={frame ?? null} class="out-rows rows card" aria-label={label} aria-busy={busy}>
          {rows.map((one) => {
            const { key, ...drawn } = row(one);
            return <Row key={key} row={{ key, ...drawn }} onPress={press} />;
          })}
        </ul>
      )}
      {open?.dialog?.({ onClose, onDone: () => again() })}
      {open?.question !== undefined && (
        <Confirm
          title={open.question.title}
          action={open.label}
          onConfirm={() => void perform(open)}
          onClose={onClose}
        >
          {open.question.text}
        </Confirm>
      )}
    </>
  );
}

/** A list below its title. `head`: beside the title. `children`: between the words and the rows. */
export function ResourceList<R>(props: {
  title: string;
  /** Of the list for screen readers. Default: the title. */
  label?: string;
  words?: ComponentChildren;
  head?: ComponentChildren;
  /** Absent if another list shows the same answer. */
  list?: Pick<Reading<unknown>, "value" | "problem" | "busy" | "again">;
  rows: readonly R[] | undefined;
  row: (one: R) => ResourceRow;
  empty?: ComponentChildren;
  frame?: RefObject<HTMLUListElement | null>;
  children?: ComponentChildren;
}) {
  const { title, words, head, list, children, ...rest } = props;
  return (
    <>
      <div class="bar head-bar">
        <h2>{title}</h2>
        {head}
      </div>
      {words !== undefined && <p class="soft">{words}</p>}
      {children}
      {list !== undefined && <Awaited {...list} />}
      <Rows label={title} again={() => list?.again()} busy={list?.busy} {...rest} />
    </>
  );
}
