// Shows the access of one session to another, with the rules that decide it.

import type { PayloadOf } from "../../../src/contract/methods.ts";
import type { Explanation } from "../../../src/core/shapes/explanation.ts";
import { ask } from "../gateway.ts";
import { Button } from "../parts/button.tsx";
import { Name, SessionLink } from "../parts/name.tsx";
import { useReading } from "../parts/reading.ts";
import { State } from "../parts/state.tsx";
import { ResourceList, type ResourceRow } from "./resource-list.tsx";
import { SessionPicker } from "./session-picker.tsx";

type Explained = PayloadOf<"access.explain">;

const WORDS: Readonly<Record<Explanation["access"], string>> = {
  list: "see it in a list",
  read: "read its history",
  search: "search its messages",
  send: "send to it",
  spawn: "spawn its agent",
  status: "read its status",
};

const CHECKS: Readonly<Record<Explanation["checks"][number]["of"], string>> = {
  sight: "Visibility",
  tool: "Tool",
  spawn: "Spawning",
  send_policy: "Send policy",
  open_flow: "Conversation",
  wait_cycle: "Waiting",
};

/** Puts the kinds of access together that the same rule decides in the same way. */
function groupAnswers(answers: readonly Explanation[]): Explanation[][] {
  const groups = Map.groupBy(answers, ({ allowed, rule, settings }) =>
    JSON.stringify([allowed, rule, settings]),
  );
  return [...groups.values()];
}

function answerRow(group: readonly Explanation[]): ResourceRow {
  const { access = "", allowed, rule, settings = [] } = group[0] ?? {};
  const checks = new Map(group.flatMap((one) => one.checks).map((check) => [check.rule, check]));
  return {
    key: access,
    state: <State state={allowed ? "ok" : "refused"} text={allowed ? "yes" : "no"} />,
    name: group.map((one) => WORDS[one.access]).join(", "),
    facts: [rule],
    body: (
      <>
        {settings.length > 0 && (
          <p class="line chips">
            <span class="soft">needs</span>
            {settings.map((setting) => (
              <Name as="code" class="chip" key={setting} text={setting} />
            ))}
          </p>
        )}
        <details>
          <summary>
            All rules
            <span class="visually-hidden"> of {group.map((one) => one.access).join(", ")}</span>
          </summary>
          <dl class="facts">
            {[...checks.values()].map((check) => (
              <div key={check.rule}>
                <dt>
                  <State state={check.allowed ? "ok" : "refused"} text={CHECKS[check.of]} />
                  {check.now === true && <span class="chip tone-warn">right now</span>}
                </dt>
                <Name as="dd" text={check.rule} />
              </div>
            ))}
          </dl>
        </details>
      </>
    ),
  };
}

function Facts({ explained }: { explained: Explained }) {
  const { viewer, target, visibility } = explained;
  const { configured, effective } = visibility;
  return (
    <p class="bar">
      <SessionLink sessionKey={viewer.key} />
      {viewer.sandboxed && <span class="chip">sandboxed</span>}
      {viewer.archived && <span class="chip">archived</span>}
      <span class="soft" aria-hidden="true">
        →
      </span>
      <span class="visually-hidden">to</span>
      {target.exists ? <SessionLink sessionKey={target.key} /> : <Name text={target.key} />}
      {target.archived && <span class="chip">archived</span>}
      {!target.exists && <span class="chip tone-warn">no such session: the answers assume one</span>}
      <span class="soft">
        visibility <code>{configured}</code>
        {effective !== configured && (
          <>
            , effective: <code>{effective}</code>
          </>
        )}
      </span>
    </p>
  );
}

interface AccessProps {
  readonly viewer: string;
  readonly target: string;
  readonly onChoose: (viewer: string, target: string) => void;
}

export function Access({ viewer, target, onChoose }: AccessProps) {
  const isChosen = viewer !== "" && target !== "";
  const read = useReading(
    `${viewer}\n${target}`,
    async () => isChosen && ask("access.explain", { viewer, target }),
  );
  const explained = read.value || undefined;
  return (
    <section aria-label="Access between two sessions">
      <ResourceList
        title="Access between two sessions"
        words="Each kind of access, and the rule that decides it."
        head={isChosen && <Button text="Refresh" onClick={read.again} disabled={read.busy} />}
        label="Answers"
        list={read}
        rows={explained && groupAnswers(explained.answers)}
        row={answerRow}
      >
        <div class="bar out-filters">
          <SessionPicker label="From session" value={viewer} onPick={(key) => onChoose(key, target)} />
          <Button
            text="⇄"
            class="quiet"
            aria-label="Swap the sessions"
            title="Swap the sessions"
            onClick={() => onChoose(target, viewer)}
          />
          <SessionPicker label="To session" value={target} onPick={(key) => onChoose(viewer, key)} />
        </div>
        {explained && <Facts explained={explained} />}
      </ResourceList>
    </section>
  );
}
