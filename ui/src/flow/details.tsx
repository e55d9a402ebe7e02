// Shows the details of one step: text, outcome, cost, and a link to its message.

import type { ChainCall, ChainParty, ChainRow, ChainStep } from "../../../src/core/shapes/chain-step.ts";
import { safeText } from "../../../src/core/text/safe-text.ts";
import { Prose } from "../conversation/text/text.tsx";
import { LabelChips } from "../labels/chips.tsx";
import { Button } from "../parts/button.tsx";
import { clockTime, counted, duration, exactMoney, tokens } from "../parts/format.ts";
import { Name, SessionLink } from "../parts/name.tsx";
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
      {markdown ? (
        <Prose text={text} />
      ) : (
        <p class="raw">
          <bdi>{safeText(text)}</bdi>
        </p>
      )}
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
          const key = ["spawn", "send", "wait", "message"].includes(one.kind) ? one.to : one.from;
          return (
            <li key={one.id}>
              {key === undefined ? (
                <Name text={title(one, around)} />
              ) : (
                <SessionLink
                  sessionKey={key}
                  name={around.name(key)}
                  messageId={one.messageIn === key ? one.messageId : undefined}
                />
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

export function StepDetails(props: {
  step: FlowStep;
  chain: ChainRow;
  call: ChainCall | undefined;
  parties: readonly ChainParty[];
  /** Shows the steps of the row one by one. Undefined if the row is a single step. */
  onExpand: (() => void) | undefined;
  around: Around;
  /** The deliveries of the announcement, if the step is one. */
  deliveries: readonly ChainStep[];
  onClose: () => void;
}) {
  const { step, chain, call, around, parties, deliveries, onExpand, onClose } = props;
  const { messageId, messageIn, silent } = step;
  const opens =
    messageId === undefined || messageIn === undefined
      ? undefined
      : hrefOf({ view: "sessions", key: messageIn, messageId });
  return (
    <aside class="step-details" aria-label="Selected step" data-place="step">
      <div class="step-title">
        <h2>
          <Name text={title(step, around)} />
        </h2>
        <Button text="×" class="quiet" aria-label="Close step" onClick={onClose} />
      </div>
      <p class="bar">
        <State state={step.state} {...toneOf(step)} />
        {silent === true && <span class="chip">no reply</span>}
        {step.receipt !== undefined && <span class="chip">{receiptWord(step.receipt.state)}</span>}
        {step.appended === true && <span class="chip">stored, no run</span>}
        <LabelChips labels={step.labels} />
      </p>
      <StepActions
        step={step}
        chain={chain}
        isGone={(key) => parties.some((one) => one.key === key && one.gone === true)}
      />
      {call !== undefined && <CallFacts call={call} />}
      {onExpand !== undefined && <Button text="Show one by one" onClick={onExpand} />}
      <Texts step={step} around={around} />
      <dl class="facts small">
        {listFacts(step, around, deliveries).map(
          ([name, text]) =>
            text && (
              <div key={name}>
                <dt>{name}</dt>
                <Name as="dd" text={text} />
              </div>
            ),
        )}
      </dl>
      {step.members !== undefined ? null : opens === undefined ? (
        <p class="soft">Message not available: the session was deleted or reset, or you may not see it.</p>
      ) : (
        <a href={opens}>Open message</a>
      )}
    </aside>
  );
}
