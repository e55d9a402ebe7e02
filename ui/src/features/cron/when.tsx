// The part of the job form that sets the schedule. It shows a preview of the next runs, which the gateway
// computes.

import { useState } from "preact/hooks";
import { now } from "../../clock.ts";
import { ask, wordsOf } from "../../gateway.ts";
import { type Field, FormFields } from "../../inbox/form.tsx";
import { useCalmReading } from "../../parts/calm-reading.ts";
import { Lines } from "../../parts/name.tsx";
import { type Option, Select } from "../../parts/select.tsx";
import { dateWords, elsewhere } from "./dates.ts";
import { type Draft, scheduleOf, UNITS } from "./draft.ts";

const ASK_AFTER_MS = 250;

const KINDS = [
  { kind: "cron", title: "At set times" },
  { kind: "every", title: "At an interval" },
  { kind: "at", title: "Once" },
] as const;

const DAY_NAMES = new Intl.DateTimeFormat("en", { weekday: "long", timeZone: "UTC" });
/** The days that the form offers, as the end of a cron expression. */
const DAYS: readonly Option<string>[] = [
  ["* * *", "Every day"],
  ["* * 1-5", "Weekdays"],
  ...[1, 2, 3, 4, 5, 6, 0].map(
    (day) => [`* * ${day}`, DAY_NAMES.format(Date.UTC(2024, 0, 7 + day))] as const,
  ),
  ["1 * *", "First of the month"],
];
/** The expressions of which the form has fields: minute, hour, days. */
const PLAIN = /^\s*(\d{1,2})\s+(\d{1,2})\s+(\S+\s+\S+\s+\S+)\s*$/;

const ZONE: Field = {
  ...{ name: "tz", title: "Time zone", setting: true, placeholder: "" },
  suggestions: Intl.supportedValuesOf("timeZone"),
};
const EXPRESSION: Field = {
  ...{ name: "expr", title: "Cron expression", setting: true, placeholder: "", maxChars: 200 },
  description: "minute hour day month weekday",
};
const EVERY: readonly Field[] = [
  { name: "every", title: "Every", setting: true, type: "integer", placeholder: "" },
  { name: "unit", title: "Unit", type: "choice", choices: UNITS.map(({ name }) => name) },
];

interface WhenProps {
  readonly draft: Draft;
  change(part: Partial<Draft>): void;
}

function CronFields({ draft, change }: WhenProps) {
  const [, minute = "", hour = "", rest = ""] = PLAIN.exec(draft.expr) ?? [];
  const days = rest.replace(/\s+/g, " ");
  const isPlain = DAYS.some(([value]) => value === days);
  // The field must not close while the reader types in it.
  const [wasPlain] = useState(isPlain);
  const time = isPlain ? [hour, minute].map((part) => part.padStart(2, "0")).join(":") : "";
  const write = (at: string, on: string): void => {
    const [h = "", m = ""] = at.split(":");
    change({ expr: `${Number(m)} ${Number(h)} ${on}` });
  };
  return (
    <>
      <div class="pair">
        <label>
          <span>Days</span>
          <Select
            value={isPlain ? days : ""}
            options={isPlain ? DAYS : [["", "Other"], ...DAYS]}
            onPick={(on) => write(time || "08:00", on)}
          />
        </label>
        <label>
          <span>Time</span>
          <input
            type="time"
            value={time}
            disabled={!isPlain}
            onInput={(event) => event.currentTarget.value !== "" && write(event.currentTarget.value, days)}
          />
        </label>
        <FormFields fields={[ZONE]} entries={{ ...draft }} onChange={change} />
      </div>
      <details class="more" open={!wasPlain}>
        <summary>Other times</summary>
        <FormFields fields={[EXPRESSION]} entries={{ ...draft }} onChange={change} />
      </details>
    </>
  );
}

function Preview({ draft }: { draft: Draft }) {
  const wanted = scheduleOf(draft);
  const { value, problem } = useCalmReading(
    JSON.stringify(wanted) ?? "",
    ASK_AFTER_MS,
    async () => wanted && ask("cron.preview", { schedule: wanted }),
  );
  const { schedule, words, dates = [] } = value ?? {};
  const zone = schedule?.kind === "cron" ? schedule.tz : undefined;
  return (
    <div class="sunken preview" role="status">
      {problem !== undefined && <Lines class="tone-bad toned" text={wordsOf(problem)} />}
      {value === undefined && problem === undefined && <p class="soft">The next dates appear here.</p>}
      {value !== undefined && (
        <p>
          Due <b>{words}</b>
          {zone === undefined ? "" : ` in ${zone}`}
        </p>
      )}
      <ol>
        {dates.map((date) => (
          <li key={date}>
            {dateWords(date, now())} <span class="soft">{elsewhere(date, now(), zone)}</span>
          </li>
        ))}
      </ol>
    </div>
  );
}

export function When(props: WhenProps) {
  const { draft, change } = props;
  return (
    <fieldset class="stack card box">
      <legend>Schedule</legend>
      <div class="bar">
        {KINDS.map(({ kind, title }) => (
          <label key={kind} class="inline row">
            <input type="radio" name="kind" checked={draft.kind === kind} onChange={() => change({ kind })} />
            {title}
          </label>
        ))}
      </div>
      {draft.kind === "cron" && <CronFields {...props} />}
      {draft.kind === "every" && (
        <div class="pair">
          <FormFields fields={EVERY} entries={{ ...draft }} onChange={change} />
        </div>
      )}
      {draft.kind === "at" && (
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
      )}
      <Preview draft={draft} />
    </fieldset>
  );
}
