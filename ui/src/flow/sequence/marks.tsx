// Draws the shapes of a chain's diagram, without texts: runs as bars, steps as arrows, waits as brackets.

import { isFailed } from "../words.ts";
import { type Bar, GUTTER, type Placed } from "./layout.ts";

/** Half of the width of a bar, in SVG units. */
const BAR = 5;

/** Draws a run on the line of its session: its time in the queue, its work, its waits and its outcome. */
export function BarOf({ bar }: { bar: Bar }) {
  const { x, top, run, end, open, failed, silent, waits } = bar;
  const from = run ?? end;
  const height = (a: number, b: number): number => Math.max(2, b - a);
  return (
    <g class={`run${open ? " open" : ""}`}>
      {from > top + 2 && <line class="run-queued" x1={x + 9} x2={x + 9} y1={top} y2={from} />}
      {run !== undefined && (
        <rect
          class={`run-bar tone-${failed ? "bad" : "busy"}`}
          x={x - BAR}
          y={run}
          width={2 * BAR}
          height={height(run, end)}
          rx="3"
        />
      )}
      {run === undefined && !open && (
        <rect class="run-note" x={x - 4} y={top - 4} width="8" height="8" rx="2" />
      )}
      {waits.map((wait) => (
        <rect
          key={wait.top}
          class="run-bar tone-waiting"
          x={x - BAR}
          y={wait.top}
          width={2 * BAR}
          height={height(wait.top, wait.end)}
        />
      ))}
      {failed && <path class="step-cross" d={crossAt(x, end)} />}
      {silent && (
        <>
          <circle class="run-silent" cx={x} cy={end} r="4.5" />
          <text class="step-note" x={x + 14} y={end + 4}>
            silent
          </text>
        </>
      )}
    </g>
  );
}

function crossAt(x: number, y: number): string {
  return `M ${x - 5} ${y - 5} l 10 10 m 0 -10 l -10 10`;
}

/** Draws a line, with a head at this place that points to the right (1) or to the left (-1). */
function Arrow({ line, x, y, way }: { line: string; x: number; y: number; way: number }) {
  return (
    <>
      <path class="step-line" d={line} />
      <path class="step-head" d={`M ${x - way * 8} ${y - 4.5} L ${x} ${y} L ${x - way * 8} ${y + 4.5}`} />
    </>
  );
}

export function ArrowOf({ placed }: { placed: Placed }) {
  const { step, y, from, to } = placed;
  if (step.kind === "wait") return <WaitOf {...placed} />;
  if (step.kind === "message" && to !== undefined) {
    return (
      <>
        <circle class="person" cx={to - 46} cy={y} r="4" />
        <Arrow line={`M ${to - 42} ${y} H ${to - BAR - 2}`} x={to - BAR - 2} y={y} way={1} />
      </>
    );
  }
  if (step.kind === "refused" && from !== undefined) {
    const way = to === undefined || to >= from ? 1 : -1;
    const stop = to === undefined || to === from ? from + 46 : from + (to - from) * 0.6;
    return (
      <>
        <path class="step-line" d={`M ${from + way * BAR} ${y} H ${stop}`} />
        <path class="step-cross" d={crossAt(stop, y)} />
      </>
    );
  }
  if (step.kind === "announce" && from !== undefined)
    return <path class="step-mark" d={`M ${from} ${y - 7} l 7 7 l -7 7 l -7 -7 z`} />;
  if (step.kind === "delivery" && from !== undefined)
    return <Arrow line={`M ${from + BAR} ${y + 3} h 26`} x={from + BAR + 26} y={y + 3} way={1} />;
  if (to === undefined || from === undefined || from === to) {
    const at = to ?? from ?? GUTTER;
    return <Arrow line={`M ${at + BAR} ${y - 10} h 20 v 10 h -18`} x={at + BAR + 2} y={y} way={-1} />;
  }
  const way = to > from ? 1 : -1;
  const end = to - way * (BAR + 2);
  return <Arrow line={`M ${from + way * BAR} ${y} H ${end}`} x={end} y={y} way={way} />;
}

/** Draws a bracket beside the line of the session that waits, from the message to its answer. */
function WaitOf({ y, from, to, top, step }: Placed) {
  if (from === undefined) return null;
  const x = from - 12;
  const way = to !== undefined && to < from ? 1 : -1;
  const end = from - way * (BAR + 2);
  const answered = step.state === "answered" && to !== undefined && to !== from;
  return (
    <>
      {top !== undefined && (
        <path class="wait-line" d={`M ${from - BAR} ${top} H ${x} V ${y} H ${from - BAR}`} />
      )}
      {answered && (
        <>
          <Arrow line={`M ${to + way * BAR} ${y} H ${end}`} x={end} y={y} way={way} />
          {isFailed(step) && <path class="step-cross" d={crossAt((from + to) / 2, y)} />}
        </>
      )}
    </>
  );
}
