// Shows an item of the inbox: its name, its text and its actions. Space expands its details below it.
// Failures of one cause are one row, with actions for all of them.

import { useId, useState } from "preact/hooks";
import type { AttentionItem } from "../../../src/contract/methods/attention.ts";
import { safeLine } from "../../../src/core/text/safe-text.ts";
import { agentName } from "../agents/known.ts";
import { AgentMark } from "../agents/mark.tsx";
import { tick } from "../clock.ts";
import { Button } from "../parts/button.tsx";
import { age } from "../parts/format.ts";
import { useKept } from "../parts/kept.ts";
import { lazy } from "../parts/lazy.tsx";
import { Lines, Name } from "../parts/name.tsx";
import { nameOf } from "../parts/names.ts";
import { Time } from "../parts/time.tsx";
import { hrefOf } from "../route.ts";
import { mendsAll } from "../setup/failed-run.ts";
import { busy } from "./actions.ts";
import { deedsForAll, type Entry, namesIn } from "./causes.ts";
import { DEED_WORDS, markOf, styleOf, summaryOf, toneOf } from "./marks.ts";
import { awaitedPermission, itemName, permissionsOf, wantsTo } from "./model.ts";
import { moved } from "./moved.ts";
import { Box, type InboxUse } from "./triage.tsx";

const Fix = lazy(async () => (await import("../setup/fix.tsx")).Fix);
const Leaving = lazy(async () => (await import("../labels/chips.tsx")).Leaving);
const Peek = lazy(async () => (await import("./peek.tsx")).Peek);

function Waits({ item }: { item: AttentionItem }) {
  const { kind, sessionKey = "", waitingFor = [], waitingForCount = 0, expiresAt } = item;
  if (expiresAt !== undefined) return <span class="soft small">denied in {age(tick.value, expiresAt)}</span>;
  const [first] = waitingFor;
  const asked = kind === "run" ? permissionsOf(sessionKey) : [];
  if (asked.length > 0) return <span class="tone-waiting toned">{awaitedPermission(asked)}</span>;
  if (first === undefined) return null;
  const others = waitingForCount - 1;
  return (
    <span class="tone-waiting toned">
      waits for <Name text={nameOf(first)} title={first} />
      {others > 0 && ` and ${others} more`}
    </span>
  );
}

/** Says which agent failed, if its name is not that of the item, and how often the run was tried. */
function Attempts({ item }: { item: AttentionItem }) {
  const { kind, state, attempt, agentId = "" } = item;
  const isFailed = kind === "run" && toneOf(item) === "bad";
  const words = isFailed ? `failed again (attempt ${attempt})` : `attempt ${attempt}`;
  return (
    <>
      {isFailed && !itemName(item).startsWith(agentId) && (
        <Name as="span" class="soft" text={agentName(agentId)} />
      )}
      {attempt !== undefined && state !== "ok" && <span class="soft">{words}</span>}
    </>
  );
}

/** Shows the text of an item on one line. Of a permission request, shows all of it, and who asks. */
function Summary({ item }: { item: AttentionItem }) {
  const { kind, agentId = "", summary, title, labels } = item;
  if (kind !== "permission") return <Name text={summaryOf(item)} title={summary} />;
  return (
    <>
      <Name text={agentName(agentId)} /> {wantsTo(title)}{" "}
      {labels === undefined ? (
        <Lines as="code" text={summary} />
      ) : (
        <Leaving summary={summary} labels={labels} />
      )}
    </>
  );
}

/** Shows one item, or failures of one cause, whose rows are below it on demand. */
export function InboxRow({ entry, triages, use }: { entry: Entry; triages: boolean; use: InboxUse }) {
  const { id, items } = entry;
  const [item] = items;
  const { sessionKey = "", agentId = "", kind, code, model } = item;
  const summary = summaryOf(item);
  const isOne = items.length === 1;
  const [unfolded, setUnfolded] = useKept(`unfolded ${id}`, false);
  const open = isOne ? use.open === id : unfolded;
  const turn = (): void => (isOne ? use.onPeek(id) : setUnfolded(!unfolded));
  const belowId = useId();
  const [answers, setAnswers] = useState(0);
  const answer = (): void => {
    if (!open) turn();
    setAnswers(answers + 1);
  };
  const name = isOne ? itemName(item) : summary;
  const below = isOne ? summary : namesIn(items.map(itemName));
  // The details of a permission request have its buttons.
  const single = kind === "permission" && open ? [] : item.actions;
  const actions = isOne ? single : deedsForAll(items);
  const isBusy = items.some((one) => busy.value.has(one.id));
  const held = isBusy || moved.value.has(id);
  const expands = { "aria-expanded": open, "aria-controls": open ? belowId : undefined, onClick: turn };
  return (
    <li
      data-item
      class={`inbox-row ${isOne ? "" : "inbox-bundle"} tone-${toneOf(item)} ${open ? "open" : ""}`}
      onKeyDown={(event) => use.onKey(event, entry)}
    >
      <div class="inbox-head">
        <span class="row inbox-mark">
          {triages && <Box items={items} name={name} use={use} />}
          <span class="chip">{markOf(item)}</span>
        </span>
        <p class="line">
          {isOne && <AgentMark id={agentId} />}
          {isOne && sessionKey !== "" ? (
            <a class="inbox-link" data-row={id} href={hrefOf({ view: "sessions", key: sessionKey })}>
              <Name text={name} title={sessionKey} />
            </a>
          ) : (
            <Button text={<Name text={name} />} class="plain inbox-link" data-row={id} {...expands} />
          )}
          {isOne && !(open && kind === "permission") && <Waits item={item} />}
          {isOne && <Attempts item={item} />}
          {!isOne && <span class="soft">×{items.length}</span>}
        </p>
        <Time class="number soft small" at={item.since} as="age" />
        <div class="row inbox-actions held">
          {code !== undefined && actions.includes("retry") && (isOne || mendsAll(code)) && (
            <Fix {...{ code, agentId, sessionKey, model }} />
          )}
          {actions.map((action) => {
            const isRetrying = action === "retry" && busy.value.get(item.id) === action;
            return (
              <Button
                text={isRetrying ? "Retrying…" : `${DEED_WORDS[action]}${isOne ? "" : " all"}`}
                key={action}
                class={styleOf(action)}
                aria-busy={action !== "answer" && isBusy}
                aria-disabled={action !== "answer" && held}
                aria-label={isOne ? `${DEED_WORDS[action]} ${safeLine(name)}` : undefined}
                onClick={() => (action === "answer" ? answer() : held || use.onDeed(items, action))}
              />
            );
          })}
          <Button
            text={<span aria-hidden="true">{open ? "▴" : "▾"}</span>}
            class="quiet inbox-more"
            {...expands}
            aria-label={isOne ? `Peek ${safeLine(name)}` : `Show all ${items.length}`}
            title={isOne ? "Peek (Space)" : undefined}
          />
        </div>
      </div>
      {!open && below !== name && (
        <p class={`cut inbox-summary ${isOne && kind === "permission" ? "whole" : ""}`}>
          {isOne ? <Summary item={item} /> : <Name text={below} />}
        </p>
      )}
      {open && isOne && <Peek item={item} id={belowId} answers={answers} />}
      {open && !isOne && (
        <ul class="inbox-rows rows card" id={belowId}>
          {items.map((one) => (
            <InboxRow key={one.id} entry={{ id: one.id, items: [one] }} triages={triages} use={use} />
          ))}
        </ul>
      )}
    </li>
  );
}
