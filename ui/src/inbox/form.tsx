// Forms that are made from a schema, one labelled control for each field: the question of an MCP server, the
// settings of an agent, and what dialogs ask for.

import type { ComponentChildren, TargetedInputEvent } from "preact";
import { useId, useState } from "preact/hooks";
import { readTyped } from "../../../src/core/rules/approval/form.ts";
import type { FormField } from "../../../src/core/shapes/permission.ts";
import { safeLine } from "../../../src/core/text/safe-text.ts";
import { Form } from "../parts/dialog.tsx";
import { Name } from "../parts/name.tsx";
import { type Option, Select } from "../parts/select.tsx";

/** The entries of a form, by the name of the field: a list for a field with several choices. */
export type Entries = Readonly<Record<string, string | readonly string[]>>;

/** The entries of a form that has only fields with one text each. */
export type Texts = Readonly<Record<string, string>>;

export interface Field extends Omit<FormField, "type" | "required"> {
  /** Default: a text. */
  readonly type?: FormField["type"];
  readonly required?: boolean;
  /** A setting, which has a default. Otherwise a field that may be left out is marked as optional. */
  readonly setting?: true;
  /** The default of a setting. */
  readonly fallback?: string;
  readonly lines?: number;
  /** The text is a list, separated by commas. */
  readonly list?: true;
  /** The options of a choice that always has one of them, in place of `options`. */
  readonly choices?: readonly Option<string>[];
  readonly disabled?: boolean;
  /** Texts that an entry may have. */
  readonly suggestions?: readonly Option<string>[];
  readonly placeholder?: string;
  readonly maxChars?: number;
  readonly secret?: true;
}

export function firstEntries(fields: readonly Field[]): Entries {
  const entries = fields.map(({ name, type, choices, default: given }) => {
    if (type === "choices") return [name, Array.isArray(given) ? given : []] as const;
    const [first = ""] = [choices?.[0] ?? ""].flat();
    return [name, given === undefined ? first : String(given)] as const;
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

/** The keyboard for a number, and the entries that a setting may have. */
const NUMBERS = {
  number: { inputMode: "decimal", pattern: "\\s*(-?\\d*\\.?\\d+|none)\\s*", title: "A number, or none" },
  integer: { inputMode: "numeric", pattern: "\\s*(-?\\d+|none)\\s*", title: "A whole number, or none" },
} as const;
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
function optionsOf(field: Field, entry: string): readonly Option<string>[] {
  const { type, setting, options = [], choices } = field;
  const offered = choices ?? [
    ["", setting ? defaultOf(field) : "Choose…"] as const,
    ...(type === "boolean" ? YES_OR_NO : options).map(({ value, title }) => [value, title] as const),
  ];
  return offered.some((option) => [option].flat()[0] === entry) ? offered : [[entry, entry], ...offered];
}

function Words({ field: { title, description, required, setting, choices } }: { field: Field }) {
  return (
    <span>
      <Name text={title} />{" "}
      {!required && !setting && choices === undefined && <span class="soft">optional</span>}
      {description !== undefined && (
        <Name as="span" class="soft small server-form-about" text={description} />
      )}
    </span>
  );
}

function Control(props: { field: Field; entry: string; onChange: (entry: string) => void }) {
  const { field, entry, onChange } = props;
  const { type = "string", setting, format, lines, suggestions, secret, maxChars, disabled } = field;
  const list = useId();
  if (type === "boolean" || type === "choice")
    return <Select value={entry} options={optionsOf(field, entry)} onPick={onChange} disabled={disabled} />;
  const attributes = {
    value: entry,
    placeholder: field.placeholder ?? (setting ? defaultOf(field) : format && EXAMPLES[format]),
    maxLength: maxChars,
    "aria-required": field.required,
    onInput: (event: TargetedInputEvent<HTMLInputElement | HTMLTextAreaElement>) =>
      onChange(event.currentTarget.value),
  };
  if (lines !== undefined) return <textarea rows={lines} dir="auto" {...attributes} />;
  // The types allow a list only for some types of input.
  const kind: object = secret ? { type: "password" } : { list: suggestions && list };
  const { inputMode, ...rule } =
    type === "number" || type === "integer" ? NUMBERS[type] : ({ inputMode: "text" } as const);
  return (
    <>
      <input
        inputMode={inputMode}
        {...kind}
        {...(setting ? rule : {})}
        autocomplete={setting || secret ? "off" : undefined}
        spellcheck={false}
        {...attributes}
      />
      {suggestions !== undefined && (
        <datalist id={list}>
          {suggestions.map((option) => {
            const [value, words = ""] = [option].flat();
            return (
              <option key={value} value={value}>
                {safeLine(words)}
              </option>
            );
          })}
        </datalist>
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
  return fields.map((field) => {
    const { name } = field;
    const entry = entries[name] ?? "";
    const change = (value: string | readonly string[]) => onChange({ ...entries, [name]: value });
    if (field.type === "choices") {
      const chosen = [entry].flat();
      return (
        <fieldset key={name}>
          <legend>
            <Words field={field} />
          </legend>
          {field.options?.map(({ value, title }) => (
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
    }
    return (
      <label key={name}>
        <Words field={field} />
        <Control field={field} entry={String(entry)} onChange={change} />
      </label>
    );
  });
}

/** The form of a dialog. `fields`: may follow from the entries. `onSubmit`: gets those of all fields. */
export function SchemaForm(props: {
  action: string;
  fields: readonly Field[] | ((entries: Texts) => readonly Field[]);
  onSubmit: (entries: Texts) => Promise<void>;
  onClose: () => void;
  children?: ComponentChildren;
}) {
  const { action, fields, onSubmit, onClose, children } = props;
  const [changed, setChanged] = useState<Texts>({});
  const drawn = typeof fields === "function" ? fields(changed) : fields;
  const entries = { ...firstEntries(drawn), ...changed } as Texts;
  const lacks = drawn.some(({ name, required }) => required && entries[name]?.trim() === "");
  return (
    <Form action={action} disabled={lacks} onSubmit={() => onSubmit(entries)} onClose={onClose}>
      <FormFields fields={drawn} entries={entries} onChange={(next) => setChanged(next as Texts)} />
      {children}
    </Form>
  );
}
