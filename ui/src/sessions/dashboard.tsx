// Stands beside the session list while no session is chosen: what needs the reader, what runs, and what today
// has cost.

import "./dashboard.css";
import type { AttentionItem } from "../../../src/contract/methods/attention.ts";
import { Agent } from "../agents/agent-name.tsx";
import { AgentMark } from "../agents/mark.tsx";
import { ask, has } from "../gateway.ts";
import { markOf, toneOf } from "../inbox/marks.ts";
import { groups, itemName } from "../inbox/model.ts";
import { isSnoozed } from "../inbox/snooze.ts";
import { Name } from "../parts/name.tsx";
import { useNews, useReading } from "../parts/reading.ts";
import { Cost, Time } from "../parts/time.tsx";
import { hrefOf } from "../route.ts";

/** Number of items that each list shows. The inbox has all. */
const SHOWN_MAX = 6;

function Item({ item }: { item: AttentionItem }) {
  const { sessionKey, since, summary, agentId = "" } = item;
  return (
    <li class={`bar tone-${toneOf(item)}`}>
      <a
        class="row cut fill"
        href={hrefOf(sessionKey === undefined ? { view: "inbox" } : { view: "sessions", key: sessionKey })}
      >
        <AgentMark id={agentId} />
        <Name text={itemName(item)} />
      </a>
      <span class="chip">{markOf(item)}</span>
      <Time class="soft number" at={since} as="age" />
      {summary !== itemName(item) && <Name as="span" class="own-line cut small soft" text={summary} />}
    </li>
  );
}

function Items(props: { title: string; calm: string; items: readonly AttentionItem[]; count: number }) {
  const { title, calm, items, count } = props;
  const others = count - Math.min(items.length, SHOWN_MAX);
  return (
    <section class="card" aria-label={title}>
      <h2 class="row">
        {title} {count > 0 && <span class="end">{count}</span>}
      </h2>
      {items.length === 0 && <p class="soft">{calm}</p>}
      <ul class="rows">
        {items.slice(0, SHOWN_MAX).map((item) => (
          <Item key={item.id} item={item} />
        ))}
      </ul>
      {others > 0 && <a href={hrefOf({ view: "inbox" })}>{`${others} more in the inbox`}</a>}
    </section>
  );
}

function Today() {
  const read = useReading("agents", () => ask("agents.describe"));
  useNews("attention", () => void read.again());
  const known = read.value?.agents.flatMap(({ id, today }) => (today ? { id, ...today } : [])) ?? [];
  const days = known.filter(({ totalTokens, failed }) => totalTokens > 0 || failed > 0);
  if (known.length === 0) return null;
  days.sort((a, b) => b.cost - a.cost || b.totalTokens - a.totalTokens);
  return (
    <section class="card" aria-label="Today">
      <h2 class="row">
        Today
        <a class="end" href={hrefOf({ view: "operations", tab: "usage" })}>
          <Cost usd={days.reduce((sum, { cost }) => sum + cost, 0)} />
        </a>
      </h2>
      {days.length === 0 && <p class="soft">No agent has worked today.</p>}
      <ul class="rows">
        {days.slice(0, SHOWN_MAX).map(({ id, cost, failed }) => (
          <li key={id} class="bar">
            <a class="row cut fill" href={hrefOf({ view: "agents", agentId: id })}>
              <Agent id={id} />
            </a>
            {failed > 0 && <span class="tone-bad toned">{failed} failed</span>}
            <Cost class="number" usd={cost} />
          </li>
        ))}
      </ul>
    </section>
  );
}

export function Dashboard() {
  const of = (name: string) => groups.value?.find(({ group }) => group === name);
  const needs = of("needs_you")?.items.filter((item) => !isSnoozed(item)) ?? [];
  const active = [of("running"), of("waiting")];
  return (
    <div class="dashboard">
      <p class="soft">Choose a session to read it, or press New to begin one.</p>
      {groups.value !== undefined && (
        <>
          <Items title="Needs you" calm="Nothing needs you." items={needs} count={needs.length} />
          <Items
            title="At work"
            calm="No agent is at work."
            items={active.flatMap((group) => group?.items ?? [])}
            count={active.reduce((sum, group) => sum + (group?.count ?? 0), 0)}
          />
        </>
      )}
      {has("agents.describe") && <Today />}
    </div>
  );
}
