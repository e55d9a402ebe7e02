// One row of the session list: name, kind, state or last failure, jobs, tokens and cost.

import type { ListedRow } from "../../../src/contract/client/web.ts";
import { agentName } from "../agents/known.ts";
import { AgentMark } from "../agents/mark.tsx";
import { Button } from "../parts/button.tsx";
import { Doing } from "../parts/doing.tsx";
import { counted, exactMoney, money, tokens } from "../parts/format.ts";
import { Name, SessionLink } from "../parts/name.tsx";
import { nameOf, sessionName } from "../parts/names.ts";
import { Time } from "../parts/time.tsx";
import { factsOf, ROW_HEIGHT } from "./facts.ts";
import type { RowLine } from "./forest.ts";
import { toggle } from "./model.ts";
import { isFiltered } from "./wish.ts";

/** Maximum number of levels that are indented. Deeper levels have the same indent as the last one. */
const INDENTED_LEVELS_MAX = 6;

/** Shows tokens and cost of a session. `closed`: with those of the sessions below it, which are hidden. */
function Used({ row, closed }: { row: ListedRow; closed: boolean }) {
  const below = closed ? row.below : undefined;
  const [used, cost] = [row.totalTokens + (below?.tokens ?? 0), row.cost + (below?.cost ?? 0)];
  if (used === 0 && cost === 0) return null;
  const all = below === undefined ? "" : `, with ${counted(below.sessions, "session")} below`;
  return (
    <span
      class="end number session-used"
      title={`${used.toLocaleString()} tokens, ${exactMoney(cost)} since the last reset${all}`}
    >
      {below !== undefined && "all "}
      {tokens(used)} tok
      {cost > 0 && ` · ${money(cost)}`}
    </span>
  );
}

/** Returns the id of a row's element, for `aria-activedescendant`. */
export function rowId(key: string): string {
  return `session ${key}`.replaceAll(/\s/g, "_");
}

export function lineStyle(level: number) {
  return { height: `${ROW_HEIGHT}px`, "--depth": Math.min(level - 1, INDENTED_LEVELS_MAX) };
}

export function SessionRow(props: { line: RowLine; selected: boolean; active: boolean; tree: boolean }) {
  const { line, selected, active, tree } = props;
  const { row, key, level, open, gone } = line;
  const name = sessionName(row);
  const hasRoom = row.failure === undefined && (row.jobs === undefined || !tree);
  const facts = factsOf(row, name, agentName(row.agentId));
  const parent = tree || row.spawnedBy === undefined ? "" : ` of ${nameOf(row.spawnedBy)}`;
  const marks = { selected, active, gone, "in-tree": tree };
  const classes = Object.entries(marks).flatMap(([mark, is]) => (is ? mark : []));
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
      class={`session-row ${classes.join(" ")}`}
      style={lineStyle(level)}
    >
      {tree && open === undefined && <span class="session-twist" />}
      {tree && open !== undefined && (
        <Button
          text={<span aria-hidden="true">{open ? "▾" : "▸"}</span>}
          class="plain session-twist"
          tabIndex={-1}
          aria-label={`${open ? "Close" : "Open"} ${name}`}
          onClick={() => toggle(key, !open)}
        />
      )}
      <AgentMark id={row.agentId} />
      <div class="session-words">
        <div class="row">
          <span class="session-name">
            <SessionLink sessionKey={key} name={name} tabIndex={-1} />
          </span>
          {gone && <span class="chip">{isFiltered.value ? "no match" : "gone"}</span>}
          {!gone && row.archivedAt !== undefined && <span class="chip">archived</span>}
          <Time class="session-age number end soft small" at={row.updatedAt} as="age" />
        </div>
        <div class="row session-about soft small">
          <Doing row={row} tabIndex={-1} />
          {hasRoom && <Name as="span" class="session-facts cut" text={facts + parent} />}
          <Used row={row} closed={open === false} />
        </div>
      </div>
    </div>
  );
}
