// Shows how much of its limits a chain has used.

import type { ChainRow } from "../../../src/core/shapes/chain-step.ts";
import { Meter } from "../parts/meter.tsx";

/** Shows tokens and cost. If there is a budget and the figures are complete, shows how much of it is used. */
export function Budget({ chain }: { chain: ChainRow }) {
  // The tokens of a run are counted when it ends.
  if (chain.active && chain.tokens === 0) return null;
  const { tokensMax, costMax } = chain.partial === true ? {} : chain.limits;
  return (
    <span class="bar">
      <Meter name="Tokens of the chain" used={chain.tokens} max={tokensMax} of="tokens" />
      {(costMax !== undefined || chain.cost > 0) && (
        <Meter name="Cost of the chain" used={chain.cost} max={costMax} of="cost" />
      )}
    </span>
  );
}
