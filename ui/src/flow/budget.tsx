// Shows how much of its limits a chain has used: a thin bar and a text.

import type { ChainRow } from "../../../src/core/shapes/chain-step.ts";
import { money, tokens } from "../parts/format.ts";

interface Use {
  /** Label of the meter. */
  readonly name: string;
  readonly used: number;
  /** Undefined if there is no limit to show. */
  readonly max: number | undefined;
  readonly write: (figure: number) => string;
  readonly unit?: string;
}

function Meter({ name, used, max, write, unit = "" }: Use) {
  if (max === undefined) return <span class="meter-text">{`${write(used)}${unit}`}</span>;
  const text = `${write(used)} of ${write(max)}${unit}${used >= max ? ", used up" : ""}`;
  const part = max <= 0 ? 1 : Math.min(1, used / max);
  const tone = used >= max ? "tone-bad" : part > 0.8 ? "tone-warn" : "tone-busy";
  return (
    <span class={`meter ${tone}`}>
      {/* biome-ignore lint/a11y/useSemanticElements: its colours are the page's, in every browser */}
      <span
        class="meter-track"
        role="meter"
        aria-label={name}
        aria-valuemin={0}
        aria-valuemax={max}
        aria-valuenow={Math.min(used, max)}
        aria-valuetext={text}
      >
        <span class="meter-part" style={{ width: `${used > 0 ? Math.max(2, part * 100) : 0}%` }} />
      </span>
      <span class="meter-text">{text}</span>
    </span>
  );
}

/** Shows tokens and cost. If there is a budget and the figures are complete, shows how much of it is used. */
export function Budget({ chain }: { chain: ChainRow }) {
  const { tokensMax, costMax } = chain.partial === true ? {} : chain.limits;
  return (
    <span class="budget">
      <Meter name="Tokens of the chain" used={chain.tokens} max={tokensMax} write={tokens} unit=" tokens" />
      {(costMax !== undefined || chain.cost > 0) && (
        <Meter name="Cost of the chain" used={chain.cost} max={costMax} write={money} />
      )}
    </span>
  );
}
