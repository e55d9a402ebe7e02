// Owns how a chain's use is shown against its limits: a thin bar with its text.

import type { ChainRow } from "../../../src/core/chain-step.ts";
import { money, tokens } from "../parts/format.ts";

function Meter(props: { name: string; used: number; max: number; text: string }) {
  const { name, used, max, text } = props;
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

function usedUp(used: number, max: number): string {
  return used >= max ? ", used up" : "";
}

/** Tokens and cost: against the budget where there is one and the figures are whole. */
export function Budget({ chain }: { chain: ChainRow }) {
  const { limits, partial } = chain;
  const { tokensMax, costMax } = limits;
  const isWhole = partial !== true;
  return (
    <span class="budget">
      {isWhole && tokensMax !== undefined ? (
        <Meter
          name="Tokens of the chain"
          used={chain.tokens}
          max={tokensMax}
          text={`${tokens(chain.tokens)} of ${tokens(tokensMax)} tokens${usedUp(chain.tokens, tokensMax)}`}
        />
      ) : (
        <span class="meter-text">{`${tokens(chain.tokens)} tokens`}</span>
      )}
      {isWhole && costMax !== undefined ? (
        <Meter
          name="Cost of the chain"
          used={chain.cost}
          max={costMax}
          text={`${money(chain.cost)} of ${money(costMax)}${usedUp(chain.cost, costMax)}`}
        />
      ) : (
        chain.cost > 0 && <span class="meter-text">{money(chain.cost)}</span>
      )}
    </span>
  );
}
