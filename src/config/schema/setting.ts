// Builds the schema of the configuration file. A setting is written once: its type, limits, default and
// meaning, how it may be shown, and whether only a start applies it. The check of a file, the TypeScript
// types, the published schema, the documentation and the disclosure derive from it.
// The schemas are plain JSON Schemas with static types from TypeBox: its own builders would make each start
// slower. A symbol holds what JSON Schema cannot express.
// ST1: the builder of a text decides whether it may be shown: `text` may, `secret` and `address` may not.

import type { Static, TUnsafe } from "typebox";

/**
 * Rules for showing a value. `secret`: only that it is set. `optional secret`: whether it is set. `place`: an
 * address without user, password and query. `origin`: only the origin of an address. `program`: the first
 * word of a command, and the number of its arguments. `count`: only the number of entries. `names`: only the
 * names of the fields.
 */
export type Rule = "show" | "secret" | "optional secret" | "place" | "origin" | "program" | "count" | "names";

/** Key of the facts that JSON Schema cannot express. */
export const FACTS = Symbol("facts");

/** A condition of a text, with the rest of the sentence that begins with the path. */
type Check = readonly [holds: (value: string) => boolean, problem: string];

interface Facts {
  readonly shown?: Rule | undefined;
  /** True if running parts keep the value until the next start. */
  readonly restart?: boolean | undefined;
  readonly checks?: readonly Check[] | undefined;
  /** The problem of a list with too few items. */
  readonly few?: string | undefined;
  /** Value that `null` stands for. `undefined`: the setting counts as not set. */
  readonly nullMeans?: { readonly value: unknown } | undefined;
  /** True if white space around a text does not count. */
  readonly trims?: boolean | undefined;
  /** True for the path of a file or folder. */
  readonly isPath?: boolean | undefined;
  readonly required?: true | undefined;
}

/** A part of the schema, as plain data. */
export interface Schema {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly propertyNames?: Schema;
  readonly additionalProperties?: boolean | Schema;
  readonly anyOf?: readonly Schema[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly format?: string;
  readonly [FACTS]?: Facts;
}

/** The schema of a setting of type `T`. `Always`: whether the complete settings always have it. */
export interface Setting<T = unknown, Always extends boolean = boolean> extends TUnsafe<T>, Schema {
  readonly "~always"?: Always;
}

/** Settings by name. */
export type Fields = Readonly<Record<string, Setting>>;
type Flat<T> = { readonly [K in keyof T]: T[K] };
export type Values<F extends Fields> = Flat<
  { readonly [K in keyof F as F[K] extends Setting<unknown, true> ? K : never]: Static<F[K]> } & {
    readonly [K in keyof F as F[K] extends Setting<unknown, true> ? never : K]?: Static<F[K]>;
  }
>;

/** Facts about one use of a setting. Without a default it may be absent, unless it is required. */
interface Use extends Facts {
  readonly default?: unknown;
}
type Always<U> = U extends { readonly default: unknown } | { readonly required: true } ? true : false;

function setting<T, A extends boolean>(
  json: Schema,
  description: string,
  { default: byDefault, ...facts }: Use,
): Setting<T, A> {
  const first = {
    ...(byDefault !== undefined && { default: byDefault }),
    ...(description && { description }),
  };
  return { ...first, ...json, [FACTS]: facts } as unknown as Setting<T, A>;
}

interface TextUse extends Use {
  readonly default?: string;
  /** The least length. Default 1, or 0 if there is a pattern. */
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: readonly [RegExp, problem: string];
}

/** A text that may be shown. */
export function text<const U extends TextUse>(
  description = "",
  { minLength, maxLength, pattern, checks = [], ...use }: U = {} as U,
): Setting<string, Always<U>> {
  const least = minLength ?? (pattern === undefined ? 1 : 0);
  const json = {
    type: "string",
    ...(least > 0 && { minLength: least }),
    ...(maxLength !== undefined && { maxLength }),
    ...(pattern && { pattern: pattern[0].source }),
  };
  const matches: Check | undefined = pattern && [(value) => pattern[0].test(value), pattern[1]];
  return setting(json, description, { ...use, checks: matches ? [matches, ...checks] : checks });
}

/** A secret that must not be empty. */
export function secret<const U extends TextUse>(description: string, use: U): Setting<string, Always<U>> {
  return text(description, { shown: "secret", ...use } as U);
}

/**
 * A text that may be empty, because it may come from an unset variable. `null` means the same as an empty
 * text: both count as not set. It is a secret unless `shown` says otherwise.
 */
export function optionalText<const U extends Use>(
  description: string,
  use: U = {} as U,
): Setting<string, Always<U>> {
  const facts = { shown: "optional secret", nullMeans: { value: "" }, ...use } as const;
  return setting({ type: ["string", "null"] }, description, facts);
}

const HTTP: Check = [
  (value) => URL.canParse(value) && /^https?:$/.test(new URL(value).protocol),
  "must be an http or https address",
];
const namesUser = (address: string): boolean => /^\w+:\/\/[^/?#]*@/.test(address);

/** An HTTP address. `instead`: the key that must hold the password, because the address must not. */
export function address<const U extends Use>(
  description: string,
  { instead, ...use }: U & { readonly instead?: string } = {} as U,
): Setting<string, Always<U>> {
  const problem = `must not contain user and password${instead === undefined ? "" : `: use ${instead}`}`;
  const checks: Check[] = [HTTP, [(value) => !namesUser(value), problem]];
  const json = { type: "string", format: "uri" };
  return setting(json, description, { shown: "place", ...use, trims: true, checks });
}

/** The path of a file or folder. */
export function path<const U extends TextUse>(
  description: string,
  use: U = {} as U,
): Setting<string, Always<U>> {
  const check: Check = [(value) => !/^~[^/]/.test(value), "only ~ and ~/… are expanded, not ~user"];
  return text(description, { ...use, isPath: true, checks: [check] } as U);
}

/** True or false. */
export function flag<const U extends { readonly default?: boolean }>(
  description = "",
  use: U = {} as U,
): Setting<boolean, Always<U>> {
  return setting({ type: "boolean" }, description, use);
}

/** A number within limits. */
export function number<const U extends Use>(
  description: string,
  limits: Pick<Schema, "minimum" | "maximum" | "exclusiveMinimum">,
  use: U = {} as U,
): Setting<number, Always<U>> {
  return setting({ type: "number", ...limits }, description, use);
}

/** A whole number from a minimum to a maximum. */
export function integer<const U extends Use>(
  description: string,
  [minimum, maximum]: readonly [number, number],
  use: U = {} as U,
): Setting<number, Always<U>> {
  return setting({ type: "integer", minimum, maximum }, description, use);
}

/** One of some words. Upper and lower case do not count. */
export function choice<const V extends readonly string[], const U extends Use>(
  values: V,
  description = "",
  use: U = {} as U,
): Setting<V[number], Always<U>> {
  return setting({ type: "string", enum: values }, description, use);
}

/** A list of values. */
export function list<T, const U extends Use>(
  items: Setting<T>,
  description = "",
  { minItems, maxItems, ...use }: U & Pick<Schema, "minItems" | "maxItems"> = {} as U,
): Setting<readonly T[], Always<U>> {
  const limits = { ...(minItems !== undefined && { minItems }), ...(maxItems !== undefined && { maxItems }) };
  return setting({ type: "array", items, ...limits }, description, use);
}

/** An object with names of the user's choice. `keys`: the schema of a name. */
export function map<T, const U extends Use>(
  keys: Setting<string>,
  values: Setting<T>,
  description: string,
  use: U = {} as U,
): Setting<Readonly<Record<string, T>>, Always<U>> {
  const json = { type: "object", propertyNames: keys, additionalProperties: values };
  return setting(json, description, use);
}

/** An object with these settings, and no others. */
export function object<F extends Fields, const U extends Use>(
  properties: F,
  description = "",
  use: U = {} as U,
): Setting<Values<F>, Always<U>> & { readonly properties: F } {
  const required = Object.keys(properties).filter((name) => properties[name]?.[FACTS]?.required);
  const json = {
    type: "object",
    properties,
    ...(required.length > 0 && { required }),
    additionalProperties: false,
  };
  return { ...setting<Values<F>, Always<U>>(json, description, use), properties };
}

/** An object with these settings, which need not be in the file. */
export const section = <F extends Fields>(properties: F, facts: Facts = {}) =>
  object(properties, "", { default: {}, ...facts });

/** The setting, or `null`. `value` is what `null` means; if it is undefined, the setting is not set. */
export function nullable<T, A extends boolean, N>(
  inner: Setting<T, A>,
  value: N,
): Setting<T | Exclude<N, undefined>, A> {
  const type = [inner.type ?? [], "null"].flat();
  return { ...inner, type, [FACTS]: { ...inner[FACTS], nullMeans: { value } } } as unknown as Setting<
    T | Exclude<N, undefined>,
    A
  >;
}

/**
 * The settings without defaults, none of them required: an omitted one has the value of another place.
 * `place`: that place, if the descriptions are to name it.
 */
export function withoutDefaults<F extends Fields>(
  properties: F,
  place?: string,
): { readonly [K in keyof F]: Setting<Static<F[K]>, false> } {
  const entries = Object.entries(properties).map(([name, { default: _, [FACTS]: facts, ...inner }]) => {
    const { required, ...rest } = facts ?? {};
    const description = place === undefined ? inner.description : `Default: ${place}.${name}.`;
    return [name, { ...inner, description, [FACTS]: rest }];
  });
  return Object.fromEntries(entries);
}

/** Returns the defaults of the settings that have one. */
export function defaultsOf<F extends Fields>(
  properties: F,
): { readonly [K in keyof F as F[K] extends Setting<unknown, true> ? K : never]: Static<F[K]> } {
  const entries = Object.entries(properties).map(([name, { default: value }]) => [name, value]);
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
}

export const MAX = Number.MAX_SAFE_INTEGER;
export const DAY_SECONDS = 86_400;

/** A list of texts that are not empty. */
export const texts = <const U extends Use>(description: string, use: U = {} as U) =>
  list(text(), description, use);

/** The name of a model. */
export const modelName = (description = "`<provider>/<model>`.") => text(description);
