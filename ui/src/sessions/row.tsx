// One row of the session list: name, kind, state, tokens and cost.

import type { ListedRow } from "../../../src/contract/client/web.ts";
import { tick } from "../clock.ts";
import { age, money, tokens } from "../parts/format.ts";
import { Name, SessionLink, sessionName } from "../parts/name.tsx";
import { State } from "../parts/state.tsx";
import { Time } from "../parts/time.tsx";
import type { RowLine } from "./forest.ts";
import { knownRow, toggle } from "./model.ts";

/** CSS pixels. Every line of the list has this height. */
export const ROW_HEIGHT = 50;
/** Levels that are indented; deeper ones share the last indent. */
const INDENTED_LEVELS_MAX = 6;
const WAITS_SHOWN_MAX = 2;
/** The gateway counts no more children than this. */
const CHILDREN_COUNTED_MAX = 1_000;

const FORMS: Readonly<Record<string, string>> = { subagent: "sub-agent", dm: "direct chat" };

/** Returns the kind of a session; for kind "other", the form of its key. */
function kindWord({ key, sessionKind }: ListedRow): string {
  if (sessionKind !== "other") return sessionKind;
  const form = /^agent:[^:]+:([a-z]+):/.exec(key)?.[1] ?? "other";
  return FORMS[form] ?? form;
}

function Waits({ keys }: { keys: readonly string[] }) {
  return (
    <>
      {keys.slice(0, WAITS_SHOWN_MAX).map((key, index) => {
        const row = knownRow(key);
        return (
          <span key={key}>
            {index > 0 && ", "}
            <SessionLink sessionKey={key} name={sessionName(row ?? { key })} tabIndex={-1} />
          </span>
        );
      })}
      {keys.length > WAITS_SHOWN_MAX && ` +${keys.length - WAITS_SHOWN_MAX}`}
    </>
  );
}

function Doing({ row }: { row: ListedRow }) {
  const { state, queuedRuns, waitingOn = [] } = row;
  if (state === "idle") return <State state={state} />;
  const queued = queuedRuns > 0 ? `, ${queuedRuns} queued` : "";
  if (state === "queued") return <State state={state} text={`queued ${queuedRuns}`} />;
  if (state === "running" || waitingOn.length === 0)
    return <State state={state} text={`${state}${queued}`} />;
  return (
    <span class="session-waits">
      <State state={state} text="waiting on" /> <Waits keys={waitingOn} />
      {queued}
    </span>
  );
}

function Used({ row }: { row: ListedRow }) {
  if (row.totalTokens === 0 && row.cost === 0) return null;
  const words = `${row.totalTokens.toLocaleString()} tokens, ${money(row.cost)} since the last reset`;
  return (
    <span class="session-used number" title={words}>
      {tokens(row.totalTokens)} tok
      {row.cost > 0 && ` · ${money(row.cost)}`}
    </span>
  );
}

function Twist({ line, name }: { line: RowLine; name: string }) {
  const { key, open } = line;
  if (open === undefined) return <span class="session-twist" />;
  return (
    <button
      type="button"
      class="session-twist"
      tabIndex={-1}
      aria-label={`${open ? "Close" : "Open"} ${name}`}
      onClick={() => toggle(key, !open)}
    >
      <span class={open ? "turned" : ""} aria-hidden="true">
        ▸
      </span>
    </button>
  );
}

/** Returns the parent of a session, for lists that don't show the tree. */
function below({ spawnedBy }: ListedRow): string {
  if (spawnedBy === undefined) return "";
  return ` of ${sessionName(knownRow(spawnedBy) ?? { key: spawnedBy })}`;
}

/** Returns the middle part of the second line. */
function facts(row: ListedRow, tree: boolean): string {
  const kind = `${kindWord(row)}${tree ? "" : below(row)}`;
  return [row.agentId, kind, ...(row.channel === "unknown" ? [] : [row.channel])].join(" · ");
}

/** Returns the element id of a row, for `aria-activedescendant`. */
export function rowId(key: string): string {
  return `session ${key}`.replaceAll(/\s/g, "_");
}

/** Returns the style of a line: height and indent. */
export function lineStyle(level: number) {
  return { height: `${ROW_HEIGHT}px`, "--depth": Math.min(level - 1, INDENTED_LEVELS_MAX) };
}

export function SessionRow(props: { line: RowLine; selected: boolean; active: boolean; tree: boolean }) {
  const { line, selected, active, tree } = props;
  const { row, key, level, open, gone } = line;
  const { children = 0 } = row;
  const name = sessionName(row);
  const classes = [
    "session-row",
    selected && "selected",
    active && "active",
    gone && "gone",
    tree && "in-tree",
  ];
  return (
    <div
      id={rowId(key)}
      role="treeitem"
      tabIndex={-1}
      aria-level={level}
      aria-posinset={line.position}
      aria-setsize={line.size}
      aria-expanded={open}
      aria-selected={selected}
      class={classes.filter(Boolean).join(" ")}
      style={lineStyle(level)}
    >
      {tree && <Twist line={line} name={name} />}
      <div class="session-words">
        <div class="session-line">
          <span class="session-name">
            <SessionLink sessionKey={key} name={name} tabIndex={-1} />
          </span>
          {children > 0 && open === false && (
            <span class="session-count" title="Sessions that it spawned">
              {children >= CHILDREN_COUNTED_MAX ? `${CHILDREN_COUNTED_MAX}+` : children}
            </span>
          )}
          {gone ? (
            <span class="chip">gone</span>
          ) : (
            row.archivedAt !== undefined && <span class="chip">archived</span>
          )}
          <Time class="session-age" at={row.updatedAt}>
            {age(row.updatedAt, tick.value)}
          </Time>
        </div>
        <div class="session-line session-about">
          <Doing row={row} />
          <span class="session-facts">
            <Name text={facts(row, tree)} />
          </span>
          <Used row={row} />
        </div>
      </div>
    </div>
  );
}
