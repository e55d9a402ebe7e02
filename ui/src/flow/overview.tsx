// Draws the overview of the chains in the time window: sessions in a row, with arcs between those that
// exchange messages.

import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { ChainRow } from "../../../src/core/shapes/chain-step.ts";
import { pressed } from "../keys/table.ts";
import { counted } from "../parts/format.ts";
import { useSize } from "../parts/size.ts";
import { type Arc, type Overview, overviewOf } from "./arcs.ts";
import { fitted } from "./fitted.ts";
import { Legend, OVERVIEW } from "./legend.tsx";
import { type Filter, filter, nameOf, pick } from "./state.ts";

const ASLANT_WIDTH = 96;
const WORDS = { send: "talks to", spawn: "spawns", refused: "could not reach" } as const;

const isChosen = (wanted: Filter | undefined, one: Filter): boolean =>
  wanted?.from === one.from && wanted.to === one.to;

const choose = (one: Filter): void => pick(isChosen(filter.value, one) ? undefined : one);

/** Returns what makes a group of the picture a button: there are no buttons in SVG. */
function makeButton(one: Filter, words: string) {
  return {
    role: "button",
    tabindex: 0,
    "aria-pressed": isChosen(filter.value, one),
    "aria-label": fitted(words, 2_000),
    onClick: () => choose(one),
    onKeyDown(event: KeyboardEvent) {
      if (pressed("rows", event) !== "choose") return;
      event.preventDefault();
      choose(one);
    },
  } as const;
}

function ArcOf({ arc }: { arc: Arc }) {
  const { kind, from, to, steps, open } = arc;
  const pair = { from, to };
  const said = `${counted(steps, "step")}${open > 0 ? ", now" : ""}`;
  const words = `${nameOf(from)} ${WORDS[kind]} ${nameOf(to)}: ${said}`;
  const marks = `${open > 0 ? " open" : ""}${isChosen(filter.value, pair) ? " chosen" : ""}`;
  return (
    <g class={`arc kind-${kind}${marks}`} {...makeButton(pair, words)}>
      <title>{fitted(words, 2_000)}</title>
      <path class="arc-hit" d={arc.path} />
      <path class="arc-line" d={arc.path} style={{ strokeWidth: arc.width }} />
      <path class="step-head" d={arc.head} />
    </g>
  );
}

function NodeOf({ node, picture }: { node: Overview["nodes"][number]; picture: Overview }) {
  const { baseline, nodeWidth: width, aslant } = picture;
  const { key, x, steps, active } = node;
  const one = { from: key };
  const name = nameOf(key);
  const words = `${name}: ${counted(steps, "step")}${active ? ", at work" : ""}`;
  const turn = aslant ? " rotate(-36)" : "";
  const place = `translate(${aslant ? x + 5 : x} ${baseline + (aslant ? 20 : 24)})${turn}`;
  const marks = `${active ? " active" : ""}${isChosen(filter.value, one) ? " chosen" : ""}`;
  return (
    <>
      <g class={`node${marks}`} {...makeButton(one, words)}>
        <title>{fitted(key, 2_000)}</title>
        <rect
          class="step-hit"
          x={x - width / 2}
          y={baseline - 12}
          width={width}
          height={aslant ? 24 : 42}
          rx="8"
        />
        <circle cx={x} cy={baseline} r={Math.min(9, 5 + Math.log2(1 + steps) * 0.6)} />
      </g>
      {/* biome-ignore lint/a11y/noAriaHiddenOnFocusable: it does not take the focus */}
      <g class="node-name" aria-hidden="true">
        <text text-anchor={aslant ? "end" : "middle"} transform={place}>
          {fitted(name, aslant ? ASLANT_WIDTH : width - 8)}
        </text>
      </g>
    </>
  );
}

export function OverviewPicture({ chains }: { chains: readonly ChainRow[] }) {
  const box = useRef<HTMLDivElement>(null);
  const [room, setRoom] = useState(800);
  useSize(box, (element) => setRoom(element.clientWidth));
  const order = useRef<readonly string[]>([]);
  const picture = useMemo(() => overviewOf(chains, room, order.current), [chains, room]);
  order.current = picture.nodes.map(({ key }) => key);
  const { nodes, arcs, width, baseline, aslant, left } = picture;
  // Scroll to the middle, where the busiest sessions are.
  useLayoutEffect(() => {
    box.current?.scrollTo({ left: (width - room) / 2 });
  }, [width > room, room]);
  return (
    <section class="flow-overview" aria-labelledby="overview-title">
      <h2 id="overview-title" class="visually-hidden">
        Conversations between sessions
      </h2>
      <Legend marks={OVERVIEW} />
      <div class="scroll-x" ref={box}>
        {/* biome-ignore lint/a11y/useSemanticElements: there are no field sets in SVG */}
        <svg
          width={width}
          height={baseline + (aslant ? 82 : 36)}
          role="group"
          aria-labelledby="overview-title"
        >
          {arcs.map((arc) => (
            <ArcOf key={arc.id} arc={arc} />
          ))}
          {nodes.map((node) => (
            <NodeOf key={node.key} node={node} picture={picture} />
          ))}
        </svg>
      </div>
      {left > 0 && <p class="strip small soft">{`and ${counted(left, "session")} more`}</p>}
    </section>
  );
}
