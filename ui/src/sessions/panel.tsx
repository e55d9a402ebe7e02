// Owns the list of sessions.

import { useEffect } from "preact/hooks";
import { batched } from "../clock.ts";
import { ask, on } from "../gateway.ts";
import { Failed } from "../parts/failure.tsx";
import { SessionLink, sessionName } from "../parts/name.tsx";
import { useReading } from "../parts/reading.ts";
import { State } from "../parts/state.tsx";

const PAGE_ROWS = 100;
const BATCH_MS = 200;

export function SessionsPanel({ selected }: { selected: string | undefined }) {
  const list = useReading("sessions", () => ask("sessions.list", { limit: PAGE_ROWS }));
  useEffect(() => on("sessions", batched(BATCH_MS, list.again)), [list.again]);
  if (list.value === undefined)
    return list.problem === undefined ? (
      <p class="loading">Loading…</p>
    ) : (
      <Failed problem={list.problem} onRetry={list.again} />
    );
  return (
    <ul class="session-rows">
      {list.value.sessions.map((row) => (
        <li key={row.key} aria-current={row.key === selected ? "true" : undefined}>
          <SessionLink sessionKey={row.key} name={sessionName(row)} />
          <State state={row.state} />
        </li>
      ))}
    </ul>
  );
}
