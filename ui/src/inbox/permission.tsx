// Shows a permission request of an agent: who wants to do what, where and why, and the buttons that answer.

import { useState } from "preact/hooks";
import {
  askedCommand,
  type PermissionDecision,
  type PermissionQuestion,
  type PermissionScope,
} from "../../../src/core/shapes/permission.ts";
import { safeText } from "../../../src/core/text/safe-text.ts";
import { tick } from "../clock.ts";
import { ask } from "../gateway.ts";
import { duration } from "../parts/format.ts";
import { Name } from "../parts/name.tsx";
import { nameOf } from "../parts/names.ts";
import { complain, say } from "../parts/notices.tsx";

/** Returns the words between the agent and its wish. `kind`: that of the request. */
export function wantsTo(kind: string | undefined): string {
  return kind === "exec" ? "wants to run:" : "asks for permission:";
}

const LONGER = {
  session: "Allow this command in this session",
  always: "Always allow this command",
} as const;

interface AnswersProps {
  readonly question: PermissionQuestion;
  /** True while the buttons have no effect, because they have moved a moment ago. */
  readonly held: boolean;
  readonly onDone: () => unknown;
}

function Answers({ question, held, onDone }: AnswersProps) {
  const [busy, setBusy] = useState(false);
  const { id, sessionKey, kind, title, scopes } = question;
  const answer = async (decision: PermissionDecision, scope: PermissionScope = "once"): Promise<void> => {
    if (busy || held) return;
    setBusy(true);
    try {
      await ask("permissions.answer", { id, decision, scope });
      const done = decision === "allow" ? "Allowed" : "Denied";
      say(`${done}: ${kind ?? title} in ${nameOf(sessionKey)}`);
    } catch (problem) {
      complain(problem);
    }
    await onDone();
    setBusy(false);
  };
  const button = { type: "button", "aria-busy": busy, "aria-disabled": busy || held } as const;
  return (
    <div class="permission-answers">
      <button {...button} class="primary" onClick={() => void answer("allow")}>
        Allow
      </button>
      <button {...button} onClick={() => void answer("deny")}>
        Deny
      </button>
      {scopes.map(
        (scope) =>
          scope !== "once" && (
            <button key={scope} {...button} onClick={() => void answer("allow", scope)}>
              {LONGER[scope]}
            </button>
          ),
      )}
    </div>
  );
}

export function Permission(props: Omit<AnswersProps, "held"> & { mayAnswer: boolean; held?: boolean }) {
  const { question, mayAnswer, held = false, onDone } = props;
  const { agentId, title, kind, detail, expiresAt } = question;
  const { command = title, folder, reason } = askedCommand(question) ?? {};
  return (
    <div class="permission">
      <p>
        <Name text={agentId} /> {wantsTo(kind)}
      </p>
      <pre>
        <bdi>{safeText(command)}</bdi>
      </pre>
      {folder !== undefined && (
        <p class="soft">
          in <Name text={folder} />
        </p>
      )}
      {folder === undefined && detail !== undefined && (
        <pre class="permission-detail">
          <bdi>{safeText(detail)}</bdi>
        </pre>
      )}
      {reason !== undefined && (
        <p class="soft permission-reason">
          <Name text={reason} />
        </p>
      )}
      {mayAnswer && <Answers question={question} held={held} onDone={onDone} />}
      <p class="soft permission-reason">denied in {duration(Math.max(0, expiresAt - tick.value))}</p>
    </div>
  );
}
