// Shows a permission request of an agent: who wants to do what, where and why, and the buttons that answer.

import { useState } from "preact/hooks";
import type { AttentionItem } from "../../../src/contract/methods/attention.ts";
import { optional } from "../../../src/core/optional.ts";
import type {
  PermissionDecision,
  PermissionQuestion,
  PermissionScope,
} from "../../../src/core/shapes/permission.ts";
import { safeText } from "../../../src/core/text/safe-text.ts";
import { tick } from "../clock.ts";
import { ask } from "../gateway.ts";
import { Awaited } from "../parts/failure.tsx";
import { duration } from "../parts/format.ts";
import { Name } from "../parts/name.tsx";
import { nameOf } from "../parts/names.ts";
import { complain, say } from "../parts/notices.tsx";
import { useReading } from "../parts/reading.ts";
import { readAgain, wantsTo } from "./model.ts";

const LONGER = {
  session: "Allow this command in this session",
  always: "Always allow this command",
} as const;

/** Reads the permission requests of these items and shows them. */
export function Asked({ items, held }: { items: readonly AttentionItem[]; held?: boolean }) {
  const ids = items.map(({ ref }) => ref);
  const { value, ...reading } = useReading(ids.join(" "), () => ask("permissions.list", {}));
  return (
    <>
      <Awaited value={value} {...reading} />
      {value?.permissions.map(
        (question) =>
          ids.includes(question.id) && (
            <Permission
              key={question.id}
              question={question}
              mayAnswer={items.some(({ actions }) => actions.includes("approve"))}
              {...optional({ held })}
              onDone={readAgain}
            />
          ),
      )}
    </>
  );
}

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
  const { agentId, title, kind, detail, asked, expiresAt } = question;
  const { command = title, folder, reason } = asked ?? {};
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
