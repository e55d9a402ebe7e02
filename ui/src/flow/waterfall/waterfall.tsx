// Shows one chain over time: a tree of runs, model calls, tool calls and waits, each with its bar.
// WV1: only the visible rows are in the document.
// WV2: for the keyboard and for screen readers, the rows are a tree: arrow keys move between rows, and open
// and close them.

import "./waterfall.css";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { ChainCall, ChainStep } from "../../../../src/core/shapes/chain-step.ts";
import { safeLine } from "../../../../src/core/text/safe-text.ts";
import { after, now } from "../../clock.ts";
import { duration, tokens } from "../../parts/format.ts";
import { useKept } from "../../parts/kept.ts";
import { Name } from "../../parts/name.tsx";
import { Cost } from "../../parts/time.tsx";
import { type ChainViewProps, Frame } from "../sequence/frame.tsx";
import { useKeys } from "../sequence/keys.ts";
import { useSight } from "../sequence/sight.ts";
import {
  type Bar,
  barsOf,
  barWords,
  countOpenLevels,
  type Row,
  rowsOf,
  type Span,
  spanOf,
  ticksOf,
  totalOf,
} from "./bars.ts";

/** Height of a row. On a phone it has room for two lines of a name, and for a finger. */
const ROW = 26;
const ROW_NARROW = 40;
const HEAD_HEIGHT = 30;
/** Width of the column with the names. It is narrower on a phone. */
const NAMES = 300;
const NAMES_NARROW = 192;
const NARROW = 600;
/** Minimum distance between two times of the scale. */
const TICK_WIDTH = 60;
/** Width of the words of a tick, which are not shown if they would be cut at the right edge. */
const TICK_ROOM = 40;
/** Number of rows up to which further levels of runs are open at first. */
const OPEN_ROWS_MAX = 200;
const MOVING_MS = 1_000;
const NONE_FLIPPED: ReadonlySet<string> = new Set();
/** Maximum number of levels that are indented. Deeper levels have the same indent as the last one. */
const LEVELS_MAX = 8;

interface WaterfallProps extends Omit<ChainViewProps, "onChoose"> {
  readonly rawSteps: readonly ChainStep[];
  readonly calls: readonly ChainCall[] | undefined;
  readonly onChoose: (id: string, call?: ChainCall) => void;
}

interface Scale {
  readonly span: Span;
  /** Width of the names, and of the bars beside them. */
  readonly names: number;
  readonly width: number;
  readonly rowHeight: number;
  readonly nowMs: number;
}

const xOf = ({ span, width }: Scale, at: number): number =>
  Math.max(0, Math.min(1, (at - span.from) / (span.to - span.from))) * width;

function BarOf({ bar, scale, inside = [] }: { bar: Bar; scale: Scale; inside?: readonly Bar[] }) {
  const { kind, at, startedAt = at, endAt = scale.nowMs, failed, slowest = false } = bar;
  const [left, from, right] = [xOf(scale, at), xOf(scale, startedAt), xOf(scale, endAt)];
  const open = bar.endAt === undefined ? " open" : "";
  return (
    <>
      {from - left > 1 && (
        <span class="bar-queued" style={{ left: `${left}px`, width: `${from - left}px` }} />
      )}
      <span
        class={`bar-of kind-${kind}${failed ? " is-failed" : ""}${open}${slowest ? " is-slowest" : ""}`}
        style={{ left: `${from}px`, width: `${Math.max(3, right - from)}px` }}
      />
      {inside.map((child) => (
        <BarOf key={child.id} bar={child} scale={scale} />
      ))}
    </>
  );
}

interface RowProps {
  readonly row: Row;
  readonly at: number;
  readonly count: number;
  readonly scale: Scale;
  readonly found: boolean;
  readonly focusable: boolean;
  readonly chosen: boolean;
}

/** The row has the focus, and tells screen readers what its bar shows. */
function RowOf({ row, at, count, scale, found, focusable, chosen }: RowProps) {
  const { bar, level, open } = row;
  const { at: begin, startedAt = begin, endAt, children } = bar;
  const hasMore = children.length > 0;
  // A closed row stands for those below it, too.
  const { used, cost } = open ? { used: bar.tokens ?? 0, cost: bar.cost ?? 0 } : totalOf(bar);
  const words = safeLine(barWords({ ...bar, tokens: used, cost }, scale.span.from, scale.nowMs));
  // If a run is closed, its own bar shows its calls and waits.
  const inside = open || bar.kind !== "run" ? [] : children.filter(({ kind }) => kind !== "run");
  return (
    <div
      class={`waterfall-row${chosen ? " chosen" : ""}${found ? " found" : ""}`}
      data-step={bar.id}
      role="treeitem"
      tabIndex={focusable ? 0 : -1}
      aria-level={level}
      aria-posinset={at + 1}
      aria-setsize={count}
      aria-selected={chosen}
      aria-expanded={hasMore ? open : undefined}
      title={words}
      style={{ top: `${at * scale.rowHeight}px`, "--level": Math.min(level - 1, LEVELS_MAX) }}
    >
      <span class="visually-hidden">{words}</span>
      <span class="row waterfall-name" aria-hidden="true" style={{ width: `${scale.names}px` }}>
        <span class="waterfall-turn" data-turn={hasMore ? bar.id : undefined}>
          {hasMore && (open ? "▾" : "▸")}
        </span>
        <span class={`waterfall-mark kind-${bar.kind}${bar.failed ? " is-failed" : ""}`} />
        <Name as="span" class="waterfall-text cut" text={bar.name} />
        {bar.slowest === true && <span class="chip tone-warn">slowest</span>}
        <span class="row waterfall-figures">
          {used > 0 && <span>{tokens(used)}</span>}
          {cost > 0 && <Cost usd={cost} />}
          <span>{endAt === undefined ? "…" : duration(endAt - startedAt)}</span>
        </span>
      </span>
      <span class="waterfall-bars" aria-hidden="true">
        <BarOf bar={bar} scale={scale} inside={inside} />
      </span>
    </div>
  );
}

function Ticks({ scale }: { scale: Scale }) {
  const { span, width, names } = scale;
  const hasRoom = (at: number): boolean => at === 0 || xOf(scale, span.from + at) < width - TICK_ROOM;
  const ticks = ticksOf(span, width / TICK_WIDTH).filter(hasRoom);
  return (
    <div class="flow-heads waterfall-head" style={{ width: `${names + width}px` }} aria-hidden="true">
      <span class="flow-corner waterfall-corner" style={{ width: `${names}px` }}>
        <span>Run, call or wait</span>
        <span>tokens, cost, time</span>
      </span>
      {ticks.map((at) => (
        <span key={at} class="waterfall-tick" style={{ left: `${names + xOf(scale, span.from + at)}px` }}>
          {at === 0 ? "0" : duration(at)}
        </span>
      ))}
    </div>
  );
}

/** Returns the time, each second anew, while the chain is active. Otherwise 0: no bar needs it. */
function useNow(active: boolean): number {
  const [, redraw] = useState(0);
  useEffect(() => {
    if (!active) return;
    return after(MOVING_MS, () => redraw(now()));
  });
  return active ? now() : 0;
}

export function Waterfall(props: WaterfallProps) {
  const { rawSteps, calls, around, chosen, onChoose, found, active, zoom } = props;
  const nowMs = useNow(active);
  const sight = useSight(false);
  const { width: room } = sight.sight;
  const [names, rowHeight] = room < NARROW ? [NAMES_NARROW, ROW_NARROW] : [NAMES, ROW];
  const bars = useMemo(() => barsOf(rawSteps, calls ?? [], around), [rawSteps, calls, around]);
  // Rows that the reader has opened or closed.
  const [flipped, setFlipped] = useKept("flipped rows", NONE_FLIPPED);
  const levels = useMemo(() => countOpenLevels(bars, OPEN_ROWS_MAX), [bars]);
  const rows = rowsOf(
    bars,
    ({ id, kind }, level) => (kind !== "group" && level <= levels) !== flipped.has(id),
  );
  const width = Math.max(120, room - names - 16) * Math.max(1, zoom);
  const scale = { span: spanOf(rawSteps, nowMs), names, width, rowHeight, nowMs };
  const height = HEAD_HEIGHT + rows.length * rowHeight;
  const whole = useMemo(() => {
    const lines = rows.map(({ bar: { at, endAt = nowMs, failed } }, index) => ({
      ...{ from: xOf(scale, at), to: xOf(scale, endAt), failed },
      y: HEAD_HEIGHT + (index + 0.5) * rowHeight,
    }));
    return { width, height, lanes: [], lines };
  }, [bars, flipped, width, height, nowMs]);
  const find = (id: string): Row | undefined => rows.find(({ bar }) => bar.id === id);
  const flip = (id: string): void => {
    const next = new Set(flipped);
    if (!next.delete(id)) next.add(id);
    setFlipped(next);
  };
  const choose = (id: string): void => {
    const bar = find(id)?.bar;
    const call = calls?.find((one) => one.id === id);
    if (bar?.kind === "group") flip(id);
    else if (bar !== undefined) onChoose(bar.step.id, call);
  };
  const onOther = (id: string, action: string): boolean => {
    const row = find(id);
    if (row === undefined || row.bar.children.length === 0) return false;
    if ((action === "open" && !row.open) || (action === "close" && row.open)) flip(id);
    return action === "open" || action === "close";
  };
  const ids = rows.map(({ bar }) => bar.id);
  const keys = useKeys({ ...props, ids, box: sight.box, onChoose: choose, onOther });
  const onClick = (event: MouseEvent): void => {
    const turned = (event.target as Element).closest("[data-turn]")?.getAttribute("data-turn");
    if (turned == null) keys.handlers.onClick(event);
    else flip(turned);
  };
  return (
    <Frame
      sight={sight}
      keys={{ ...keys, handlers: { ...keys.handlers, onClick } }}
      height={height}
      whole={whole}
    >
      <Ticks scale={scale} />
      <div
        class="waterfall-space"
        style={{
          height: `${rows.length * rowHeight + 12}px`,
          width: `${names + width}px`,
          "--row": `${rowHeight}px`,
        }}
        role="tree"
        tabIndex={-1}
        aria-label={`Waterfall with ${rows.length} rows; the arrow keys move, open and close`}
      >
        {sight
          .rowsNear(rows, rowHeight, ({ bar }) => bar.id === keys.inTab)
          .map(({ row, at }) => {
            const { id, kind, step } = row.bar;
            return (
              <RowOf
                key={id}
                row={row}
                at={at}
                scale={scale}
                count={rows.length}
                found={found.has(id)}
                focusable={id === keys.inTab}
                chosen={chosen === step.id && (kind === "run" || kind === "wait")}
              />
            );
          })}
      </div>
      {calls === undefined && <p class="loading">Loading calls…</p>}
    </Frame>
  );
}
