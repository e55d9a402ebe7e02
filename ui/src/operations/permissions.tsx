// The tab for permission requests, in which operators allow or deny actions of agents.

import type { PermissionQuestion } from "../../../src/core/shapes/permission.ts";
import { safeText } from "../../../src/core/text/safe-text.ts";
import { tick } from "../clock.ts";
import { ask, may } from "../gateway.ts";
import { Awaited } from "../parts/failure.tsx";
import { duration } from "../parts/format.ts";
import { Name, SessionLink } from "../parts/name.tsx";
import { complain, say } from "../parts/notices.tsx";
import { useReading } from "../parts/reading.ts";
import { usePolling } from "./polling.ts";
import "./rows.css";

/**
 * Interval at which the requests are read. They must be polled, because the gateway sends no event for a
 * request.
 */
const EVERY_MS = 2_000;

function Question({ question, onDone }: { question: PermissionQuestion; onDone: () => void }) {
  const { id, sessionKey, title, kind, detail, expiresAt } = question;
  const answer = (decision: "allow" | "deny"): void => {
    ask("permissions.answer", { id, decision })
      .then(() => say(decision === "allow" ? "Allowed once." : "Denied."), complain)
      .finally(onDone);
  };
  return (
    <li class="out-row out-wide">
      <div class="row-state">
        <span class="chip tone-warn">denied in {duration(Math.max(0, expiresAt - tick.value))}</span>
        {kind !== undefined && (
          <span class="chip">
            <Name text={kind} />
          </span>
        )}
      </div>
      <div class="row-main">
        <p class="row-title">
          <SessionLink sessionKey={sessionKey} />
          <strong>
            <Name text={title} />
          </strong>
        </p>
        {detail !== undefined && (
          <pre class="out-text">
            <bdi>{safeText(detail)}</bdi>
          </pre>
        )}
      </div>
      <div class="row-actions">
        {may("operator.admin") && (
          <>
            <button type="button" class="primary" onClick={() => answer("allow")}>
              Allow
            </button>
            <button type="button" class="danger" onClick={() => answer("deny")}>
              Deny
            </button>
          </>
        )}
      </div>
    </li>
  );
}

export function PermissionsTab() {
  const list = useReading("permissions", () => ask("permissions.list"));
  const { again, value } = list;
  usePolling(EVERY_MS, again);
  return (
    <>
      <h2>Permissions</h2>
      <p class="soft">Permission requests of agents. A request that nobody answers in time is denied.</p>
      <Awaited {...list} />
      {value?.permissions.length === 0 && <p class="empty">No open requests</p>}
      {value !== undefined && value.permissions.length > 0 && (
        <ul class="out-rows card" aria-label="Requests">
          {value.permissions.map((question) => (
            <Question key={question.id} question={question} onDone={again} />
          ))}
        </ul>
      )}
    </>
  );
}
