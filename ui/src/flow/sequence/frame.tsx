// The scrolled box of a view of a chain, with a map beside it, and a button that leads to its end, where the
// view follows new steps.

import type { ComponentChildren } from "preact";
import { useLayoutEffect } from "preact/hooks";
import { Button } from "../../parts/button.tsx";
import type { Around, FlowStep } from "../words.ts";
import type { useKeys } from "./keys.ts";
import { Minimap, type Whole } from "./minimap.tsx";
import type { useSight } from "./sight.ts";

/** Properties of all three views of a chain. */
export interface ChainViewProps {
  readonly steps: readonly FlowStep[];
  readonly around: Around;
  readonly chosen: string | undefined;
  readonly onChoose: (id: string) => void;
  /** The step that a search must show. `count` is different each time, even for the same step. */
  readonly wanted: { readonly id: string; readonly count: number } | undefined;
  readonly found: ReadonlySet<string>;
  readonly active: boolean;
  readonly zoom: number;
}

export function Frame(props: {
  sight: ReturnType<typeof useSight>;
  keys: ReturnType<typeof useKeys>;
  /** Of the content. */
  height: number;
  /** The content of the map, if there is one. */
  whole?: Whole;
  /** New steps are added at the end. */
  grows?: true;
  children: ComponentChildren;
}) {
  const { sight, keys, height, whole, grows, children } = props;
  useLayoutEffect(sight.grew, [height]);
  return (
    <div class="flow-sight">
      <div class="flow-scroll" ref={sight.box} onScroll={sight.look} {...keys.handlers}>
        {children}
      </div>
      {whole !== undefined && <Minimap whole={whole} {...sight} />}
      {grows && !sight.sight.atEnd && <Button text="Latest ↓" class="flow-latest" onClick={sight.toEnd} />}
    </div>
  );
}
