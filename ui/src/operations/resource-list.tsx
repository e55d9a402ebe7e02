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
  /** Text of the button after it succeeded. It can't be pressed again. */
  readonly after?: string;
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

/** Runs an action. Resolves to true if it succeeded. */
async function perform({ run, done }: RowAction, again?: () => unknown): Promise<boolean> {
  try {
    await run?.();
    if (done !== undefined) say(done);
    return true;
  } catch (problem) {
    complain(problem);
    return false;
  } finally {
    again?.();
  }
}

/** Owns the dialog or the question of the action that was pressed: it stays when the button goes. */
export function useOpened(again?: () => unknown) {
  const [action, setAction] = useState<RowAction>();
  const onClose = (): void => setAction(undefined);
  const { label = "", question, dialog } = action ?? {};
  const opened =
    action !== undefined && question !== undefined ? (
      <Confirm
        title={question.title}
        action={label}
        onConfirm={() => void perform(action, again)}
        onClose={onClose}
      >
        {question.text}
      </Confirm>
    ) : (
      dialog?.({ onClose, onDone: () => again?.() })
    );
  return { opened, onOpen: setAction };
}

/**
 * The button of an action. `again`: called after it. `onOpen`: shows its dialog or its question, see
 * `useOpened`. `data-act`: the palette offers it, too.
 */
export function ActionButton(props: {
  action: RowAction;
  again?: () => unknown;
  onOpen?: (action: RowAction) => void;
  "data-act"?: "";
}) {
  const { action, again, onOpen, ...attributes } = props;
  const { label, about, class: name, disabled = false, expanded, after, question, dialog } = action;
  const [phase, setPhase] = useState<"busy" | "done">();
  const isOff = disabled || phase !== undefined;
  const begin = async (): Promise<void> => {
    setPhase("busy");
    const isDone = await perform(action, again);
    setPhase(isDone && after !== undefined ? "done" : undefined);
  };
  const press = (): void => {
    if (isOff) return;
    if (question === undefined && dialog === undefined) void begin();
    else onOpen?.(action);
  };
  return (
    <Button
      text={phase === "done" ? after : label}
      class={name}
      aria-label={about === undefined ? undefined : `${label} ${safeLine(about)}`}
      aria-disabled={isOff}
      aria-expanded={expanded}
      onClick={press}
      {...attributes}
    />
  );
}

interface RowProps {
  readonly row: ResourceRow;
  readonly again: () => unknown;
  readonly onOpen: (action: RowAction) => void;
}

function Row({ row, again, onOpen }: RowProps) {
  const { name, state, beside, facts = [], error, body, when, actions = [], link, below } = row;
  return (
    <li class={`box out-row ${row.class ?? ""}`}>
      {state !== undefined && <div class="line row-state">{state}</div>}
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
            <ActionButton key={action.label} {...{ action, again, onOpen }} />
          ))}
        </div>
      )}
      {below && <div class="row-below">{below}</div>}
    </li>
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
  list?: Reading<unknown> & { readonly more?: (() => void) | undefined };
  rows: readonly R[] | undefined;
  row: (one: R) => ResourceRow;
  empty?: ComponentChildren;
  frame?: RefObject<HTMLUListElement | null>;
  children?: ComponentChildren;
}) {
  const { title, label = title, words, head, list, rows, row, empty, frame, children } = props;
  const again = () => list?.again();
  const { opened, onOpen } = useOpened(again);
  return (
    <>
      <div class="bar head-bar">
        <h2>{title}</h2>
        {head}
      </div>
      {words !== undefined && <p class="soft">{words}</p>}
      {children}
      {list !== undefined && <Awaited {...list} />}
      {rows?.length === 0 && empty !== undefined && <div class="empty">{empty}</div>}
      {rows !== undefined && (
        <ul ref={frame ?? null} class="out-rows rows card" aria-label={label} aria-busy={list?.busy}>
          {rows.map((one) => {
            const { key, ...drawn } = row(one);
            return <Row key={key} row={{ key, ...drawn }} again={again} onOpen={onOpen} />;
          })}
        </ul>
      )}
      {list?.more && <More onClick={list.more} disabled={list.busy} />}
      {opened}
    </>
  );
}

/** A button below a list, which shows more of it. */
export function More(props: { onClick: () => void; disabled?: boolean }) {
  return (
    <p class="out-more">
      <Button text="Show more" {...props} />
    </p>
  );
}
