// The tab for permission requests, in which operators allow or deny actions of agents, and delete the rules
// that allow commands for longer than once.

import {
  LASTING_SCOPES,
  type PermissionQuestion,
  type PermissionRule,
} from "../../../src/core/shapes/permission.ts";
import { safeText } from "../../../src/core/text/safe-text.ts";
import { tick } from "../clock.ts";
import { ask, may } from "../gateway.ts";
import { Permission } from "../inbox/permission.tsx";
import { Awaited } from "../parts/failure.tsx";
import { ago } from "../parts/format.ts";
import { Name, SessionLink } from "../parts/name.tsx";
import { complain, say } from "../parts/notices.tsx";
import { useReading } from "../parts/reading.ts";
import { usePolling } from "./polling.ts";
import "./rows.css";

/**
 * Interval at which requests and rules are read. They must be polled, because the gateway sends no event for
 * them.
 */
const EVERY_MS = 2_000;

function Question({ question, onDone }: { question: PermissionQuestion; onDone: () => void }) {
  return (
    <li class="row-asked">
      <p class="row-title">
        <SessionLink sessionKey={question.sessionKey} />
      </p>
      <Permission question={question} mayAnswer={may("operator.admin")} onDone={onDone} />
    </li>
  );
}

function Rule({ rule, onDone }: { rule: PermissionRule; onDone: () => void }) {
  const { id, agentId, sessionKey, scope, command, folder, createdAt, createdBy } = rule;
  const forget = (): void => {
    ask("permissions.forget", { id })
      .then(() => say("Forgotten. The next call of the command asks again."), complain)
      .finally(onDone);
  };
  return (
    <li class="out-row out-wide">
      <div class="row-state">
        <span class="chip">{LASTING_SCOPES[scope].toLowerCase()}</span>
      </div>
      <div class="row-main">
        <p class="row-title">
          {scope === "always" ? <Name text={`agent ${agentId}`} /> : <SessionLink sessionKey={sessionKey} />}
        </p>
        <pre class="row-command">
          <bdi>{safeText(command)}</bdi>
        </pre>
        <p class="soft">
          in <Name text={folder} />, allowed by <Name text={createdBy} /> {ago(createdAt, tick.value)}
        </p>
      </div>
      <div class="row-actions">
        {may("operator.admin") && (
          <button type="button" class="danger" onClick={forget}>
            Forget
          </button>
        )}
      </div>
    </li>
  );
}

export function PermissionsTab() {
  const list = useReading("permissions", () => ask("permissions.list"));
  const rules = useReading("permissions.rules", () => ask("permissions.rules"));
  const { value } = list;
  const again = () => Promise.all([list.again(), rules.again()]);
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
      <h2>Allowed commands</h2>
      <p class="soft">
        Commands that run without a question, because somebody allowed them for longer than once.
      </p>
      <Awaited {...rules} />
      {rules.value?.rules.length === 0 && <p class="empty">No allowed commands</p>}
      {rules.value !== undefined && rules.value.rules.length > 0 && (
        <ul class="out-rows card" aria-label="Allowed commands">
          {rules.value.rules.map((rule) => (
            <Rule key={rule.id} rule={rule} onDone={again} />
          ))}
        </ul>
      )}
    </>
  );
}
