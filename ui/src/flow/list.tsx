// The list of recently active chains.

import type { ChainRow } from "../../../src/core/shapes/chain-step.ts";
import { plainLine } from "../../../src/core/text/plain-line.ts";
import { agentIn } from "../agents/face.ts";
import { AgentMark } from "../agents/mark.tsx";
import { tick } from "../clock.ts";
import { Button } from "../parts/button.tsx";
import { age, counted } from "../parts/format.ts";
import { Name } from "../parts/name.tsx";
import { State } from "../parts/state.tsx";
import { hrefOf } from "../route.ts";
import { Budget } from "./budget.tsx";
import { nameOf } from "./state.ts";

const PARTIES_SHOWN = 4;

function Parties({ chain }: { chain: ChainRow }) {
  const others = chain.sessions.filter((key) => key !== chain.rootSessionKey);
  const more =
    chain.sessionCount - (chain.sessions.length - others.length) - Math.min(PARTIES_SHOWN, others.length);
  return (
    <span class="line chain-parties">
      {others.slice(0, PARTIES_SHOWN).map((key) => (
        <span key={key} class="chip cut">
          <Name text={nameOf(key)} />
        </span>
      ))}
      {more > 0 && <span class="chip cut">{`+${more}`}</span>}
    </span>
  );
}

const findRoot = ({ rootSessionKey, sessions: [first = ""] }: ChainRow): string => rootSessionKey ?? first;

export function ChainList(props: {
  chains: readonly ChainRow[];
  chosen: string | undefined;
  /** Loads older chains. Undefined if there are none. */
  more: (() => void) | undefined;
}) {
  const { chains, chosen, more } = props;
  const nowMs = tick.value;
  return (
    <ol class="chain-list" aria-label="Chains" data-list>
      {chains.map((chain) => (
        <li key={chain.chainId} data-item>
          <a
            class="chain-row"
            href={hrefOf({ view: "flow", chainId: chain.chainId })}
            aria-current={chain.chainId === chosen ? "true" : undefined}
          >
            <span class="row">
              <AgentMark id={agentIn(findRoot(chain))} />
              <strong>
                <Name text={nameOf(findRoot(chain))} />
              </strong>
              {chain.active && <State state="running" text="active" />}
              <span class="chain-age small soft">{age(chain.lastAt, nowMs)}</span>
            </span>
            {chain.opening !== undefined && chain.opening !== "" && (
              <span class="clamp">
                <Name text={plainLine(chain.opening)} />
              </span>
            )}
            <Parties chain={chain} />
            <span class="bar small soft">
              <span>{counted(chain.runs, "run")}</span>
              {chain.failed > 0 && <span class="chip tone-bad">{`${chain.failed} failed`}</span>}
              {chain.refused > 0 && <span class="chip tone-bad">{`${chain.refused} refused`}</span>}
              <Budget chain={chain} />
            </span>
          </a>
        </li>
      ))}
      {more !== undefined && (
        <li class="out-more small">
          <Button text="Older chains" class="quiet" onClick={more} />
        </li>
      )}
    </ol>
  );
}
