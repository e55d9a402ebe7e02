// Shows one item of the inbox: its name, its text and its actions. Space expands its details below it.

import type { ComponentChildren } from "preact";
import { useId, useState } from "preact/hooks";
import type { AttentionItem } from "../../../src/contract/methods/attention.ts";
import { safeLine, safeText } from "../../../src/core/text/safe-text.ts";
import { agentName } from "../agents/known.ts";
import { AgentMark } from "../agents/mark.tsx";
import { Button } from "../parts/button.tsx";
import { lazy } from "../parts/lazy.tsx";
import { Name } from "../parts/name.tsx";
import { nameOf } from "../parts/names.ts";
import { Time } from "../parts/time.tsx";
import { hrefOf } from "../route.ts";
import { busy } from "./actions.ts";
import { DEED_WORDS, type Deed, markOf, styleOf, toneOf } from "./marks.ts";
import { awaitedPermission, itemName, permissionsOf, wantsTo } from "./model.ts";
import { moved } from "./moved.ts";

const Fix = lazy(async () => (await import("../setup/fix.tsx")).Fix);
const Leaving = lazy(async () => (await import("../labels/chips.tsx")).Leaving);
const Peek = lazy(async () => (await import("./peek.tsx")).Peek);

function Waits({ item }: { item: AttentionItem }) {
  const { kind, sessionKey = "", waitingFor = [], waitingForCount = 0 } = item;
  const [first] = waitingFor;
  const asked = kind === "run" ? permissionsOf(sessionKey) : [];
  if (asked.length > 0) return <span class="inbox-waits">{awaitedPermission(asked)}</span>;
  if (first === undefined) return null;
  const others = waitingForCount - 1;
  return (
    <span class="inbox-waits">
      waits for <Name text={nameOf(first)} title={first} />
      {others > 0 && ` and ${others} more`}
    </span>
  );
}

function About({ item }: { item: AttentionItem }) {
  const { kind, state = "", attempt, agentId = "" } = item;
  const isFailed = kind === "run" && toneOf(item) === "bad";
  const words = attempt === undefined ? "" : `attempt ${attempt}`;
  return (
    <>
      {isFailed && !itemName(item).startsWith(agentId) && (
        <Name as="span" class="soft" text={agentName(agentId)} />
      )}
      {words !== "" && state !== "ok" && (
        <span class="soft">{isFailed ? `failed again (${words})` : words}</span>
      )}
    </>
  );
}

/** Shows the text of an item on one line. Of a permission request, shows all of it, and who asks. */
function Summary({ item: { kind, agentId = "", summary, title, labels } }: { item: AttentionItem }) {
  if (kind !== "permission") return <Name text={summary} />;
  return (
    <>
      <Name text={agentName(agentId)} /> {wantsTo(title)}{" "}
      {labels === undefined ? (
        <code>
          <bdi>{safeText(summary)}</bdi>
        </code>
      ) : (
        <Leaving summary={summary} labels={labels} />
      )}
    </>
  );
}

/** `plain`: the item's name as plain text, for labels. */
function Buttons(props: {
  item: AttentionItem;
  actions: AttentionItem["actions"];
  plain: string;
  onAnswer: () => void;
  onDeed: (deed: Deed) => void;
}) {
  const { item, actions, plain, onAnswer, onDeed } = props;
  return (
    <>
      {actions.map((action) => {
        const isBusy = action !== "answer" && busy.value.has(item.id);
        const blocked = action !== "answer" && (isBusy || moved.value.has(item.id));
        return (
          <Button
            text={action === "retry" && busy.value.get(item.id) === action ? "Retrying…" : DEED_WORDS[action]}
            key={action}
            class={styleOf(action)}
            aria-busy={isBusy}
            aria-disabled={blocked}
            aria-label={`${DEED_WORDS[action]} ${plain}`}
            onClick={() => (action === "answer" ? onAnswer() : onDeed(action))}
          />
        );
      })}
    </>
  );
}

export function InboxRow(props: {
  item: AttentionItem;
  /** The box that selects the row, if there is one. */
  select: ComponentChildren;
  open: boolean;
  onPeek: () => void;
  onDeed: (deed: Deed) => void;
}) {
  const { item, select, open, onPeek, onDeed } = props;
  const peekId = useId();
  const [answers, setAnswers] = useState(0);
  const onAnswer = (): void => {
    if (!open) onPeek();
    setAnswers(answers + 1);
  };
  const { sessionKey, summary, since, kind } = item;
  // The details of a permission request have its buttons.
  const actions = kind === "permission" && open ? [] : item.actions;
  const plain = safeLine(itemName(item));
  const name = <Name text={itemName(item)} title={sessionKey} />;
  return (
    <li data-item class={`inbox-row tone-${toneOf(item)} ${open ? "open" : ""}`}>
      <div class="inbox-head">
        <span class="row inbox-mark">
          {select}
          <span class="chip">{markOf(item)}</span>
        </span>
        <p class="line inbox-name">
          <AgentMark id={item.agentId ?? ""} />
          {sessionKey === undefined ? (
            <Button text={name} class="plain inbox-link" data-row={item.id} onClick={onPeek} />
          ) : (
            <a class="inbox-link" data-row={item.id} href={hrefOf({ view: "sessions", key: sessionKey })}>
              {name}
            </a>
          )}
          <Waits item={item} />
          <About item={item} />
        </p>
        <Time class="inbox-age small" at={since} as="age" />
        <div class="inbox-actions">
          {item.code !== undefined && actions.includes("retry") && (
            <Fix code={item.code} agentId={item.agentId ?? ""} sessionKey={sessionKey ?? ""} />
          )}
          <Buttons item={item} actions={actions} plain={plain} onAnswer={onAnswer} onDeed={onDeed} />
          <button
            type="button"
            class="quiet inbox-more"
            aria-expanded={open}
            aria-controls={open ? peekId : undefined}
            aria-label={`Peek ${plain}`}
            title="Peek (Space)"
            onClick={onPeek}
          >
            <span aria-hidden="true">{open ? "▴" : "▾"}</span>
          </button>
        </div>
      </div>
      {!open && summary !== itemName(item) && (
        <p class={`cut inbox-summary ${kind === "permission" ? "whole" : ""}`}>
          <Summary item={item} />
        </p>
      )}
      {open && <Peek item={item} id={peekId} answers={answers} />}
    </li>
  );
}
