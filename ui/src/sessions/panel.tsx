// Owns the list of sessions, as a tree or a flat list: keyboard, pointer and scroll position.
// SP1: the focus stays on the list itself, and an attribute of the list names the active row. So rows may
//      leave the document, and the Tab key reaches nothing inside a row.
// SP2: if rows above the visible rows move, the visible rows stay in place. A new list starts at its top.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { has } from "../gateway.ts";
import { pressed } from "../keys/table.ts";
import { searchMessages, searchName } from "../overlay.ts";
import { Button } from "../parts/button.tsx";
import { Awaited } from "../parts/failure.tsx";
import { Name } from "../parts/name.tsx";
import { go } from "../route.ts";
import { VirtualList } from "./virtual-list.tsx";
import "./sessions.css";
import { Bar } from "./bar.tsx";
import { ROW_HEIGHT } from "./facts.ts";
import type { ForestLine } from "./forest.ts";
import { deedOf } from "./keys.ts";
import {
  follow,
  hold,
  holdForUse,
  letGo,
  picture,
  readMore,
  reveal,
  showNews,
  toggle,
  unsettled,
  want,
} from "./model.ts";
import { lineStyle, rowId, SessionRow } from "./row.tsx";
import { shiftOf } from "./shift.ts";
import { isFiltered, wish } from "./wish.ts";

/** The line after the loaded rows of a branch, which loads the next page when it is drawn. */
function More({ line }: { line: Extract<ForestLine, { kind: "more" }> }) {
  const { parent, level, problem } = line;
  const read = (): void => readMore(parent);
  useEffect(() => {
    if (problem === undefined) read();
  });
  return (
    <div class="row session-more" role="presentation" style={lineStyle(level)}>
      {problem === undefined ? "Loading…" : <Button text="Could not load. Retry" onClick={read} />}
    </div>
  );
}

/** Shows a button that moves rows to their new positions, if rows are kept in place. */
function News() {
  const count = unsettled.value;
  if (count === 0) return null;
  return (
    <Button
      text={count === 1 ? "Show 1 change" : `Show ${count} changes`}
      class="session-news"
      onClick={showNews}
    />
  );
}

const MOTION = { duration: 180, easing: "ease-out" };
/** A row that comes from farther away is drawn as if it came from here. */
const WAY_MAX_PX = 160;

/**
 * Moves the rows in sight from their old places to their new ones, unless the reader prefers no motion. New
 * rows fade in. `scrolled`: pixels by which the list was scrolled meanwhile.
 */
function showMoves(
  before: readonly ForestLine[],
  lines: readonly ForestLine[],
  box: Element,
  scrolled: number,
) {
  if (window.matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  const places = new Map(before.map(({ key }, at) => [key, at]));
  const first = Math.floor(box.scrollTop / ROW_HEIGHT);
  for (const [at, { key }] of lines
    .slice(first, first + Math.ceil(box.clientHeight / ROW_HEIGHT))
    .entries()) {
    const was = places.get(key);
    const fromY = was === undefined ? undefined : (was - first - at) * ROW_HEIGHT + scrolled;
    if (fromY === 0) continue;
    const way = Math.max(-WAY_MAX_PX, Math.min(WAY_MAX_PX, fromY ?? 0));
    const frames = fromY === undefined ? { opacity: [0, 1] } : { translate: [`0 ${way}px`, "0 0"] };
    document.getElementById(rowId(key))?.animate(frames, MOTION);
  }
}

/** Manages the scroll position: keeps visible rows in place, and scrolls to the selected row. */
function useBox(lines: readonly ForestLine[], selected: string | undefined) {
  const box = useRef<HTMLDivElement>(null);
  const before = useRef<readonly ForestLine[]>(lines);
  /** The last selected row to which the list has scrolled, or from which the reader has scrolled away. */
  const met = useRef<string | undefined>(undefined);
  /** Search and filters at the last change. If they differ now, the list scrolls to its top. */
  const wished = useRef(wish.value);
  const { moved } = picture.value;
  const leave = (): void => {
    met.current = selected;
  };
  const show = (at: number): void => {
    const element = box.current;
    if (element === null) return;
    const top = at * ROW_HEIGHT;
    const bottom = top + ROW_HEIGHT - element.clientHeight;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (bottom > element.scrollTop) element.scrollTop = bottom;
  };
  useLayoutEffect(() => {
    const element = box.current;
    if (wished.current !== wish.value) {
      wished.current = wish.value;
      leave();
      element?.scrollTo(0, 0);
    } else if (element !== null && before.current !== lines) {
      const { scrollTop, clientHeight } = element;
      if (moved && scrollTop > 0) {
        const first = Math.floor(scrollTop / ROW_HEIGHT);
        const seen = Math.ceil(clientHeight / ROW_HEIGHT);
        element.scrollTop += shiftOf(before.current, lines, first, seen) * ROW_HEIGHT;
      }
      showMoves(before.current, lines, element, element.scrollTop - scrollTop);
    }
    before.current = lines;
  }, [lines]);
  useEffect(() => {
    if (selected === undefined || met.current === selected) return;
    const at = lines.findIndex((line) => line.key === selected);
    if (at < 0) return;
    met.current = selected;
    show(at);
  }, [lines, selected]);
  const rowsInSight = (): number => Math.max(2, Math.floor((box.current?.clientHeight ?? 0) / ROW_HEIGHT));
  return { box, show, leave, rowsInSight };
}

function Tree({ lines, selected }: { lines: readonly ForestLine[]; selected: string | undefined }) {
  const [chosen, setChosen] = useState<string>();
  const { box, show, leave, rowsInSight } = useBox(lines, selected);
  const indexOfKey = (key: string | undefined): number =>
    key === undefined ? -1 : lines.findIndex((line) => line.key === key);
  const active = [chosen, selected].map(indexOfKey).find((at) => at >= 0) ?? 0;
  const press = (event: KeyboardEvent): void => {
    const line = lines[active];
    const deed = deedOf(pressed("rows", event), lines, active, rowsInSight() - 1);
    if (deed === undefined || line === undefined) return;
    event.preventDefault();
    leave();
    holdForUse();
    if (deed.kind === "choose") go({ view: "sessions", key: line.key });
    else if (deed.kind === "turn") toggle(line.key, deed.open);
    else {
      setChosen(lines[deed.at]?.key);
      show(deed.at);
    }
  };
  const isTree = wish.value.shape === "tree" && !isFiltered.value;
  const draw = (index: number) => {
    const line = lines[index];
    if (line === undefined) return null;
    if (line.kind === "more") return <More key={line.key} line={line} />;
    const marks = { selected: line.key === selected, active: index === active, tree: isTree };
    return <SessionRow key={line.key} line={line} {...marks} />;
  };
  const touch = (): void => {
    leave();
    holdForUse();
  };
  useEffect(() => () => letGo("pointer"), []);
  return (
    // While the pointer or a finger is over it, no row moves.
    <div
      class="session-frame"
      onPointerEnter={(event) => event.pointerType === "mouse" && hold("pointer")}
      onPointerLeave={() => letGo("pointer")}
      onTouchStart={touch}
      onTouchMove={touch}
      onWheel={leave}
      onPointerDown={leave}
    >
      <News />
      <VirtualList
        box={box}
        class="virtual-list session-list"
        role="tree"
        tabIndex={0}
        data-list=""
        aria-label={isFiltered.value ? "Matching sessions" : "Sessions"}
        aria-activedescendant={rowId(lines[active]?.key ?? "")}
        onKeyDown={press}
        count={lines.length}
        row={draw}
      />
    </div>
  );
}

function OtherSearch() {
  const words = wish.value.search.trim();
  if (words === "" || !has("sessions.search")) return null;
  return (
    <Button
      text={<Name text={searchName(words)} />}
      class="cut session-other-search"
      onClick={() => searchMessages(words)}
    />
  );
}

function Body({ selected }: { selected: string | undefined }) {
  const { lines, loading } = picture.value;
  const [first] = lines;
  if (loading) return <p class="loading">Loading…</p>;
  if (first === undefined)
    return isFiltered.value ? (
      <div class="empty">
        <p>No matches</p>
        <Button
          text="Show all sessions"
          onClick={() => want({ search: "", only: "", kind: "", agentId: "" })}
        />
      </div>
    ) : (
      <p class="empty">No sessions yet. Each conversation with an agent is a session: press New.</p>
    );
  if (first.kind === "more") return <Awaited problem={first.problem} again={() => readMore(first.parent)} />;
  return <Tree lines={lines} selected={selected} />;
}

export function SessionsPanel({ selected }: { selected: string | undefined }) {
  useEffect(follow, []);
  // An effect after the paint may come after a press of the arrow key that collapses the row again.
  useLayoutEffect(() => reveal(selected), [selected]);
  return (
    <div class="sessions">
      <Bar />
      <Body selected={selected} />
      <OtherSearch />
    </div>
  );
}
