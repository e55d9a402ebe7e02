// Shows two chains side by side, aligned by step.

import "./replay.css";
import { useMemo, useState } from "preact/hooks";
import { safeText } from "../../../../src/core/text/safe-text.ts";
import type { ChainComparison } from "../../../../src/features/replay/contract.ts";
import { LabelChip } from "../../labels/chips.tsx";
import { counted, duration, exactMoney, money, tokens } from "../../parts/format.ts";
import { Name } from "../../parts/name.tsx";
import { sessionName } from "../../parts/names.ts";
import { joinWords } from "../../parts/words.ts";
import { partsOf, stepWords } from "./text-diff.ts";

const ROWS_MAX = 500;

type Amounts = Pick<ChainComparison["a"], "tokens" | "cost" | "ms">;

const amountsOf = ({ tokens: used, cost, ms }: Amounts): string =>
  joinWords([
    used > 0 ? `${tokens(used)} tokens` : "",
    cost > 0 ? money(cost) : "",
    ms > 0 ? duration(ms) : "",
  ]);

/** Shows one side of a step. `other`: the text of the other side. The words that differ are marked. */
export function Side(props: {
  name: string;
  text: string | undefined;
  other: string | undefined;
  isSecond?: boolean;
  amounts?: Amounts | undefined;
}) {
  const { name, text, other, isSecond = false, amounts } = props;
  const parts = useMemo(() => partsOf(text ?? "", other ?? text ?? ""), [text, other]);
  const Mark = isSecond ? "ins" : "del";
  return (
    <div class="side" data-name={name}>
      {text === undefined ? (
        <p class="soft">Nothing</p>
      ) : (
        <p class="raw">
          <bdi>
            {parts.map((part, at) =>
              part.changed ? <Mark key={at}>{safeText(part.text)}</Mark> : safeText(part.text),
            )}
          </bdi>
        </p>
      )}
      {amounts !== undefined && (
        <small class="soft small" title={amounts.cost > 0 ? exactMoney(amounts.cost) : undefined}>
          {amountsOf(amounts)}
        </small>
      )}
    </div>
  );
}

export function LabelDifferences(props: {
  labels: ChainComparison["labels"];
  names: readonly [string, string];
}) {
  const { labels, names } = props;
  if (labels.length === 0) return null;
  return (
    <section>
      <h3 id="label-differences">Labels that differ</h3>
      <ul class="stack" aria-labelledby="label-differences">
        {labels.map(({ side, label, source, sessions }) => {
          const keys = sessions.map((key) => sessionName({ key })).join(", ");
          return (
            <li key={`${side} ${label} ${source}`} class="bar">
              <LabelChip label={label} source={source} />
              <Name text={`only in ${names[side === "a" ? 0 : 1]} · ${keys}`} />
            </li>
          );
        })}
      </ul>
    </section>
  );
}

export function Columns({ diff, names }: { diff: ChainComparison; names: readonly [string, string] }) {
  const { a, b, differences, steps } = diff;
  const [only, setOnly] = useState(differences > 0);
  const rows = only ? steps.filter(({ same }) => !same) : steps;
  return (
    <>
      <div class="bar">
        <span class={`chip ${differences === 0 ? "tone-good" : "tone-warn"}`}>
          {differences === 0 ? "No difference" : counted(differences, "difference")}
        </span>
        <label class="inline">
          <input type="checkbox" checked={only} onChange={() => setOnly(!only)} /> Only differences
        </label>
      </div>
      <ol class="stack columns">
        <li class="sides column-heads">
          {([a, b] as const).map((one, at) => (
            <div key={at}>
              <h3>{names[at]}</h3>
              <small class="soft small">
                {`${counted(one.runs, "run")} · ${counted(one.steps, "step")} · ${amountsOf(one)}`}
              </small>
            </div>
          ))}
        </li>
        {rows.slice(0, ROWS_MAX).map(({ session, step, same, ...sides }, at) => {
          const [left, right] = [sides.a, sides.b].map((side) => side && stepWords(step, side.text));
          return (
            <li key={at} class={same ? "sides" : "sides differs"}>
              <Name as="h4" text={`${sessionName({ key: session })} · ${step}`} />
              <Side name={names[0]} text={left} other={right} amounts={sides.a} />
              <Side name={names[1]} text={right} other={left} isSecond amounts={sides.b} />
            </li>
          );
        })}
      </ol>
      {(rows.length > ROWS_MAX || steps.length < Math.max(a.steps, b.steps)) && (
        <p class="soft">First steps only</p>
      )}
    </>
  );
}
