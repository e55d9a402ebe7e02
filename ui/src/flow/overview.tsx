// Draws the overview of the chains in the time window: sessions in a row, with arcs between those that
// exchange messages.

import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { ChainRow } from "../../../src/core/shapes/chain-step.ts";
import { counted } from "../parts/format.ts";
import { useSize } from "../parts/size.ts";
import { type Arc, type Node, type Overview, overviewOf } from "./arcs.ts";
import { fitted } from "./fitted.ts";
import { type Filter, filter, nameOf } from "./state.ts";

const ASLANT_WIDTH = 96;
const WORDS = { send: "talks to", spawn: "spawns", refused: "could not reach" } as const;

function isChosen(wanted: Filter | undefined, one: Filter): boolean {
  return wanted?.from === one.from && wanted.to === one.to;
}

function choose(one: Filter): void {
  filter.value = isChosen(filter.value, one) ? undefined : one;
}

/** Returns a key handler that makes Enter and Space act like a click. */
const pressing = (act: () => void) => (event: KeyboardEvent) => {
  if (event.key !== "Enter" && event.key !== " ") return;
  event.preventDefault();
  act();
};

function ArcOf({ arc }: { arc: Arc }) {
  const { kind, from, to, steps, open } = arc;
  const pair = { from, to };
  const chosen = isChosen(filter.value, pair);
  const said = `${counted(steps, "step")}${open > 0 ? ", now" : ""}`;
  const words = `${nameOf(from)} ${WORDS[kind]} ${nameOf(to)}: ${said}`;
  return (
    // biome-ignore lint/a11y/useSemanticElements: there are no buttons in SVG
    <g
      class={`arc kind-${kind}${open > 0 ? " open" : ""}${chosen ? " chosen" : ""}`}
      role="button"
      tabindex={0}
      aria-pressed={chosen}
      aria-label={fitted(words, 2_000)}
      onClick={() => choose(pair)}
      onKeyDown={pressing(() => choose(pair))}
    >
      <title>{fitted(words, 2_000)}</title>
      <path class="arc-hit" d={arc.path} />
      <path class="arc-line" d={arc.path} stroke-width={arc.width} />
      <path class="arc-head" d={arc.head} />
    </g>
  );
}

function NodeOf({ node, picture }: { node: Node; picture: Overview }) {
  const { baseline, nodeWidth: width, aslant } = picture;
  const { key, x, steps, active } = node;
  const one = { from: key };
  const chosen = isChosen(filter.value, one);
  const name = nameOf(key);
  return (
    // biome-ignore lint/a11y/useSemanticElements: there are no buttons in SVG
    <g
      class={`node${active ? " active" : ""}${chosen ? " chosen" : ""}`}
      role="button"
      tabindex={0}
      aria-pressed={chosen}
      aria-label={fitted(`${name}: ${counted(steps, "step")}${active ? ", at work" : ""}`, 2_000)}
      onClick={() => choose(one)}
      onKeyDown={pressing(() => choose(one))}
    >
      <title>{fitted(key, 2_000)}</title>
      <rect class="node-hit" x={x - width / 2} y={baseline - 12} width={width} height={aslant ? 24 : 42} />
      <circle cx={x} cy={baseline} r={Math.min(9, 5 + Math.log2(1 + steps) * 0.6)} />
    </g>
  );
}

/** Draws the name of a session, outside of its button, which has an accessible name of its own. */
function NameOf({ node: { key, x }, picture }: { node: Node; picture: Overview }) {
  const { baseline, nodeWidth, aslant } = picture;
  const name = nameOf(key);
  if (!aslant) {
    return (
      <text x={x} y={baseline + 24} text-anchor="middle">
        {fitted(name, nodeWidth - 8)}
      </text>
    );
  }
  return (
    <text text-anchor="end" transform={`translate(${x + 5} ${baseline + 20}) rotate(-36)`}>
      {fitted(name, ASLANT_WIDTH)}
    </text>
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
    <section class="strip flow-overview" aria-labelledby="overview-title">
      <h2 id="overview-title" class="visually-hidden">
        Conversations between sessions
      </h2>
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
          {/* biome-ignore lint/a11y/noAriaHiddenOnFocusable: nothing of it takes the focus */}
          <g class="node-names" aria-hidden="true">
            {nodes.map((node) => (
              <NameOf key={node.key} node={node} picture={picture} />
            ))}
          </g>
        </svg>
      </div>
      <p class="flow-legend line small soft" aria-hidden="true">
        <span class="kind-send">sends</span>
        <span class="kind-spawn">jobs</span>
        <span class="kind-refused">refused</span>
        <span class="legend-active">at work</span>
        <span>thicker: more steps</span>
        {left > 0 && <span>{`and ${counted(left, "session")} more`}</span>}
      </p>
    </section>
  );
}
