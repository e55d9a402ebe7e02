// Shows how much of each budget is used today, and whether it has stopped runs.

import type { UsageReport } from "../../../../src/contract/methods/operations.ts";
import { Agent } from "../../agents/agent-name.tsx";
import { tick } from "../../clock.ts";
import { counted, DAY_MS, duration, exactMoney, money, tokens } from "../../parts/format.ts";
import { Meter } from "../../parts/meter.tsx";
import { State } from "../../parts/state.tsx";
import { joinWords } from "../../parts/words.ts";
import { hrefOf } from "../../route.ts";
import type { Tone } from "../../styles/tones.ts";

type Budget = UsageReport["budgets"][number];

const NEARLY = 0.8;

/** Returns how much of the budget is used; 1 means all of it. */
function usedPart({ tokensToday, costToday, dailyTokens, dailyCost }: Budget): number {
  const part = (used: number, max: number | undefined): number =>
    max === undefined ? 0 : max <= 0 ? 1 : used / max;
  return Math.max(part(tokensToday, dailyTokens), part(costToday, dailyCost));
}

/** Describes the state of a budget. `leftMs`: time until the next day, when runs can start again. */
function stateOf(budget: Budget, leftMs: number): { readonly tone: Tone; readonly words: string } {
  const { stoppedToday } = budget;
  const stopped = stoppedToday > 0 ? `${counted(stoppedToday, "run")} stopped today` : "";
  const again = `Runs can start again in ${duration(leftMs)} (00:00 UTC)`;
  if (usedPart(budget) >= 1) return { tone: "bad", words: joinWords(["Used up", stopped, again], ". ") };
  if (stopped !== "") return { tone: "bad", words: `Too little left: ${stopped}` };
  if (usedPart(budget) >= NEARLY) return { tone: "warn", words: "Nearly used up" };
  return { tone: "good", words: "Within the budget" };
}

function AgentBudget({ budget }: { budget: Budget }) {
  const { agentId, tokensToday, costToday, dailyTokens, dailyCost } = budget;
  const { tone, words } = stateOf(budget, DAY_MS - (tick.value % DAY_MS));
  return (
    <li class="line small">
      <strong>
        <Agent id={agentId} />
      </strong>
      <span class="line">
        {dailyCost !== undefined && (
          <Meter name={`Cost of ${agentId} today`} used={costToday} max={dailyCost} of="cost" />
        )}
        {dailyTokens !== undefined && (
          <Meter name={`Tokens of ${agentId} today`} used={tokensToday} max={dailyTokens} of="tokens" />
        )}
      </span>
      <State state="" tone={tone} text={words} />
    </li>
  );
}

function ChainBudget({ budget }: { budget: NonNullable<UsageReport["chainBudget"]> }) {
  const { stoppedToday, tokensMax, costMax } = budget;
  const limits = [
    costMax === undefined ? "" : money(costMax),
    tokensMax === undefined ? "" : `${tokens(tokensMax)} tokens`,
  ];
  return (
    <li class="line small">
      <strong>Each chain</strong>
      <span class="soft" title={costMax === undefined ? undefined : exactMoney(costMax)}>
        at most {joinWords(limits, " and ")}
      </span>
      <State
        state=""
        tone={stoppedToday > 0 ? "bad" : "good"}
        text={stoppedToday > 0 ? `${counted(stoppedToday, "run")} stopped today` : "No run stopped today"}
      />
    </li>
  );
}

export function Budgets({ report: { budgets, chainBudget } }: { report: UsageReport }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling box must be reachable by keyboard
    <section class="card box usage-budgets" tabIndex={0} aria-labelledby="usage-budgets">
      <h3 id="usage-budgets">Budgets today</h3>
      {budgets.length === 0 && chainBudget === undefined ? (
        <p class="soft">
          No budget is set. With one in its <a href={hrefOf({ view: "agents" })}>settings</a>, an agent stops
          when it has spent that much in a day.
        </p>
      ) : (
        <ul class="rows">
          {[...budgets]
            .sort((a, b) => usedPart(b) - usedPart(a))
            .map((budget) => (
              <AgentBudget key={budget.agentId} budget={budget} />
            ))}
          {chainBudget !== undefined && <ChainBudget budget={chainBudget} />}
        </ul>
      )}
    </section>
  );
}
