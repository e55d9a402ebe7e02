// Owns the overview: who talks to whom in the window, as sessions in a row with arcs between them.

import { useRef } from "preact/hooks";
import type { ChainRow } from "../../../src/core/chain-step.ts";
import { counted } from "../parts/format.ts";
import { shortKey } from "../parts/name.tsx";
import { type Arc, type Node, overviewOf } from "./arcs.ts";
import { fitted, useWidth } from "./drawing.ts";
import { type Filter, filter } from "./state.ts";

const WORDS = { send: "talks to", spawn: "gives jobs to", refused: "was refused" } as const;

function isChosen(wanted: Filter | undefined, one: Filter): boolean {
  return wanted?.from === one.from && wanted.to === one.to;
}

function choose(one: Filter): void {
  filter.value = isChosen(filter.value, one) ? undefined : one;
}

/** Enter and space do what a click does. */
const pressing = (act: () => void) => (event: KeyboardEvent) => {
  if (event.key !== "Enter" && event.key !== " ") return;
  event.preventDefault();
  act();
};

function ArcOf({ arc }: { arc: Arc }) {
  const { kind, from, to, steps, open } = arc;
  const pair = { from, to };
  const chosen = isChosen(filter.value, pair);
  const words = `${shortKey(from)} ${WORDS[kind]} ${shortKey(to)}: ${counted(steps, "step")}${open > 0 ? ", now" : ""}`;
  return (
    // biome-ignore lint/a11y/useSemanticElements: there are no buttons in SVG
    <g
      class={`arc kind-${kind}${open > 0 ? " open" : ""}${chosen ? " chosen" : ""}`}
      role="button"
      tabIndex={0}
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

function NodeOf({ node, baseline, width }: { node: Node; baseline: number; width: number }) {
  const { key, x, steps, active } = node;
  const one = { from: key };
  const chosen = isChosen(filter.value, one);
  const name = shortKey(key);
  return (
    // biome-ignore lint/a11y/useSemanticElements: there are no buttons in SVG
    <g
      class={`node${active ? " active" : ""}${chosen ? " chosen" : ""}`}
      role="button"
      tabIndex={0}
      aria-pressed={chosen}
      aria-label={fitted(`${name}: ${counted(steps, "step")}${active ? ", at work" : ""}`, 2_000)}
      onClick={() => choose(one)}
      onKeyDown={pressing(() => choose(one))}
    >
      <title>{fitted(key, 2_000)}</title>
      <rect class="node-hit" x={x - width / 2} y={baseline - 12} width={width} height={42} />
      <circle cx={x} cy={baseline} r={Math.min(9, 5 + Math.log2(1 + steps) * 0.6)} />
      <text x={x} y={baseline + 24} text-anchor="middle">
        {fitted(name, width - 8)}
      </text>
    </g>
  );
}

export function OverviewPicture({ chains }: { chains: readonly ChainRow[] }) {
  const box = useRef<HTMLDivElement>(null);
  const room = useWidth(box, 800);
  const { nodes, arcs, width, baseline, nodeWidth, left } = overviewOf(chains, room);
  return (
    <section class="flow-overview" aria-labelledby="overview-title">
      <h2 id="overview-title" class="visually-hidden">
        Who talks to whom
      </h2>
      <div class="scroll-x" ref={box}>
        {/* biome-ignore lint/a11y/useSemanticElements: there are no field sets in SVG */}
        <svg width={width} height={baseline + 36} role="group" aria-labelledby="overview-title">
          {arcs.map((arc) => (
            <ArcOf key={arc.id} arc={arc} />
          ))}
          {nodes.map((node) => (
            <NodeOf key={node.key} node={node} baseline={baseline} width={nodeWidth} />
          ))}
        </svg>
      </div>
      <p class="flow-legend soft" aria-hidden="true">
        <span class="kind-send">sends</span>
        <span class="kind-spawn">jobs</span>
        <span class="kind-refused">refused</span>
        {left > 0 && <span>{`and ${counted(left, "session")} more`}</span>}
      </p>
    </section>
  );
}
