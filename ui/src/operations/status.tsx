// The status tab of the gateway: state, load, processes of a cluster, and what features add.

import "./status.css";
import type { ComponentChildren } from "preact";
import type { PayloadOf } from "../../../src/contract/methods.ts";
import { tick } from "../clock.ts";
import { STATUS_SECTIONS } from "../features.ts";
import { ask } from "../gateway.ts";
import { Awaited } from "../parts/failure.tsx";
import { age, clockTime, counted, duration } from "../parts/format.ts";
import { Name } from "../parts/name.tsx";
import { useNews } from "../parts/reading.ts";
import { State } from "../parts/state.tsx";
import { usePolled } from "./polling.ts";
import { Table } from "./table.tsx";

type Status = PayloadOf<"status">;

const EVERY_MS = 10_000;

export function StatusTab() {
  const status = usePolled("status", EVERY_MS, () => ask("status"));
  useNews("health", status.again);
  if (status.value === undefined) return <Awaited {...status} />;
  return (
    <div class="stack">
      <h2>Gateway</h2>
      <Facts status={status.value} />
      <Processes status={status.value} />
      {STATUS_SECTIONS.map((Section, at) => (
        <Section key={at} />
      ))}
    </div>
  );
}

function Facts({ status }: { status: Status }) {
  const { ok, accepting, version, uptimeMs, store, lanes, deliveries, connections, agents, models } = status;
  const word = ok ? "ready" : accepting ? "not ready" : "draining";
  return (
    <dl class="tiles">
      <Tile title="State">
        <State state={ok ? "ok" : "error"} text={word} />
      </Tile>
      <Tile title="Version">
        <Name text={version} />, up {duration(uptimeMs)}
      </Tile>
      <Tile title="Store">
        <State state={store.ok ? "ok" : "error"} text={store.reason ?? store.kind} />
      </Tile>
      <Tile title="Configured">
        {counted(agents, "agent")}, {counted(models, "model")}
      </Tile>
      {connections !== undefined && <Tile title="Connections">{counted(connections, "client")}</Tile>}
      {lanes !== undefined && (
        <>
          <Tile title="Slots taken">
            <meter min={0} max={lanes.slots.max} value={lanes.slots.taken} aria-label="Slots taken" />{" "}
            {lanes.slots.taken} of {lanes.slots.max}
          </Tile>
          <Tile title="Runs">
            {lanes.running} running, {lanes.waiting} waiting, {lanes.queued} queued
          </Tile>
        </>
      )}
      {deliveries !== undefined && (
        <Tile title="Deliveries">
          {deliveries.pending} waiting,{" "}
          <span class={deliveries.failed > 0 ? "tone-bad toned" : ""}>{deliveries.failed} failed</span>
        </Tile>
      )}
    </dl>
  );
}

export function Tile({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <div class="card box">
      <dt>{title}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Processes({ status: { processes, processId } }: { status: Status }) {
  if (processes === undefined) return null;
  const running = new Set(processes.filter((one) => one.alive).map((one) => one.configRevision));
  return (
    <>
      <h2 class="head-bar">Processes</h2>
      {running.size > 1 && (
        <p>
          <State state="error" text="The processes run different settings." /> Give each the same
          configuration file.
        </p>
      )}
      <Table
        label="Processes"
        rows={processes}
        rowKey={(one) => one.processId}
        columns={[
          {
            title: "Process",
            cell: (one) => (
              <>
                <State state={one.alive ? "ok" : "error"} text={one.alive ? "alive" : "gone"} />{" "}
                <span class="mono">{one.processId.slice(0, 8)}</span>
                {one.processId === processId && <span class="soft"> (this one)</span>}
              </>
            ),
          },
          { title: "Host", cell: (one) => <Name text={one.host} /> },
          { title: "Version", cell: (one) => <Name text={one.version} /> },
          { title: "Settings", class: "mono", cell: (one) => one.configRevision ?? "unknown" },
          { title: "Started", cell: (one) => clockTime(one.startedAt, true) },
          { title: "Last heartbeat", cell: (one) => age(one.beatAt, tick.value) },
        ]}
      />
    </>
  );
}
