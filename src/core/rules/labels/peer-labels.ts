// Writes labels for a peer, and reads a peer's. A peer learns the kinds of sources, and no name.

import { isObject, listOf } from "../../json.ts";
import { optional } from "../../optional.ts";
import type { Label, Labels, Mark } from "../../shapes/labels.ts";
import { sourceKinds } from "./labels.ts";

/** The kinds of sources of each label: `{"outside": ["web"], "private": ["session"]}`. */
export type PeerLabels = Readonly<Record<Label, readonly string[]>>;

const KINDS_MAX = 20;
const KIND = /^[a-z0-9]{1,20}$/;
/** Stands for what cannot be read. */
const UNLABELLED = "unlabelled";

/** Returns the labels of a text for a peer, without those that came from it. */
export function writePeerLabels(peer: string, { outside, private: hidden }: Labels = {}): PeerLabels {
  const kinds = (marks: readonly Mark[] = []): readonly string[] =>
    sourceKinds(marks.filter(({ source }) => source.replace(/: .*/, "") !== `peer ${peer}`));
  return { outside: kinds(outside), private: kinds(hidden) };
}

/** Returns the labels of a text from a peer. `given`: as the peer wrote them. */
export function readPeerLabels(peer: string, given: unknown, since: number): Labels {
  const marksFrom = (kinds: unknown): Mark[] | undefined => {
    if (kinds === undefined || (Array.isArray(kinds) && kinds.length === 0)) return undefined;
    const known = listOf(kinds).filter((kind) => typeof kind === "string" && KIND.test(kind));
    const all = known.length > 0 && known.length === listOf(kinds).length ? known : [...known, UNLABELLED];
    return all.slice(-KINDS_MAX).map((kind) => ({ source: `peer ${peer}: ${kind}`, since }));
  };
  // A peer that sends no labels may have read anything.
  if (!isObject(given)) return { outside: marksFrom([UNLABELLED]) ?? [] };
  return optional({ outside: marksFrom(given.outside), private: marksFrom(given.private) });
}
