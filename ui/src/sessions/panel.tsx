// Owns the list of sessions, as a tree or a flat list: keyboard, pointer and scroll position.
// SP1: the focus stays on the list itself, and an attribute of the list names the active row. So rows may
//      leave the document, and the Tab key reaches nothing inside a row.
// SP2: if rows above the visible rows move, the visible rows stay in place. A new list starts at its top.

import type { ComponentChildren, HTMLAttributes, RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { has } from "../gateway.ts";
import { pressed } from "../keys/table.ts";
import { searchMessages, searchName } from "../overlay.ts";
import { Button } from "../parts/button.tsx";
import { Awaited } from "../parts/failure.tsx";
import { counted } from "../parts/format.ts";
import { Name } from "../parts/name.tsx";
import { useSize } from "../parts/size.ts";
import { go } from "../route.ts";
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
  readBranch,
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
  const read = (): void => void readBranch(parent);
  useEffect(() => {
    if (problem === undefined) read();
  });
  return (
    <div class="row soft session-more" role="presentation" style={lineStyle(level)}>
      {problem === undefined ? "Loading…" : <Button text="Could not load. Retry" onClick={read} />}
    </div>
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
): void {
  if (window.matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  const places = new Map(before.map(({ key }, at) => [key, at]));
  const first = Math.floor(box.scrollTop / ROW_HEIGHT);
  const seen = Math.ceil(box.clientHeight / ROW_HEIGHT);
  lines.slice(first, first + seen).forEach(({ key }, at) => {
    const was = places.get(key);
    const fromY = was === undefined ? undefined : (was - first - at) * ROW_HEIGHT + scrolled;
    if (fromY === 0) return;
    const way = Math.max(-WAY_MAX_PX, Math.min(WAY_MAX_PX, fromY ?? 0));
    const frames = fromY === undefined ? { opacity: [0, 1] } : { translate: [`0 ${way}px`, "0 0"] };
    document.getElementById(rowId(key))?.animate(frames, MOTION);
  });
}

/** Manages the scroll position: keeps visible rows in place, and scrolls to the selected row. */
function useBox(lines: readonly ForestLine[], selected: string | undefined) {
  const box = useRef<HTMLDivElement>(null);
  /** The lines and the filters at the last change. If the filters differ now, the list scrolls to its top. */
  const before = useRef({ lines, wish: wish.value });
  /** The last selected row to which the list has scrolled, or from which the reader has scrolled away. */
  const met = useRef<string | undefined>(undefined);
  const { moved } = picture.value;
  const leave = (): void => {
    met.current = selected;
  };
  const show = (at: number): void => {
    const element = box.current;
    if (element === null) return;
    const bottom = (at + 1) * ROW_HEIGHT - element.clientHeight;
    element.scrollTop = Math.min(Math.max(element.scrollTop, bottom), at * ROW_HEIGHT);
  };
  useLayoutEffect(() => {
    const element = box.current;
    const last = before.current;
    before.current = { lines, wish: wish.value };
    if (element === null || last.lines === lines) return;
    const { scrollTop, clientHeight } = element;
    if (last.wish !== wish.value) {
      leave();
      element.scrollTop = 0;
      return;
    }
    if (moved && scrollTop > 0) {
      const first = Math.floor(scrollTop / ROW_HEIGHT);
      const seen = Math.ceil(clientHeight / ROW_HEIGHT);
      element.scrollTop += shiftOf(last.lines, lines, first, seen) * ROW_HEIGHT;
    }
    showMoves(last.lines, lines, element, element.scrollTop - scrollTop);
  }, [lines]);
  useEffect(() => {
    if (selected === undefined || met.current === selected) return;
    const at = lines.findIndex((line) => line.key === selected);
    if (at < 0) return;
    leave();
    show(at);
  }, [lines, selected]);
  const pageRows = (): number => Math.max(1, Math.floor((box.current?.clientHeight ?? 0) / ROW_HEIGHT) - 1);
  return { box, show, leave, pageRows };
}

/** Number of rows that are drawn above and below the visible ones, so that quick scrolling shows no gaps. */
const MARGIN_ROWS = 8;

type VirtualListProps = HTMLAttributes<HTMLDivElement> & {
  readonly box: RefObject<HTMLDivElement | null>;
  readonly lines: readonly ForestLine[];
  /** Draws one row. The row must be `ROW_HEIGHT` high and have a `key`. */
  readonly draw: (line: ForestLine, index: number) => ComponentChildren;
};

/** Shows a long list: only the visible rows are in the document. */
function VirtualList({ box, lines, draw, ...attributes }: VirtualListProps) {
  const [sight, setSight] = useState({ top: 0, height: 600 });
  const look = (element: HTMLElement): void =>
    setSight({ top: element.scrollTop, height: element.clientHeight });
  useSize(box, look);
  const first = Math.max(0, Math.min(Math.floor(sight.top / ROW_HEIGHT), lines.length) - MARGIN_ROWS);
  const end = Math.ceil((sight.top + sight.height) / ROW_HEIGHT) + MARGIN_ROWS;
  return (
    <div ref={box} onScroll={(event) => look(event.currentTarget)} {...attributes}>
      <div
        role="presentation"
        style={{ height: `${lines.length * ROW_HEIGHT}px`, paddingTop: `${first * ROW_HEIGHT}px` }}
      >
        {lines.slice(first, end).map((line, at) => draw(line, first + at))}
      </div>
    </div>
  );
}

function Tree({ lines, selected }: { lines: readonly ForestLine[]; selected: string | undefined }) {
  const [chosen, setChosen] = useState<string>();
  const { box, show, leave, pageRows } = useBox(lines, selected);
  const places = [chosen, selected].map((key) => lines.findIndex((line) => line.key === key));
  const active = places.find((at) => at >= 0) ?? 0;
  const use = (): void => {
    leave();
    holdForUse();
  };
  const press = (event: KeyboardEvent): void => {
    const line = lines[active];
    const deed = deedOf(pressed("rows", event), lines, active, pageRows());
    if (deed === undefined || line === undefined) return;
    event.preventDefault();
    use();
    if (deed.kind === "choose") go({ view: "sessions", key: line.key });
    else if (deed.kind === "turn") toggle(line.key, deed.open);
    else {
      setChosen(lines[deed.at]?.key);
      show(deed.at);
    }
  };
  const tree = wish.value.shape === "tree" && !isFiltered.value;
  const draw = (line: ForestLine, index: number) => {
    if (line.kind === "more") return <More key={line.key} line={line} />;
    const marks = { selected: line.key === selected, active: index === active, tree };
    return <SessionRow key={line.key} line={line} {...marks} />;
  };
  useEffect(() => () => letGo("pointer"), []);
  return (
    // While the pointer or a finger is over it, no row moves.
    <div
      class="session-frame"
      onPointerEnter={(event) => event.pointerType === "mouse" && hold("pointer")}
      onPointerLeave={() => letGo("pointer")}
      onTouchStart={use}
      onTouchMove={use}
      onWheel={leave}
      onPointerDown={leave}
    >
      {unsettled.value > 0 && (
        <Button
          text={`Show ${counted(unsettled.value, "change")}`}
          class="primary small floating session-news"
          onClick={showNews}
        />
      )}
      <VirtualList
        box={box}
        class="virtual-list session-list"
        role="tree"
        tabIndex={0}
        data-list=""
        aria-label={isFiltered.value ? "Matching sessions" : "Sessions"}
        aria-activedescendant={rowId(lines[active]?.key ?? "")}
        onKeyDown={press}
        lines={lines}
        draw={draw}
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
  if (first.kind === "more")
    return <Awaited problem={first.problem} again={() => readBranch(first.parent)} />;
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
