// Reads the tree of a configuration file by its schema: checks every value, and fills in the defaults. After
// a problem it continues without the invalid part, so that all problems are reported together.
// RD1: a word counts in upper or lower case, and a text that came from a variable as a number or boolean if
//      one is expected.

import { isObject } from "../core/json.ts";
import { THINKING_LEVELS, thinkingNamed } from "../core/shapes/settings/settings.ts";
import { Redactor } from "../core/text/redact/redact.ts";
import { type Path, showPath } from "../core/text/value-path.ts";
import { isSecretPath } from "./describe.ts";
import { unknownKey } from "./problems.ts";
import { type ConfigFile, configSchema } from "./schema/schema.ts";
import { FACTS, type Schema } from "./schema/setting.ts";
import { type Problem, type Substituted, type Tree, valueAt } from "./source.ts";

const WORDS: Readonly<Record<string, string>> = {
  string: "a string",
  number: "a number",
  integer: "a number",
  boolean: "true or false",
  array: "a list, [ … ]",
  object: "an object, { … }",
};

/** Returns the type of the schema, which may also allow `null`. */
const kindOf = ({ type }: Schema): string => [type].flat()[0] ?? "";

/** Returns the end of a sentence that begins with the path of a value: `must be true or false`. */
const describeType = (schema: Schema): string =>
  `must be ${schema.enum === undefined ? WORDS[kindOf(schema)] : `one of ${schema.enum.join(", ")}`}`;

/**
 * Describes an invalid value. Shows only the type if the value is long or `hidden` (a secret, or from a
 * variable).
 */
function showValue(value: unknown, hidden: boolean): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "an object";
  // JSON cannot represent Infinity and NaN.
  const shown = typeof value === "number" ? String(value) : JSON.stringify(value);
  if (hidden || shown.length > 60) return `a ${typeof value}`;
  // The secrets are not known yet, because the configuration that contains them is still being read.
  return new Redactor([]).mask(shown);
}

/** Returns a text as the value that it stands for (RD1). */
function valueMeant(schema: Schema, given: string, isFromEnv: boolean): unknown {
  const [text, kind] = [given.trim(), kindOf(schema)];
  const words = schema.enum;
  if (words !== undefined) {
    // Thinking levels also have other spellings.
    const level = THINKING_LEVELS.every((one) => words.includes(one)) ? thinkingNamed(given) : undefined;
    return words.find((one) => String(one).toLowerCase() === text.toLowerCase()) ?? level ?? given;
  }
  if (schema[FACTS]?.trims === true) return schema.format === "uri" ? text.replaceAll(/[\t\n\r]/g, "") : text;
  if (!isFromEnv || text === "") return given;
  if ((kind === "number" || kind === "integer") && Number.isFinite(Number(text))) return Number(text);
  return kind === "boolean" && (text === "true" || text === "false") ? text === "true" : given;
}

/** Returns whether a value has the type of the schema, whatever its limits. */
function hasType(schema: Schema, value: unknown): boolean {
  if (schema.enum !== undefined) return schema.enum.includes(value);
  const kind = kindOf(schema);
  if (kind === "object") return isObject(value);
  if (kind === "array") return Array.isArray(value);
  if (kind === "number" || kind === "integer") return Number.isFinite(value);
  return typeof value === kind;
}

/** Returns the limits that a value of the right type exceeds. `got` describes the value. */
function limitProblems(schema: Schema, value: unknown, got: () => string): string[] {
  const { minimum, maximum, exclusiveMinimum, minLength, maxLength, minItems, maxItems } = schema;
  const { checks = [], few } = schema[FACTS] ?? {};
  const length = Array.isArray(value) || typeof value === "string" ? value.length : (value as number);
  const [least, most] = [minimum ?? minItems, maximum ?? maxLength ?? maxItems];
  const found: string[] = [];
  if (isObject(value)) return found;
  if (kindOf(schema) === "integer" && !Number.isInteger(value)) return [`must be a whole number, ${got()}`];
  if (minLength !== undefined && length < minLength)
    found.push(minLength === 1 ? "must not be empty" : `must have at least ${minLength} characters`);
  if (least !== undefined && length < least) found.push(few ?? `must be at least ${least}, ${got()}`);
  if (exclusiveMinimum !== undefined && length <= exclusiveMinimum)
    found.push(`must be more than ${exclusiveMinimum}`);
  if (most !== undefined && length > most) found.push(`must be at most ${most}, ${got()}`);
  const failed = checks.filter(([holds]) => typeof value === "string" && !holds(value));
  return [...found, ...failed.map(([, problem]) => `${problem}, ${got()}`)];
}

class Reader {
  readonly problems: Problem[] = [];
  /** True if a part is invalid that nothing can stand for: an item of a list, or a required setting. */
  isBroken = false;
  readonly #fromEnv: ReadonlySet<string>;
  constructor(fromEnv: ReadonlySet<string>) {
    this.#fromEnv = fromEnv;
  }

  /** Returns the value with its defaults, or undefined if it is invalid. */
  value(schema: Schema, given: unknown, path: Path): unknown {
    const isFromEnv = this.#fromEnv.has(showPath(path));
    const value = typeof given === "string" ? valueMeant(schema, given, isFromEnv) : given;
    const { nullMeans } = schema[FACTS] ?? {};
    if (value === null && nullMeans !== undefined) return nullMeans.value;
    const got = () =>
      `got ${showValue(typeof value === "string" ? given : value, isFromEnv || isSecretPath(path))}`;
    if (!hasType(schema, value)) {
      // An invalid word is not quoted: it may be a secret under the wrong key.
      const isWord = schema.enum !== undefined && typeof value === "string";
      return this.#refuse(path, isWord ? describeType(schema) : `${describeType(schema)}, ${got()}`);
    }
    const wrong = limitProblems(schema, value, got);
    for (const text of wrong) this.#refuse(path, text);
    if (wrong.length > 0) return undefined;
    if (Array.isArray(value))
      return value.map((item, at) => this.#readNeeded(schema.items ?? {}, item, [...path, at]));
    if (!isObject(value)) return value;
    return schema.properties === undefined
      ? this.#map(schema, value, path)
      : this.#object(schema, value, path);
  }

  #refuse(path: Path, text: string): undefined {
    this.problems.push({ path, text });
  }

  #readNeeded(schema: Schema, given: unknown, path: Path): unknown {
    const value = this.value(schema, given, path);
    this.isBroken ||= value === undefined;
    return value;
  }

  #object({ properties = {}, required = [] }: Schema, given: Tree, path: Path): Tree {
    const whole: Tree = {};
    for (const [name, inner] of Object.entries(properties)) {
      const at = [...path, name];
      const isThere = Object.hasOwn(given, name);
      if (required.includes(name)) {
        if (isThere) whole[name] = this.#readNeeded(inner, given[name], at);
        else this.isBroken = this.#refuse(at, `is missing; ${describeType(inner)}`) === undefined;
        continue;
      }
      const value = isThere ? this.value(inner, given[name], at) : undefined;
      const filled =
        value === undefined && inner.default !== undefined ? this.value(inner, inner.default, at) : value;
      if (filled !== undefined) whole[name] = filled;
    }
    const unknown = Object.keys(given).filter((name) => !Object.hasOwn(properties, name));
    this.problems.push(...unknown.map((name) => unknownKey(path, name)));
    return whole;
  }

  #map({ propertyNames: keys = {}, additionalProperties: values }: Schema, given: Tree, path: Path): Tree {
    const whole: Tree = {};
    const isValid = (name: string): boolean => keys.enum === undefined || keys.enum.includes(name);
    for (const [name, inner] of Object.entries(given).filter(([name]) => isValid(name))) {
      const [wrong] = limitProblems(keys, name, () => "");
      if (wrong !== undefined)
        this.#refuse([...path, name], `is not a valid name: it ${wrong.replace(/, $/, "")}`);
      const value = wrong === undefined ? this.value(values as Schema, inner, [...path, name]) : undefined;
      if (value !== undefined) whole[name] = value;
    }
    const unknown = Object.keys(given).filter((name) => !isValid(name));
    this.problems.push(...unknown.map((name) => unknownKey(path, name)));
    return whole;
  }
}

/**
 * Returns the content of the file with its defaults. Adds what is wrong to `problems`; a value that has a
 * problem already counts as not set. Returns undefined if nothing can stand for an invalid part.
 */
export function readTree({ tree, paths }: Substituted, problems: Problem[]): ConfigFile | undefined {
  const known = new Set(problems.map(({ path }) => showPath(path)));
  for (const { path } of problems) {
    const parent = valueAt(tree, path.slice(0, -1));
    if (isObject(parent)) delete parent[String(path.at(-1))];
  }
  const reader = new Reader(paths);
  const whole = reader.value(configSchema, tree, []);
  problems.push(...reader.problems.filter(({ path }) => !known.has(showPath(path))));
  return reader.isBroken ? undefined : (whole as ConfigFile);
}
