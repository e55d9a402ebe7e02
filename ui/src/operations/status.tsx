// Owns the tab with how the gateway stands.

import { ask } from "../gateway.ts";
import { Failed } from "../parts/failure.tsx";
import { duration } from "../parts/format.ts";
import { useReading } from "../parts/reading.ts";
import { State } from "../parts/state.tsx";

export function StatusTab(_: { about: string | undefined }) {
  const status = useReading("status", () => ask("status"));
  if (status.value === undefined)
    return status.problem === undefined ? (
      <p class="loading">Loading…</p>
    ) : (
      <Failed problem={status.problem} onRetry={status.again} />
    );
  const { ok, version, uptimeMs, store } = status.value;
  return (
    <>
      <h2>Status</h2>
      <dl class="facts">
        <dt>Gateway</dt>
        <dd>
          <State state={ok ? "ok" : "error"} text={ok ? "ready" : "not ready"} /> {version}, up{" "}
          {duration(uptimeMs)}
        </dd>
        <dt>Store</dt>
        <dd>
          <State state={store.ok ? "ok" : "error"} text={store.kind} />
        </dd>
      </dl>
    </>
  );
}
