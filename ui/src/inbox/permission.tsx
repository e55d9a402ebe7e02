// Shows a permission request of an agent: who wants to do what, where and why, and the buttons that answer.

import { useRef, useState } from "preact/hooks";
import type { AttentionItem } from "../../../src/contract/methods/attention.ts";
import { optional } from "../../../src/core/optional.ts";
import {
  lastingWords,
  type PermissionDecision,
  type PermissionQuestion,
  type PermissionScope,
  withoutSources,
} from "../../../src/core/shapes/permission.ts";
import { Agent } from "../agents/agent-name.tsx";
import { tick } from "../clock.ts";
import { Copy } from "../conversation/text/copy.tsx";
import { ask } from "../gateway.ts";
import { LabelChips } from "../labels/chips.tsx";
import { Button } from "../parts/button.tsx";
import { Awaited } from "../parts/failure.tsx";
import { duration } from "../parts/format.ts";
import { Lines, Name } from "../parts/name.tsx";
import { nameOf } from "../parts/names.ts";
import { complain, say } from "../parts/notices.tsx";
import { useReading } from "../parts/reading.ts";
import { contentOf, FormFields, firstEntries } from "./form.tsx";
import { readAgain, wantsTo } from "./model.ts";
import { useHold } from "./moved.ts";

const LONGER = {
  chain: { command: "Allow this command in this chain", call: "Allow this in this chain" },
  session: { command: "Allow this command in this session", call: "Allow this in this session" },
  always: { command: "Always allow this command", call: "Always allow this" },
} as const;

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
              mayAnswer={items.some(({ actions }) => actions.includes("deny"))}
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
  /** True while the buttons have no effect, because their row has moved a moment ago. */
  readonly held: boolean;
  readonly onDone: () => unknown;
}

type Lasting = Exclude<PermissionScope, "once">;

const forget = (ruleId: string, onDone: () => unknown): Promise<unknown> =>
  ask("permissions.forget", { id: ruleId })
    .then(() => say("Undone. The next call of the command asks again."), complain)
    .then(onDone);

function Answers({ question, held: rowHeld, onDone }: AnswersProps) {
  const [busy, setBusy] = useState(false);
  /** The lasting permission that the reader has still to confirm. */
  const [wish, setWish] = useState<Lasting>();
  const { id, agentId, sessionKey, kind, title, scopes, form, rule } = question;
  const [entries, setEntries] = useState(() => firstEntries(form?.fields ?? []));
  const part = useRef<HTMLDivElement>(null);
  const held = useHold(part, `${id} ${wish}`) || rowHeld;
  const answer = async (
    decision: PermissionDecision,
    scope: PermissionScope = "once",
    content?: Record<string, unknown>,
  ): Promise<void> => {
    if (busy || held) return;
    setBusy(true);
    try {
      const { ruleId } = await ask("permissions.answer", { id, decision, scope, ...optional({ content }) });
      const done = decision === "allow" ? "Allowed" : "Denied";
      const what = rule === undefined ? (kind ?? title) : title;
      if (ruleId === undefined) say(`${done}: ${what} in ${nameOf(sessionKey)}`);
      else {
        const where = scope === "always" ? `all sessions of ${agentId}` : nameOf(sessionKey);
        say(`Allowed from now on in ${where}: ${title}`, () => void forget(ruleId, onDone));
      }
    } catch (problem) {
      complain(problem);
    }
    await onDone();
    setBusy(false);
  };
  const lastingKind = rule === undefined ? "command" : "call";
  const lasting = scopes.filter((scope) => scope !== "once");
  const button = { "aria-busy": busy, "aria-disabled": busy || held } as const;
  const deny = (text: string) => <Button text={text} {...button} onClick={() => void answer("deny")} />;
  if (wish !== undefined)
    return (
      <div ref={part} class="permission-confirm">
        <Name as="p" text={lastingWords(question, wish)} />
        <div class="line permission-answers">
          <Button
            text={LONGER[wish][lastingKind]}
            {...button}
            class="danger"
            onClick={() => void answer("allow", wish)}
          />
          <Button text="Back" {...button} onClick={() => held || setWish(undefined)} />
        </div>
      </div>
    );
  if (form !== undefined && form.fields.length > 0)
    return (
      <form
        class="server-form"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void answer("allow", "once", contentOf(form.fields, entries));
        }}
      >
        <FormFields fields={form.fields} entries={entries} onChange={setEntries} />
        <div ref={part} class="line permission-answers">
          <Button text="Send" {...button} type="submit" class="primary" />
          {deny("Decline")}
        </div>
      </form>
    );
  return (
    <div ref={part} class="line permission-answers">
      <Button text="Allow" {...button} class="primary" onClick={() => void answer("allow")} />
      {deny("Deny")}
      {lasting.length > 0 && (
        <details>
          <summary>Allow for longer</summary>
          {lasting.map((scope) => (
            <Button
              text={`${LONGER[scope][lastingKind]}…`}
              key={scope}
              {...button}
              onClick={() => held || setWish(scope)}
            />
          ))}
        </details>
      )}
    </div>
  );
}

export function Permission(props: Omit<AnswersProps, "held"> & { mayAnswer: boolean; held?: boolean }) {
  const { question, mayAnswer, held = false, onDone } = props;
  const { agentId, title, kind, detail, asked, form, expiresAt, labels } = question;
  // The form itself is shown to a reader who may answer it.
  const isForm = form !== undefined && form.fields.length > 0 && mayAnswer;
  const { command = title, folder, reason } = asked ?? {};
  return (
    <div class="permission">
      <p>
        <Agent id={agentId} /> {wantsTo(kind)}
      </p>
      <Lines as="pre" class="sunken" text={command} />
      {folder !== undefined && (
        <p class="soft">
          in <Name text={folder} />
        </p>
      )}
      {folder === undefined && detail !== undefined && !isForm && (
        <Lines
          as="pre"
          class="sunken small permission-detail"
          text={labels === undefined ? detail : withoutSources(detail)}
        />
      )}
      {labels !== undefined && (
        <p class="bar">
          after reading <LabelChips labels={labels} />
        </p>
      )}
      {form?.url !== undefined && <Copy text={() => form.url ?? ""} name="the address" />}
      {reason !== undefined && <Name as="p" class="soft small" text={reason} />}
      {mayAnswer && <Answers question={question} held={held} onDone={onDone} />}
      <p class="soft small">denied in {duration(Math.max(0, expiresAt - tick.value))}</p>
    </div>
  );
}
