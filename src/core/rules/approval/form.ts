// Reads the form of an MCP server's question, and checks a person's answer to it.
// - A form is flat: texts, numbers, yes or no, and choices. Anything else is refused.
// - A pattern is not checked, because matching a foreign one can take for ever. The server checks it.

import { isObject, listOf, numberOf, objectOf } from "../../json.ts";
import { optional } from "../../optional.ts";
import { fail, ok, type Result } from "../../shapes/errors.ts";
import type { FormField, FormOption, FormValue, ServerQuestion } from "../../shapes/permission.ts";
import { cut, quoted } from "../../text/cut.ts";
import { visibleText } from "../../text/safe-text.ts";

const FIELDS_MAX = 20;
const OPTIONS_MAX = 50;
const NAME_MAX_CHARS = 100;
const WORDS_MAX_CHARS = 300;
/** Maximum length of a text without a limit of its own. */
const TEXT_MAX_CHARS = 10_000;

const FORMATS = {
  email: { fits: /^[^\s@]+@[^\s@]+$/, like: "an address such as ann@example.com" },
  uri: { fits: /^[a-z][a-z0-9+.-]*:\S+$/i, like: "an address such as https://example.com" },
  date: { fits: /^\d{4}-\d\d-\d\d$/, like: "a date such as 2026-07-28" },
  "date-time": {
    fits: /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/i,
    like: "a time such as 2026-07-28T12:00:00Z",
  },
} as const;

type Schema = Readonly<Record<string, unknown>>;
type Clean = (text: string) => string;

/** Returns the options of a choice, or undefined if the schema is none. */
function optionsIn(schema: Schema, clean: Clean): FormOption[] | "wrong" | undefined {
  const titled = schema.oneOf ?? schema.anyOf;
  if (schema.enum === undefined && titled === undefined) return undefined;
  const names = listOf(schema.enumNames);
  const options = Array.isArray(schema.enum)
    ? schema.enum.map((value, at) => ({ value, title: names[at] }))
    : listOf(titled).map((one) => ({ value: objectOf(one)?.const, title: objectOf(one)?.title }));
  const isRight = ({ value }: { value: unknown }) =>
    typeof value === "string" && value.length <= WORDS_MAX_CHARS;
  if (options.length === 0 || options.length > OPTIONS_MAX || !options.every(isRight)) return "wrong";
  const read = options.map(({ value, title }) => ({
    value: String(value),
    title: words(title, clean) ?? visibleText(String(value)),
  }));
  return new Set(read.map(({ title }) => title)).size < read.length ? "wrong" : read;
}

function words(text: unknown, clean: Clean): string | undefined {
  if (typeof text !== "string" || text.trim() === "") return undefined;
  return cut(visibleText(clean(text.trim()).replaceAll(/\s+/g, " ")), WORDS_MAX_CHARS);
}

function readField(name: string, schema: Schema, required: boolean, clean: Clean): FormField | string {
  const { type, format, minLength, maxLength, minimum, maximum, minItems, maxItems } = schema;
  const made = {
    name,
    title: words(schema.title, clean) ?? visibleText(name),
    required,
    ...optional({ description: words(schema.description, clean) }),
  };
  const limits = (min: unknown, max: unknown) => optional({ min: numberOf(min), max: numberOf(max) });
  const complete = (field: FormField): FormField => {
    const given = schema.default as FormValue | undefined;
    const shown = String(given);
    // A default that nobody could read as it is would be sent unseen.
    const isUnseen = shown.length > WORDS_MAX_CHARS || visibleText(shown) !== shown;
    return given === undefined || isUnseen || checkValue(field, given) !== undefined
      ? field
      : { ...field, default: given };
  };
  if (type === "array") {
    const options = optionsIn(objectOf(schema.items) ?? {}, clean);
    if (!Array.isArray(options)) return "is a list without short, different texts to choose from";
    return complete({ ...made, type: "choices", options, ...limits(minItems, maxItems) });
  }
  const options = optionsIn(schema, clean);
  if (options === "wrong")
    return `has no options, over ${OPTIONS_MAX}, or some that are no short, different texts`;
  const hasEnumNames = Array.isArray(schema.enumNames) ? true : undefined;
  if (options !== undefined)
    return complete({ ...made, type: "choice", options, ...optional({ hasEnumNames }) });
  if (type === "boolean") return complete({ ...made, type });
  if (type === "number" || type === "integer")
    return complete({ ...made, type, ...limits(minimum, maximum) });
  if (type !== "string") return `has the type ${quoted(JSON.stringify(type) ?? "none", 80)}`;
  const known = Object.keys(FORMATS).find((one) => one === format) as FormField["format"];
  return complete({ ...made, type, ...limits(minLength, maxLength), ...optional({ format: known }) });
}

/**
 * Returns the fields of a form, which is a flat JSON schema. Their texts are made visible. `clean` is applied
 * to texts that only people read.
 */
export function readForm(schema: unknown, clean: Clean): Result<readonly FormField[]> {
  const wrong = (text: string) => fail("invalid_argument", `the form ${text}`);
  const properties = objectOf(schema)?.properties ?? {};
  if (!isObject(schema) || schema.type !== "object" || !isObject(properties))
    return wrong("is no flat object");
  const required = listOf(schema.required);
  const entries = Object.entries(properties);
  if (entries.length > FIELDS_MAX) return wrong(`has over ${FIELDS_MAX} fields`);
  const fields: FormField[] = [];
  for (const [name, property] of entries) {
    const shown = quoted(name, NAME_MAX_CHARS);
    if (!isObject(property) || name.length > NAME_MAX_CHARS) return wrong(`has a wrong field ${shown}`);
    const field = readField(name, property, required.includes(name), clean);
    if (typeof field === "string") return wrong(`has a field ${shown} that ${field}`);
    fields.push(field);
  }
  return ok(fields);
}

const within = (many: number, { min = 0, max = Number.POSITIVE_INFINITY }: FormField): boolean =>
  many >= min && many <= max;

function rangeWords({ min, max }: FormField): string {
  if (min === undefined) return `at most ${max}`;
  return max === undefined ? `at least ${min}` : min === max ? `${min}` : `${min} to ${max}`;
}

/** Returns the reason why a value is wrong: a clause after "must". Undefined: it is right. */
function checkValue(field: FormField, value: unknown): string | undefined {
  const { type, options = [], format } = field;
  const isOption = (one: unknown): boolean => options.some((option) => option.value === one);
  const titles = (): string => cut(options.map((option) => option.value).join(", "), WORDS_MAX_CHARS);
  switch (type) {
    case "boolean":
      return typeof value === "boolean" ? undefined : "be true or false";
    case "choice":
      return isOption(value) ? undefined : `be one of: ${titles()}`;
    case "choices": {
      if (!Array.isArray(value) || !value.every(isOption)) return `be a list of: ${titles()}`;
      const isRight = new Set(value).size === value.length && within(value.length, field);
      return isRight ? undefined : `have ${rangeWords(field)} different options`;
    }
    case "string": {
      if (typeof value !== "string") return "be a text";
      // A character counts once, as in JSON Schema.
      const bounded = { ...field, max: Math.min(field.max ?? TEXT_MAX_CHARS, TEXT_MAX_CHARS) };
      if (!within([...value].length, bounded)) return `have ${rangeWords(bounded)} characters`;
      const { fits, like } = format === undefined ? { fits: /^/, like: "" } : FORMATS[format];
      return fits.test(value) ? undefined : `be ${like}`;
    }
    default:
      if (typeof value !== "number" || !Number.isFinite(value)) return "be a number";
      if (type === "integer" && !Number.isSafeInteger(value)) return "be a whole number";
      return within(value, { ...field, min: field.min ?? -Infinity }) ? undefined : `be ${rangeWords(field)}`;
  }
}

/**
 * Returns the answer to send, with defaults for what is missing, or the first problem of it. Null stands for
 * no value, and no default.
 */
export function completeAnswer(
  fields: readonly FormField[],
  content: Readonly<Record<string, unknown>>,
): Result<Readonly<Record<string, FormValue>>> {
  const wrong = (field: string, text: string) =>
    fail("invalid_argument", `the field ${quoted(field, NAME_MAX_CHARS)} ${text}`);
  const other = Object.keys(content).find((name) => !fields.some((field) => field.name === name));
  if (other !== undefined) return wrong(other, "is not in the form");
  const answer: [string, FormValue][] = [];
  for (const field of fields) {
    const value = Object.hasOwn(content, field.name) ? content[field.name] : field.default;
    const isMissing = value === undefined || value === null;
    if (isMissing && field.required) return wrong(field.name, "is required");
    if (isMissing) continue;
    const problem = checkValue(field, value);
    if (problem !== undefined) return wrong(field.name, `must ${problem}`);
    answer.push([field.name, value as FormValue]);
  }
  return ok(Object.fromEntries(answer));
}

function schemaOfField({ name, title, type, options = [], min, max, ...field }: FormField): Schema {
  const { description, format, hasEnumNames, default: given } = field;
  const about = optional({ title: title === name ? undefined : title, description, default: given });
  const values = options.map(({ value }) => value);
  const titles = options.map((option) => option.title);
  const titled = options.map((option) => ({ const: option.value, title: option.title }));
  const isTitled = options.some((option) => option.title !== option.value);
  switch (type) {
    case "boolean":
      return { type, ...about };
    case "choice":
      if (hasEnumNames === true) return { type: "string", ...about, enum: values, enumNames: titles };
      return { type: "string", ...about, ...(isTitled ? { oneOf: titled } : { enum: values }) };
    case "choices": {
      const items = isTitled ? { anyOf: titled } : { type: "string", enum: values };
      return { type: "array", ...about, items, ...optional({ minItems: min, maxItems: max }) };
    }
    case "string":
      return { type, ...about, ...optional({ format, minLength: min, maxLength: max }) };
    default:
      return { type, ...about, ...optional({ minimum: min, maximum: max }) };
  }
}

/** Writes a form as the JSON schema that `readForm` reads. */
export function schemaOfForm(fields: readonly FormField[]) {
  return {
    type: "object",
    properties: Object.fromEntries(fields.map((field) => [field.name, schemaOfField(field)])),
    required: fields.filter(({ required }) => required).map(({ name }) => name),
  };
}

/** Reads a typed text. Undefined: it is empty. A text of a wrong kind is returned as it is. */
export function readTyped({ type, options = [] }: FormField, text: string): unknown {
  const typed = text.trim();
  if (typed === "") return undefined;
  const find = (word: string) =>
    (options.find(({ title }) => title === word) ?? options.find(({ value }) => value === word))?.value;
  switch (type) {
    case "boolean":
      return /^(y|yes|true)$/i.test(typed) ? true : /^(n|no|false)$/i.test(typed) ? false : typed;
    case "number":
    case "integer":
      return Number.isNaN(Number(typed)) ? typed : Number(typed);
    case "choice":
      return find(typed) ?? typed;
    case "choices":
      return typed.split(",").map((word) => find(word.trim()) ?? word.trim());
    case "string":
      return text;
  }
}

/** Returns the answers to a form that has one choice or one yes or no, for buttons and numbers. */
export function shortAnswers({ fields }: ServerQuestion) {
  const [field, ...others] = fields;
  if (field === undefined || others.length > 0) return [];
  const yesOrNo = [
    { value: true, title: "Yes" },
    { value: false, title: "No" },
  ];
  const options = field.type === "boolean" ? yesOrNo : field.type === "choice" ? (field.options ?? []) : [];
  return options.map(({ value, title }) => ({ title, content: { [field.name]: value } }));
}

/** Describes a field in words: its title, what it takes, and its default. */
export function describeField({ title, description, type, required, options, ...field }: FormField): string {
  const kind =
    options === undefined
      ? (field.format ?? (type === "string" ? "text" : type))
      : `${type} of ${options.map((option) => option.title).join(", ")}`;
  const more = [
    kind,
    required ? "" : "optional",
    field.default === undefined ? "" : `default ${field.default}`,
  ];
  const about = description === undefined ? "" : `: ${description}`;
  return `${title} (${more.filter((part) => part !== "").join("; ")})${about}`;
}
