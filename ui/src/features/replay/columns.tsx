// Shows two chains side by side, aligned by step.

import "./replay.css";
import { useMemo, useState } from "preact/hooks";
import { safeLine, safeText } from "../../../../src/core/text/safe-text.ts";
import type { ChainComparison } from "../../../../src/features/replay/contract.ts";
import { LabelChip } from "../../labels/chips.tsx";
import { counted, duration, exactMoney, money, tokens } from "../../parts/format.ts";
import { shortKey } from "../../sessions/own-name.ts";
import { partsOf, stepWords } from "./text-diff.ts";

const ROWS_MAX = 500;

type Amounts = Pick<ChainComparison["a"], "tokens" | "cost" | "ms">;
type StepSide = ChainComparison["steps"][number]["a"];

function amountsOf({ tokens: used, cost, ms }: Amounts): string {
  const all = [used > 0 && `${tokens(used)} tokens`, cost > 0 && money(cost), ms > 0 && duration(ms)];
  return all.filter((one) => one !== false).join(" · ");
}

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
    <section class="label-differences">
      <h3 id="label-differences">Labels that differ</h3>
      <ul class="stack" aria-labelledby="label-differences">
        {labels.map(({ side, label, source, sessions }) => (
          <li key={`${side} ${label} ${source}`} class="bar">
            <LabelChip label={label} source={source} />
            <bdi>
              {safeLine(
                `only in ${names[side === "a" ? 0 : 1]} · ${sessions.map((key) => shortKey(key)).join(", ")}`,
              )}
            </bdi>
          </li>
        ))}
      </ul>
    </section>
  );
}

export function Columns({ diff, names }: { diff: ChainComparison; names: readonly [string, string] }) {
  const { a, b, differences, steps } = diff;
  const [only, setOnly] = useState(differences > 0);
  const inWords = useMemo(() => {
    const worded = (step: string, side: StepSide) => side && { ...side, text: stepWords(step, side.text) };
    return steps.map((one) => ({ ...one, a: worded(one.step, one.a), b: worded(one.step, one.b) }));
  }, [steps]);
  const rows = only ? inWords.filter(({ same }) => !same) : inWords;
  const [left, right] = names;
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
      <ol class="columns">
        <li class="column-heads">
          {([a, b] as const).map((one, at) => (
            <div key={at} class="side">
              <h3>{names[at]}</h3>
              <small class="soft small">
                {`${counted(one.runs, "run")} · ${counted(one.steps, "step")} · ${amountsOf(one)}`}
              </small>
            </div>
          ))}
        </li>
        {rows.slice(0, ROWS_MAX).map(({ session, step, same, ...sides }, at) => (
          <li key={at} class={same ? "" : "differs"}>
            <h4>
              <bdi>{safeLine(`${shortKey(session)} · ${step}`)}</bdi>
            </h4>
            <Side name={left} text={sides.a?.text} other={sides.b?.text} amounts={sides.a} />
            <Side name={right} text={sides.b?.text} other={sides.a?.text} isSecond amounts={sides.b} />
          </li>
        ))}
      </ol>
      {(rows.length > ROWS_MAX || steps.length < Math.max(a.steps, b.steps)) && (
        <p class="soft">First steps only</p>
      )}
    </>
  );
}
