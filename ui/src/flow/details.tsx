// Shows the details of one step: text, outcome, cost, and a link to its message.

import type { PayloadOf } from "../../../src/contract/methods.ts";
import type { ChainCall, ChainStep } from "../../../src/core/shapes/chain-step.ts";
import { Prose } from "../conversation/text/text.tsx";
import { LabelChips } from "../labels/chips.tsx";
import { Button } from "../parts/button.tsx";
import { clockTime, counted, duration, exactMoney, tokens } from "../parts/format.ts";
import { Lines, Name, SessionLink } from "../parts/name.tsx";
import { State } from "../parts/state.tsx";
import { joinWords, receiptWord } from "../parts/words.ts";
import { hrefOf } from "../route.ts";
import { StepActions } from "./actions.tsx";
import {
  type Around,
  type FlowStep,
  isFailed,
  outcomesOf,
  reasonOf,
  refusalWords,
  title,
  turnWords,
  waitWords,
} from "./words.ts";

function listFacts(step: ChainStep, around: Around, deliveries: readonly ChainStep[]) {
  const { at, startedAt, endAt, tokens: used, cost, hop, code, kind, route } = step;
  const wait = kind === "send" && step.flowId !== undefined ? around.waits.get(step.flowId) : undefined;
  const sent = deliveries.map((one) => `${one.route?.channel ?? ""} ${one.route?.to ?? ""} (${one.state})`);
  return Object.entries({
    Time: clockTime(at, true),
    "Queue time": startedAt !== undefined && startedAt - at >= 100 && duration(startedAt - at),
    "Run time": kind !== "wait" && startedAt !== undefined && endAt && duration(endAt - startedAt),
    Wait: wait && waitWords(wait),
    Turn: kind === "reply" && turnWords(step),
    "Sent to": sent.join(", "),
    "Sends to": route && `${route.channel} ${route.to}`,
    Tokens: used !== undefined && tokens(used),
    Cost: cost !== undefined && exactMoney(cost),
    Hop: hop ? String(hop) : "",
    Code: code,
  });
}

/** `markdown`: shows the text as a conversation does. */
function Said({ name, text, markdown }: { name: string; text: string; markdown?: boolean }) {
  return (
    <div class="step-said">
      <h3>{name}</h3>
      {markdown ? <Prose text={text} /> : <Lines class="raw" text={text} />}
    </div>
  );
}

/** A wait for a run that failed is `answered` with the error, but is shown as failed. */
function toneOf(step: FlowStep) {
  if (isFailed(step)) return step.state === "answered" ? { tone: "bad" as const, text: "failed" } : {};
  return step.state === "answered" ? { tone: "good" as const } : {};
}

function Members({ members, around }: { members: readonly ChainStep[]; around: Around }) {
  const failed = members.filter(isFailed);
  const others = members.filter((one) => !isFailed(one));
  if (failed.length === 0) return null;
  return (
    <div class="step-said">
      <h3 id="step-failed">Failed</h3>
      <ul class="stack" aria-labelledby="step-failed">
        {failed.map((one) => {
          const { id, kind, from, to, messageIn, messageId } = one;
          const key = ["spawn", "send", "wait", "message"].includes(kind) ? to : from;
          const link = messageIn === key ? messageId : undefined;
          return (
            <li key={id}>
              {key === undefined ? (
                <Name text={title(one, around)} />
              ) : (
                <SessionLink sessionKey={key} name={around.name(key)} messageId={link} />
              )}
              <Name as="div" class="tone-bad toned" text={reasonOf(one)} />
            </li>
          );
        })}
      </ul>
      {others.length > 0 && <p class="soft">{`${counted(others.length, "other")}: ${outcomesOf(others)}`}</p>}
    </div>
  );
}

function CallFacts({ call }: { call: ChainCall }) {
  const { kind, name, at, endAt, failed, tokens: used, cost } = call;
  const figures = [
    clockTime(at),
    endAt === undefined ? "in progress" : duration(endAt - at),
    failed === true ? "failed" : "",
    used === undefined ? "" : `${tokens(used)} tokens`,
    cost === undefined ? "" : exactMoney(cost),
  ];
  const text = joinWords(figures, ", ");
  return <Said name={kind === "model" ? "Model call" : "Tool call"} text={`${name}: ${text}`} />;
}

function Texts({ step, around }: { step: FlowStep; around: Around }) {
  const { kind, text, members, equal, answer, error } = step;
  // The text of a row of different steps is that of the first one.
  if (members !== undefined && equal !== true) return <Members members={members} around={around} />;
  return (
    <>
      {kind === "refused" && <Said name="Reason" text={`Refused: ${refusalWords(step, around)}.`} />}
      {text !== "" && <Said name={kind === "wait" ? "Answer" : "Text"} text={text} markdown />}
      {answer !== undefined && <Said name="Answer" text={answer} markdown />}
      {error !== undefined && <Said name="Error" text={error} />}
    </>
  );
}

/** Returns the column of merged jobs to which a row belongs, or a row of equal steps itself. */
function findColumn({ id, members, equal, from, to }: FlowStep): string | undefined {
  if (members === undefined) return undefined;
  return equal ? id : [to, from].find((key) => key?.startsWith("jobs of "));
}

export function StepDetails(props: {
  step: FlowStep;
  /** The chain of the step. */
  value: PayloadOf<"chains.get">;
  call: ChainCall | undefined;
  around: Around;
  /** Shows the steps of a row or a column one by one. */
  onExpand: (column: string) => void;
  onClose: () => void;
}) {
  const { step, value, call, around, onExpand, onClose } = props;
  const { state, silent, receipt, appended, labels, members, messageId, messageIn, runId } = step;
  const column = findColumn(step);
  const isDelivery = ({ kind, runId: of }: ChainStep): boolean => kind === "delivery" && of === runId;
  const deliveries = step.kind === "announce" && runId !== undefined ? value.steps.filter(isDelivery) : [];
  const facts = listFacts(step, around, deliveries).filter(([, text]) => text);
  return (
    <aside class="step-details" aria-label="Selected step" data-place="step">
      <div class="row step-title">
        <h2>
          <Name text={title(step, around)} />
        </h2>
        <Button text="×" class="quiet" aria-label="Close step" onClick={onClose} />
      </div>
      <p class="bar">
        <State state={state} {...toneOf(step)} />
        {silent === true && <span class="chip">no reply</span>}
        {receipt !== undefined && <span class="chip">{receiptWord(receipt.state)}</span>}
        {appended === true && <span class="chip">stored, no run</span>}
        <LabelChips labels={labels} />
      </p>
      <StepActions step={step} value={value} />
      {call !== undefined && <CallFacts call={call} />}
      {column !== undefined && <Button text="Show one by one" onClick={() => onExpand(column)} />}
      <Texts step={step} around={around} />
      <dl class="facts small">
        {facts.map(([name, text]) => (
          <div key={name}>
            <dt>{name}</dt>
            <Name as="dd" text={String(text)} />
          </div>
        ))}
      </dl>
      {members !== undefined ? null : messageId === undefined || messageIn === undefined ? (
        <p class="soft">Message not available: the session was deleted or reset, or you may not see it.</p>
      ) : (
        <a href={hrefOf({ view: "sessions", key: messageIn, messageId })}>Open message</a>
      )}
    </aside>
  );
}
