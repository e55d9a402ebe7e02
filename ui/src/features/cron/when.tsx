// The part of the job form that sets the schedule. It shows a preview of the next runs, which the gateway
// computes.

import { useEffect, useId, useMemo, useState } from "preact/hooks";
import type { PayloadOf } from "../../../../src/contract/methods.ts";
import { safeText } from "../../../../src/core/text/safe-text.ts";
import { now, settled } from "../../clock.ts";
import { ask, wordsOf } from "../../gateway.ts";
import { Select } from "../../parts/select.tsx";
import { dateWords, elsewhere } from "./dates.ts";
import { type Draft, scheduleOf, UNITS } from "./draft.ts";

const ASK_AFTER_MS = 250;

const KINDS = [
  { kind: "cron", title: "At set times" },
  { kind: "every", title: "At an interval" },
  { kind: "at", title: "Once" },
] as const;

const USUAL = [
  { title: "Every day", expr: "0 8 * * *" },
  { title: "Weekdays", expr: "0 8 * * 1-5" },
  { title: "Mondays", expr: "0 8 * * 1" },
  { title: "Hourly", expr: "0 * * * *" },
  { title: "Monthly", expr: "0 8 1 * *" },
] as const;

export interface WhenProps {
  readonly draft: Draft;
  change(part: Partial<Draft>): void;
}

function CronFields({ draft, change }: WhenProps) {
  const zones = useId();
  return (
    <>
      <div class="usual bar">
        {USUAL.map(({ title, expr }) => (
          <button
            key={expr}
            type="button"
            class="small"
            aria-pressed={draft.expr.trim() === expr}
            onClick={() => change({ expr })}
          >
            {title}
          </button>
        ))}
      </div>
      <div class="pair">
        <label>
          <span>
            Expression <span class="soft small">min hour day month weekday</span>
          </span>
          <input
            class="mono"
            value={draft.expr}
            maxLength={200}
            spellcheck={false}
            autocomplete="off"
            onInput={(event) => change({ expr: event.currentTarget.value })}
          />
        </label>
        <label>
          <span>Time zone</span>
          <input
            value={draft.tz}
            list={zones}
            spellcheck={false}
            autocomplete="off"
            onInput={(event) => change({ tz: event.currentTarget.value })}
          />
        </label>
      </div>
      <datalist id={zones}>
        {Intl.supportedValuesOf("timeZone").map((zone) => (
          <option key={zone} value={zone} />
        ))}
      </datalist>
    </>
  );
}

function EveryFields({ draft, change }: WhenProps) {
  return (
    <div class="bar">
      <label class="inline">
        Every{" "}
        <input
          class="count"
          type="number"
          min={1}
          value={draft.every}
          onInput={(event) => change({ every: event.currentTarget.value })}
        />
      </label>
      <Select
        aria-label="Unit"
        value={draft.unit}
        options={UNITS.map(({ name }) => name)}
        onPick={(unit) => change({ unit })}
      />
    </div>
  );
}

function AtField({ draft, change }: WhenProps) {
  return (
    <label>
      <span>
        Date and time <span class="soft">on your clock</span>
      </span>
      <input
        type="datetime-local"
        value={draft.at}
        onInput={(event) => change({ at: event.currentTarget.value })}
      />
    </label>
  );
}

type Seen =
  | { readonly kind: "dates"; readonly preview: PayloadOf<"cron.preview"> }
  | { readonly kind: "problem"; readonly words: string }
  | { readonly kind: "nothing" };

/** Shows the times of the next runs, which the gateway computes. */
function Preview({ draft }: { draft: Draft }) {
  const [seen, setSeen] = useState<Seen>({ kind: "nothing" });
  const look = useMemo(() => {
    let latest = 0;
    return settled<Draft>(ASK_AFTER_MS, (wanted) => {
      const mine = ++latest;
      const schedule = scheduleOf(wanted);
      if (schedule === undefined) return setSeen({ kind: "nothing" });
      ask("cron.preview", { schedule }).then(
        (preview) => mine === latest && setSeen({ kind: "dates", preview }),
        (problem: unknown) => mine === latest && setSeen({ kind: "problem", words: wordsOf(problem) }),
      );
    });
  }, []);
  const { kind, expr, tz, every, unit, at } = draft;
  useEffect(() => look(draft), [kind, expr, tz, every, unit, at]);
  return (
    <div class="preview" role="status">
      {seen.kind === "nothing" && <p class="soft">The next dates appear here.</p>}
      {seen.kind === "problem" && <p class="problem">{safeText(seen.words)}</p>}
      {seen.kind === "dates" && <Dates preview={seen.preview} />}
    </div>
  );
}

function Dates({ preview }: { preview: PayloadOf<"cron.preview"> }) {
  const { schedule, words, dates } = preview;
  const zone = schedule.kind === "cron" ? schedule.tz : undefined;
  return (
    <>
      <p>
        Due <b>{words}</b>
        {zone === undefined ? "" : ` in ${zone}`}
      </p>
      <ol>
        {dates.map((date) => (
          <li key={date}>
            {dateWords(date, now())} <span class="soft">{elsewhere(date, now(), zone)}</span>
          </li>
        ))}
      </ol>
    </>
  );
}

export function When(props: WhenProps) {
  const { draft, change } = props;
  return (
    <fieldset class="when">
      <legend>Schedule</legend>
      <div class="kinds">
        {KINDS.map(({ kind, title }) => (
          <label key={kind} class="inline">
            <input type="radio" name="kind" checked={draft.kind === kind} onChange={() => change({ kind })} />
            {title}
          </label>
        ))}
      </div>
      {draft.kind === "cron" && <CronFields {...props} />}
      {draft.kind === "every" && <EveryFields {...props} />}
      {draft.kind === "at" && <AtField {...props} />}
      <Preview draft={draft} />
    </fieldset>
  );
}
