// Shows two chains side by side, aligned by step.

import "./replay.css";
import { useState } from "preact/hooks";
import { safeLine, safeText } from "../../../../src/core/text/safe-text.ts";
import type { ChainComparison } from "../../../../src/features/replay/contract.ts";
import { counted, duration, money, tokens } from "../../parts/format.ts";
import { shortKey } from "../../sessions/own-name.ts";

/** Maximum number of steps that are shown. */
const ROWS_MAX = 500;

type Amounts = Pick<ChainComparison["a"], "tokens" | "cost" | "ms">;

function amountsOf({ tokens: used, cost, ms }: Amounts): string {
  const all = [used > 0 && `${tokens(used)} tokens`, cost > 0 && money(cost), ms > 0 && duration(ms)];
  return all.filter((one) => one !== false).join(" · ");
}

/** Matches an id, or one character. */
const PIECE = /[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}|./gsu;

/** Returns whether two pieces of texts are equal. All ids are, like in the comparison itself. */
const isEqual = (a = "", b = ""): boolean => a === b || (a.length > 2 && b.length > 2);

/** Splits a text into the beginning that the other one has too, the part that differs, and the equal end. */
function parted(text: string, other: string): readonly [string, string, string] {
  const [a, b] = [text.match(PIECE) ?? [], other.match(PIECE) ?? []];
  const most = Math.min(a.length, b.length);
  let [start, end] = [0, 0];
  while (start < most && isEqual(a[start], b[start])) start += 1;
  while (end < most - start && isEqual(a.at(-1 - end), b.at(-1 - end))) end += 1;
  const stop = a.length - end;
  const part = (from: number, to?: number): string => safeText(a.slice(from, to).join(""));
  return [part(0, start), part(start, stop), part(stop)];
}

/** Shows one side of a step. `other`: the text of the other side. The part that differs is marked. */
export function Side(props: {
  name: string;
  text: string | undefined;
  other: string | undefined;
  amounts?: Amounts | undefined;
}) {
  const { name, text, other, amounts } = props;
  const [begin, differs, end] = parted(text ?? "", other ?? text ?? "");
  return (
    <div class="side" data-name={name}>
      {text === undefined ? (
        <p class="soft">Nothing</p>
      ) : (
        <p>
          <bdi>
            {begin}
            {differs !== "" && <mark>{differs}</mark>}
            {end}
          </bdi>
        </p>
      )}
      {amounts !== undefined && <small class="soft">{amountsOf(amounts)}</small>}
    </div>
  );
}

export function Columns({ diff, names }: { diff: ChainComparison; names: readonly [string, string] }) {
  const { a, b, differences, steps } = diff;
  const [only, setOnly] = useState(differences > 0);
  const rows = only ? steps.filter(({ same }) => !same) : steps;
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
              <small class="soft">
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
            <Side name={right} text={sides.b?.text} other={sides.a?.text} amounts={sides.b} />
          </li>
        ))}
      </ol>
      {(rows.length > ROWS_MAX || steps.length < Math.max(a.steps, b.steps)) && (
        <p class="soft">First steps only</p>
      )}
    </>
  );
}
