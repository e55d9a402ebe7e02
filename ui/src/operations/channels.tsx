// The tab that shows channels and external programs with their status.

import type { PayloadOf } from "../../../src/contract/methods.ts";
import { tick } from "../clock.ts";
import { ask, has, may } from "../gateway.ts";
import { ago, counted, duration } from "../parts/format.ts";
import { lazy } from "../parts/lazy.tsx";
import { useNews } from "../parts/reading.ts";
import { State } from "../parts/state.tsx";
import { joinWords } from "../parts/words.ts";
import { hrefOf } from "../route.ts";
import type { Tone } from "../styles/tones.ts";
import { People } from "./people.tsx";
import { usePolled } from "./polling.ts";
import { ResourceList } from "./resource-list.tsx";

const Connect = lazy(async () => (await import("../setup/setup.tsx")).Connect);

type ChannelRow = PayloadOf<"channels.status">["channels"][number];

/** The status is polled, because no event reports that a program has started or stopped. */
const EVERY_MS = 10_000;

const KINDS: Readonly<Record<ChannelRow["kind"], string>> = {
  webchat: "clients, such as this page",
  channel: "channel",
  webhook: "web hook",
  mcp: "MCP server",
  acp: "ACP agent",
  other: "no longer configured",
};

const STATES: Readonly<Record<ChannelRow["state"], { readonly text: string; readonly tone: Tone }>> = {
  ready: { text: "ready", tone: "good" },
  idle: { text: "not used yet", tone: "quiet" },
  starting: { text: "starting", tone: "busy" },
  retrying: { text: "retrying", tone: "warn" },
  failing: { text: "failing", tone: "bad" },
  down: { text: "down", tone: "bad" },
  configured: { text: "configured", tone: "quiet" },
  standby: { text: "standby", tone: "quiet" },
};

/** Words before the rest of a pause. After it, an MCP server starts only when it is needed. */
const BACKOFF = { mcp: "not started for", outbox: "next attempt in" };

function factsOf(row: ChannelRow, now: number): string {
  const { backoffUntil = 0 } = row;
  return joinWords([
    row.pending ? `${row.pending.toLocaleString()} waiting` : "",
    row.failed ? `${row.failed.toLocaleString()} failed` : "",
    row.lastSentAt === undefined ? "" : `last arrived ${ago(row.lastSentAt, now)}`,
    row.tools === undefined ? "" : counted(row.tools, "tool"),
    row.programs ? `${counted(row.programs, "program")} running` : "",
    row.connectedSince === undefined ? "" : `connected ${ago(row.connectedSince, now)}`,
    backoffUntil > now
      ? `${BACKOFF[row.kind === "mcp" ? "mcp" : "outbox"]} ${duration(backoffUntil - now)}`
      : "",
  ]);
}

export function ChannelsTab() {
  const list = usePolled("channels", EVERY_MS, () => ask("channels.status"));
  useNews("deliveries", list.again);
  return (
    <>
      <ResourceList
        title="Channels"
        words="Connections of the gateway to people, other programs, external tools and agents."
        head={<Connect what="chat" onClose={list.again} />}
        list={list}
        rows={list.value?.channels}
        row={(row) => ({
          key: row.id,
          state: <State state={row.state} {...STATES[row.state]} />,
          name: row.kind === "channel" ? row.id : row.id.slice(row.id.indexOf(":") + 1),
          beside: <span class="soft">{KINDS[row.kind]}</span>,
          facts: [factsOf(row, tick.value)],
          error:
            row.lastError === undefined
              ? undefined
              : { text: row.lastError, at: row.lastErrorAt, class: row.ok ? "" : "tone-bad" },
          link:
            may("operator.admin") && (row.pending ?? 0) + (row.failed ?? 0) > 0 ? (
              <a href={hrefOf({ view: "operations", tab: "deliveries" })}>Deliveries</a>
            ) : undefined,
        })}
      />
      {may("operator.admin") && has("channels.pair.list") && <People />}
    </>
  );
}
