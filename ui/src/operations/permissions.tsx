// The tab for permission requests, in which operators allow or deny actions of agents, and delete the rules
// that allow commands for longer than once.

import { LASTING_SCOPES } from "../../../src/core/shapes/permission.ts";
import { safeText } from "../../../src/core/text/safe-text.ts";
import { Agent } from "../agents/agent-name.tsx";
import { tick } from "../clock.ts";
import { ask, may } from "../gateway.ts";
import { Permission } from "../inbox/permission.tsx";
import { ago } from "../parts/format.ts";
import { Name, SessionLink } from "../parts/name.tsx";
import { usePolled } from "./polling.ts";
import { ResourceList } from "./resource-list.tsx";

/** Requests and rules are polled, because the gateway sends no event for them. */
const EVERY_MS = 2_000;

export function PermissionsTab() {
  const list = usePolled("permissions", EVERY_MS, () => ask("permissions.list"));
  const rules = usePolled("permissions.rules", EVERY_MS, () => ask("permissions.rules"));
  const again = () => Promise.all([list.again(), rules.again()]);
  const mayAnswer = may("operator.admin");
  return (
    <>
      <ResourceList
        title="Permissions"
        words="Permission requests of agents. A request that nobody answers in time is denied."
        list={list}
        rows={list.value?.permissions}
        empty="No open requests"
        row={(question) => ({
          key: question.id,
          beside: <SessionLink sessionKey={question.sessionKey} />,
          body: <Permission question={question} mayAnswer={mayAnswer} onDone={again} />,
        })}
      />
      <ResourceList
        title="Allowed commands"
        words="Commands that run without a question, because somebody allowed them for longer than once."
        list={rules}
        rows={rules.value?.rules}
        empty="No allowed commands"
        row={({ id, agentId, sessionKey, scope, command, folder, createdAt, createdBy }) => ({
          key: id,
          state: <span class="chip">{LASTING_SCOPES[scope].toLowerCase()}</span>,
          beside: scope === "always" ? <Agent id={agentId} /> : <SessionLink sessionKey={sessionKey} />,
          body: (
            <>
              <pre class="raw">
                <bdi>{safeText(command)}</bdi>
              </pre>
              <p class="soft">
                in <Name text={folder} />, allowed by <Name text={createdBy} /> {ago(createdAt, tick.value)}
              </p>
            </>
          ),
          actions: mayAnswer
            ? [
                {
                  label: "Forget",
                  class: "danger",
                  run: () => ask("permissions.forget", { id }),
                  done: "Forgotten. The next call of the command asks again.",
                },
              ]
            : [],
        })}
      />
    </>
  );
}
