// Forms that are made from a schema, one labelled control for each field: the question of an MCP server, and
// the settings of an agent.

import { readTyped } from "../../../src/core/rules/approval/form.ts";
import type { FormField } from "../../../src/core/shapes/permission.ts";
import { Name } from "../parts/name.tsx";
import { Select } from "../parts/select.tsx";

/** The entries of a form, by the name of the field: a list for a field with several choices. */
export type Entries = Readonly<Record<string, string | readonly string[]>>;

export interface Field extends FormField {
  /** A setting, which has a default. Otherwise a field that may be left out is marked as optional. */
  readonly setting?: true;
  /** The default of a setting. */
  readonly fallback?: string;
  /** The text has several lines. */
  readonly lines?: true;
  /** The text is a list, separated by commas. */
  readonly list?: true;
}

/** Returns the entries before anybody has changed them. */
export function firstEntries(fields: readonly FormField[]): Entries {
  const entries = fields.map(({ name, type, default: given }) => {
    if (type === "choices") return [name, Array.isArray(given) ? given : []] as const;
    return [name, given === undefined ? "" : String(given)] as const;
  });
  return Object.fromEntries(entries);
}

/** Returns the answer to send. Null: nothing was entered, and a default of the server does not count. */
export function contentOf(fields: readonly FormField[], entries: Entries): Record<string, unknown> {
  const content = fields.map((field) => {
    const entry = entries[field.name] ?? "";
    if (typeof entry !== "string") return [field.name, entry.length === 0 && !field.required ? null : entry];
    const isChoice = field.type === "choice" && entry !== "";
    return [field.name, isChoice ? entry : (readTyped(field, entry) ?? null)];
  });
  return Object.fromEntries(content) as Record<string, unknown>;
}

const MODES = { number: "decimal", integer: "numeric" } as const;
const EXAMPLES = {
  email: "",
  uri: "https://…",
  date: "2026-07-28",
  "date-time": "2026-07-28T12:00:00Z",
} as const;

const YES_OR_NO = [
  { value: "true", title: "Yes" },
  { value: "false", title: "No" },
];

/** Returns what an empty field stands for. */
function defaultOf({ type, list, fallback }: Field): string {
  const word = type === "boolean" ? YES_OR_NO.find(({ value }) => value === fallback)?.title : fallback;
  return word === undefined ? "Default" : `Default: ${word}${list ? ", separated by commas" : ""}`;
}

/** An entry that is no option any more is still offered. */
function optionsOf(field: Field, entry: string): (readonly [string, string])[] {
  const { type, setting, options = [] } = field;
  const offered = (type === "boolean" ? YES_OR_NO : options).map(
    ({ value, title }) => [value, title] as const,
  );
  const isKnown = entry === "" || offered.some(([value]) => value === entry);
  const nothing = setting ? defaultOf(field) : "Choose…";
  return [["", nothing], ...(isKnown ? [] : [[entry, entry] as const]), ...offered];
}

function Words({ field: { title, description, required, setting } }: { field: Field }) {
  return (
    <>
      <Name text={title} /> {!required && !setting && <span class="soft">optional</span>}
      {description !== undefined && (
        <span class="soft server-form-about">
          <Name text={description} />
        </span>
      )}
    </>
  );
}

export function FormFields(props: {
  fields: readonly Field[];
  entries: Entries;
  onChange: (entries: Entries) => void;
}) {
  const { fields, entries, onChange } = props;
  return (
    <>
      {fields.map((field) => {
        const { name, type, options = [] } = field;
        const entry = entries[name] ?? "";
        const change = (value: string | readonly string[]) => onChange({ ...entries, [name]: value });
        const about = (
          <span>
            <Words field={field} />
          </span>
        );
        if (type === "boolean" || type === "choice")
          return (
            <label key={name}>
              {about}
              <Select value={String(entry)} options={optionsOf(field, String(entry))} onPick={change} />
            </label>
          );
        if (field.lines)
          return (
            <label key={name}>
              {about}
              <textarea
                rows={8}
                dir="auto"
                value={String(entry)}
                onInput={(event) => change(event.currentTarget.value)}
              />
            </label>
          );
        if (type !== "choices")
          return (
            <label key={name}>
              {about}
              <input
                type="text"
                inputMode={type === "string" ? "text" : MODES[type]}
                placeholder={field.setting ? defaultOf(field) : field.format && EXAMPLES[field.format]}
                value={String(entry)}
                aria-required={field.required}
                onInput={(event) => change(event.currentTarget.value)}
              />
            </label>
          );
        const chosen = Array.isArray(entry) ? (entry as readonly string[]) : [];
        return (
          <fieldset key={name}>
            <legend>{about}</legend>
            {options.map(({ value, title }) => (
              <label key={value} class="inline">
                <input
                  type="checkbox"
                  checked={chosen.includes(value)}
                  onChange={({ currentTarget: { checked } }) =>
                    change(checked ? [...chosen, value] : chosen.filter((one) => one !== value))
                  }
                />
                <Name text={title} />
              </label>
            ))}
          </fieldset>
        );
      })}
    </>
  );
}
