// Computes the layout of the overview: sessions in a row, and an arc for each pair that exchanges messages.
// Pure functions.
// AR1: each direction between two sessions has one arc for each kind of step. More steps make the arc
//      thicker.
// AR2: at first, a session that exchanges messages with many others is near the middle, so that arcs are
//      short. Later, sessions keep their order, and new sessions are added at the ends.
// AR3: if there is no room for all sessions, active ones come first.

import type { ChainRow } from "../../../src/core/shapes/chain-step.ts";

const NODES_MAX = 40;
const NODE_MIN = 38;
const NODE_MAX = 200;
const ARC_MAX = 84;
const PAD = 12;
/** Minimum room per session for upright names. With less room, names are slanted. */
const UPRIGHT_MIN = 84;
const ASLANT_PAD = 64;

/** All steps of one kind from one session to another. */
type Talk = ChainRow["talks"][number] & { readonly id: string };

export interface Arc extends Talk {
  readonly path: string;
  readonly width: number;
  /** Path of the arrowhead. */
  readonly head: string;
}

/** Counts the steps of all chains for each pair of sessions and each kind. */
function talksOf(chains: readonly ChainRow[]): Talk[] {
  const talks = new Map<string, Talk>();
  for (const { kind, from, to, steps, open } of chains.flatMap((chain) => chain.talks)) {
    if (from === "" || to === "" || from === to) continue;
    const id = JSON.stringify([kind, from, to]);
    const before = talks.get(id) ?? { steps: 0, open: 0 };
    talks.set(id, { id, kind, from, to, steps: steps + before.steps, open: open + before.open });
  }
  return [...talks.values()];
}

/** Puts the busiest session in the middle. Sessions that were shown `before` keep their order. */
function fromTheMiddle(ranked: readonly string[], before: readonly string[]): string[] {
  const row = before.filter((key) => ranked.includes(key));
  const keys = ranked.filter((key) => !row.includes(key));
  for (const [at, key] of keys.entries()) {
    if (at % 2 === 0) row.push(key);
    else row.unshift(key);
  }
  return row;
}

function arcOf(talk: Talk, from: number, to: number, baseline: number, reach: number): Arc {
  const middle = (from + to) / 2;
  const top = baseline - 8 - Math.max(24, Math.sqrt(Math.abs(to - from) / reach) * ARC_MAX) * 1.3;
  // Shift the arcs of one pair a little, so that they do not cover each other.
  const shift = (from < to ? 6 : -6) + (talk.kind === "spawn" ? -4 : talk.kind === "refused" ? 5 : 0);
  const [x1, x2] = [from + shift, to + shift];
  const y = baseline - 7;
  const slope = Math.atan2(y - (top + shift), x2 - middle);
  const barb = (turn: number): string => {
    const at = slope + Math.PI + turn;
    return `${(x2 + 8 * Math.cos(at)).toFixed(1)} ${(y + 8 * Math.sin(at)).toFixed(1)}`;
  };
  return {
    ...talk,
    path: `M ${x1} ${y} Q ${middle} ${top + shift} ${x2} ${y}`,
    width: Math.min(7, 1.4 + Math.log2(1 + talk.steps) * 0.9),
    head: `M ${barb(0.42)} L ${x2} ${y} L ${barb(-0.42)}`,
  };
}

/** `room`: the width without scrolling. `before`: the sessions in their last order. */
export function overviewOf(chains: readonly ChainRow[], room: number, before: readonly string[] = []) {
  const talks = talksOf(chains);
  const weight = new Map<string, number>();
  for (const { from, to, steps } of talks)
    for (const key of [from, to]) weight.set(key, (weight.get(key) ?? 0) + steps);
  const ranked = [...weight.keys()].sort(
    (a, b) => (weight.get(b) ?? 0) - (weight.get(a) ?? 0) || (a < b ? -1 : 1),
  );
  const busy = new Set(talks.filter(({ open }) => open > 0).flatMap(({ from, to }) => [from, to]));
  const first = new Set([...ranked.filter((key) => busy.has(key)), ...ranked]);
  const kept = new Set([...first].slice(0, NODES_MAX));
  const row = fromTheMiddle(
    ranked.filter((key) => kept.has(key)),
    before,
  );
  const count = Math.max(1, row.length);
  const nodeWidth = Math.max(NODE_MIN, Math.min(NODE_MAX, (room - 2 * PAD) / count));
  const aslant = nodeWidth < UPRIGHT_MIN;
  const pad = aslant ? ASLANT_PAD : PAD;
  const width = Math.max(room, count * nodeWidth + pad + PAD);
  const left = Math.max(pad, (width - count * nodeWidth) / 2);
  const xOf = new Map(row.map((key, at) => [key, left + (at + 0.5) * nodeWidth]));
  const baseline = ARC_MAX + 24;
  const reach = Math.max(nodeWidth, (count - 1) * nodeWidth);
  return {
    nodes: row.map((key) => {
      return { key, x: xOf.get(key) ?? 0, steps: weight.get(key) ?? 0, active: busy.has(key) };
    }),
    arcs: talks.flatMap((talk) => {
      const [from, to] = [xOf.get(talk.from), xOf.get(talk.to)];
      return from === undefined || to === undefined ? [] : [arcOf(talk, from, to, baseline, reach)];
    }),
    width,
    /** Y coordinate of the sessions. */
    baseline,
    nodeWidth,
    /** True if names are slanted. */
    aslant,
    /** Number of sessions for which there is no room. */
    left: ranked.length - row.length,
  };
}

export type Overview = ReturnType<typeof overviewOf>;
