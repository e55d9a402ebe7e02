// The tab that shows channels and external programs with their status.

import type { PayloadOf } from "../../../src/contract/methods.ts";
import { tick } from "../clock.ts";
import { ask, has, may } from "../gateway.ts";
import { Awaited } from "../parts/failure.tsx";
import { ago, counted, duration } from "../parts/format.ts";
import { lazy } from "../parts/lazy.tsx";
import { Name } from "../parts/name.tsx";
import { useNews, useReading } from "../parts/reading.ts";
import { State } from "../parts/state.tsx";
import { hrefOf } from "../route.ts";
import type { Tone } from "../styles/tones.ts";
import { People } from "./people.tsx";
import { usePolling } from "./polling.ts";
import "./rows.css";

const Connect = lazy(async () => (await import("../setup/setup.tsx")).Connect);

type ChannelRow = PayloadOf<"channels.status">["channels"][number];

/**
 * Interval at which the status is read. It must be polled, because no event reports that a program has
 * started or stopped.
 */
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

/**
 * Labels before the remaining time of a pause. The label of an MCP server announces no attempt, because after
 * the pause it is started only when it is needed.
 */
const BACKOFF = { mcp: "not started for", outbox: "next attempt in" };

/** Returns what is known about a channel, as short texts. */
function factsOf(row: ChannelRow, now: number): string[] {
  const { backoffUntil = 0 } = row;
  return [
    row.pending ? `${row.pending.toLocaleString()} waiting` : "",
    row.failed ? `${row.failed.toLocaleString()} failed` : "",
    row.lastSentAt === undefined ? "" : `last arrived ${ago(row.lastSentAt, now)}`,
    row.tools === undefined ? "" : counted(row.tools, "tool"),
    row.programs ? `${counted(row.programs, "program")} running` : "",
    row.connectedSince === undefined ? "" : `connected ${ago(row.connectedSince, now)}`,
    backoffUntil > now
      ? `${BACKOFF[row.kind === "mcp" ? "mcp" : "outbox"]} ${duration(backoffUntil - now)}`
      : "",
  ].filter((one) => one !== "");
}

function Row({ row }: { row: ChannelRow }) {
  const now = tick.value;
  const name = row.kind === "channel" ? row.id : row.id.slice(row.id.indexOf(":") + 1);
  const state = STATES[row.state];
  const seesOutbox = may("operator.admin") && (row.pending ?? 0) + (row.failed ?? 0) > 0;
  return (
    <li class="out-row out-wide">
      <div class="row-state">
        <State state={row.state} text={state.text} tone={state.tone} />
      </div>
      <div class="row-main">
        <p class="row-title">
          <strong>
            <Name text={name} />
          </strong>
          <span class="soft">{KINDS[row.kind]}</span>
        </p>
        <p class="soft">{factsOf(row, now).join(" · ")}</p>
        {row.lastError !== undefined && (
          <p class={`row-error ${row.ok ? "" : "tone-bad"}`}>
            <Name text={row.lastError} />
            {row.lastErrorAt !== undefined && <span class="soft"> · {ago(row.lastErrorAt, now)}</span>}
          </p>
        )}
      </div>
      <div class="row-actions">
        {seesOutbox && <a href={hrefOf({ view: "operations", tab: "deliveries" })}>Deliveries</a>}
      </div>
    </li>
  );
}

export function ChannelsTab() {
  const list = useReading("channels", () => ask("channels.status"));
  useNews("deliveries", list.again);
  usePolling(EVERY_MS, list.again);
  return (
    <>
      <div class="bar head-bar">
        <h2>Channels</h2>
        <Connect what="chat" onClose={list.again} />
      </div>
      <p class="soft">Connections of the gateway to people, other programs, external tools and agents.</p>
      <Awaited {...list} />
      {list.value !== undefined && (
        <ul class="out-rows card" aria-label="Channels">
          {list.value.channels.map((row) => (
            <Row key={row.id} row={row} />
          ))}
        </ul>
      )}
      {may("operator.admin") && has("channels.pair.list") && <People />}
    </>
  );
}
