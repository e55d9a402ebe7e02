// Owns the template that turns the body of a web hook into a message.
// IH1: values from a body are inserted as data. They are shortened, invisible characters in them become
//      visible, and templates in them are not expanded. A missing field becomes an empty text; inherited
//      properties count as missing.

import { cut } from "../../core/text/cut.ts";
import { safeText } from "../../core/text/safe-text.ts";

const FIELD_MAX_CHARS = 4_000;
const TEMPLATE_FIELDS_MAX = 50;

const FIELD = /\{\{([^{}]*)\}\}/g;
const PLACE = /^body((?:\.[^.[\]\s]{1,100}|\[\d{1,6}\]){0,16})$/;
const STEP = /\.([^.[\]\s]+)|\[(\d+)\]/g;

/** The data for a template. `event` and `delivery` come from the sender's headers. */
export interface HookFacts {
  readonly body: unknown;
  readonly event?: string | undefined;
  readonly delivery?: string | undefined;
}

/** Returns the problem of a template, or undefined if it is valid. */
export function templateProblem(template: string): string | undefined {
  const fields = [...template.matchAll(FIELD)].map(([, field = ""]) => field.trim());
  if (fields.length > TEMPLATE_FIELDS_MAX) return `has more than ${TEMPLATE_FIELDS_MAX} fields`;
  const strange = fields.find((field) => field !== "event" && field !== "delivery" && !PLACE.test(field));
  if (strange === undefined) return undefined;
  const valid = "{{body.a.b}}, {{body.list[0].name}}, {{event}} and {{delivery}}";
  return `holds {{${cut(strange, 60)}}}; fields are like ${valid}`;
}

function valueAt(body: unknown, steps: string): unknown {
  let at = body;
  for (const [, name, index] of steps.matchAll(STEP)) {
    const step = name ?? index ?? "";
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, step)) return undefined;
    at = (at as Record<string, unknown>)[step];
  }
  return at;
}

function asText(value: unknown): string {
  if (value === undefined || value === null) return "";
  if (typeof value !== "object") return String(value);
  try {
    return JSON.stringify(value);
  } catch {
    return ""; // Nested too deeply for JSON.
  }
}

function fieldText(value: unknown): string {
  return safeText(cut(asText(value), FIELD_MAX_CHARS));
}

/** Returns the message that a template makes from a request. */
export function renderTemplate(template: string, facts: HookFacts): string {
  return template.replace(FIELD, (_, field: string) => {
    const named = field.trim();
    if (named === "event" || named === "delivery") return fieldText(facts[named]);
    const steps = PLACE.exec(named)?.[1];
    return steps === undefined ? "" : fieldText(valueAt(facts.body, steps));
  });
}
