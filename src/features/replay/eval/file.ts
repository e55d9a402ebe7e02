// Reads the file of an evaluation: cases, expectations, and variants to compare.

import { dirname } from "node:path";
import { readText } from "../../../cli/files.ts";
import { isObject, jsonOf } from "../../../core/json.ts";
import { fail, ok, type Result } from "../../../core/shapes/errors.ts";
import type { ChainRecord, FirstMessage } from "../../../core/shapes/record/chain.ts";
import { NO_VARIATION, type Variation } from "../../../core/shapes/record/variation.ts";
import { defaultAgent, type Settings } from "../../../core/shapes/settings/settings.ts";
import { changeIn, otherThan } from "../commands/changed.ts";
import { readRecordFile } from "../commands/records.ts";

const KINDS = {
  contains: "string",
  toolCalled: "string",
  notCalled: "string",
  costBelow: "number",
  stepsBelow: "number",
  ends: "string",
  judge: "string",
} as const;
type Kind = keyof typeof KINDS;

export interface Expectation {
  readonly kind: Kind;
  readonly value: string | number;
}

export interface Case {
  readonly name: string;
  readonly start: ChainRecord | FirstMessage;
  readonly expect: readonly Expectation[];
}

export interface Variant {
  readonly name: string;
  readonly variation: Variation;
}

export interface Evaluation {
  readonly cases: readonly Case[];
  readonly variants: readonly Variant[];
  /** Number of replays at the same time. */
  readonly parallel: number;
  /** Maximum cost of all model calls in USD. No replay starts after that. */
  readonly budget: number;
  /** `<provider>/<model>` that answers the expectations `judge`. */
  readonly judge?: string;
}

const PARALLEL = 2;
const FIELDS = ["cases", "variants", "parallel", "budget", "judge"];
const CASE_FIELDS = ["name", "record", "message", "agent", "expect"];

type Tree = Readonly<Record<string, unknown>>;

/** The folder of an evaluation, and the settings of its first messages. */
interface Place {
  readonly folder: string;
  readonly settings: Settings;
}

const wrong = (why: string): Result<never> => fail("invalid_argument", `The evaluation cannot run: ${why}.`);

function expectationOf(value: unknown, name: string): Result<Expectation> {
  const [only, ...more] = isObject(value) ? Object.entries(value) : [];
  const known = Object.keys(KINDS).join(", ");
  if (only === undefined || more.length > 0) return wrong(`each expectation of ${name} has one of: ${known}`);
  const [kind, wanted] = only;
  if (!(kind in KINDS)) return wrong(`${name} expects "${kind}"; there is: ${known}`);
  const type = KINDS[kind as Kind];
  if (typeof wanted !== type) return wrong(`"${kind}" of ${name} must be a ${type}`);
  return ok({ kind: kind as Kind, value: wanted as string | number });
}

/** Returns the record of a case, or its first message. */
async function startOf(
  value: Tree,
  name: string,
  { folder, settings }: Place,
): Promise<Result<Case["start"]>> {
  const { record: file, message, agent } = value;
  if (file !== undefined && message !== undefined) return wrong(`${name} has both "record" and "message"`);
  if (agent !== undefined && message === undefined) return wrong(`${name} has "agent" without "message"`);
  if (typeof file === "string") return readRecordFile(folder, file);
  if (typeof message !== "string") return wrong(`${name} has neither "record" nor "message"`);
  const agentId = agent ?? defaultAgent(settings).id;
  const known = settings.agents.map(({ id }) => id);
  if (typeof agentId === "string" && known.includes(agentId)) return ok({ settings, agentId, message });
  return wrong(`there is no agent ${JSON.stringify(agentId)}; there is: ${known.join(", ")}`);
}

async function caseOf(value: unknown, at: number, place: Place): Promise<Result<Case>> {
  if (!isObject(value)) return wrong(`case ${at + 1} is not an object`);
  const { name = `case ${at + 1}`, expect = [] } = value;
  const unknown = otherThan(value, CASE_FIELDS);
  if (unknown !== undefined)
    return wrong(`case ${at + 1} has "${unknown}"; there is: ${CASE_FIELDS.join(", ")}`);
  if (typeof name !== "string") return wrong(`the name of case ${at + 1} is not a text`);
  if (!Array.isArray(expect)) return wrong(`"expect" of ${name} is not a list`);
  const expectations: Expectation[] = [];
  for (const one of expect) {
    const expectation = expectationOf(one, name);
    if (!expectation.ok) return expectation;
    expectations.push(expectation.value);
  }
  const start = await startOf(value, name, place);
  return start.ok ? ok({ name, start: start.value, expect: expectations }) : start;
}

async function variantOf(value: unknown, at: number, { folder }: Place): Promise<Result<Variant>> {
  if (!isObject(value)) return wrong(`variant ${at + 1} is not an object`);
  const { name = `variant ${at + 1}`, models = {}, live = [], ...rest } = value;
  if (typeof name !== "string") return wrong(`the name of variant ${at + 1} is not a text`);
  const change = await changeIn(rest, folder, `variant ${name}`);
  if (!change.ok) return change;
  if (!isObject(models) || !Object.values(models).every((model) => typeof model === "string"))
    return wrong(`"models" of variant ${name} must have a model for each agent, or for "*"`);
  if (!Array.isArray(live)) return wrong(`"live" of variant ${name} must be a list of tools`);
  const more = { models: models as Record<string, string>, live: live.map(String) };
  return ok({ name, variation: { ...NO_VARIATION, ...change.value, ...more } });
}

async function each<T>(
  rows: readonly unknown[],
  place: Place,
  read: (row: unknown, at: number, place: Place) => Promise<Result<T>>,
): Promise<Result<T[]>> {
  const found: T[] = [];
  for (const [at, row] of rows.entries()) {
    const one = await read(row, at, place);
    if (!one.ok) return one;
    found.push(one.value);
  }
  return ok(found);
}

/**
 * Reads an evaluation. Its records and `@` texts are relative to its folder. First messages go to agents of
 * these settings.
 */
export async function readEvaluation(path: string, settings: Settings): Promise<Result<Evaluation>> {
  const text = await readText("", path);
  if (!text.ok) return text;
  const value = jsonOf(text.value);
  if (!isObject(value)) return wrong("the file has no JSON object");
  const unknown = otherThan(value, FIELDS);
  if (unknown !== undefined) return wrong(`"${unknown}" is unknown; there is: ${FIELDS.join(", ")}`);
  const { cases, variants = [{ name: "recorded" }], parallel = PARALLEL, budget = 1, judge } = value;
  if (!Array.isArray(cases) || cases.length === 0)
    return wrong('"cases" must be a list of at least one case');
  if (!Array.isArray(variants) || variants.length === 0) return wrong('"variants" must be a list');
  if (typeof parallel !== "number" || parallel < 1) return wrong('"parallel" must be a number of at least 1');
  if (typeof budget !== "number" || budget < 0) return wrong('"budget" must be an amount in USD');
  if (judge !== undefined && typeof judge !== "string") return wrong('"judge" must be a model');
  const place = { folder: dirname(path), settings };
  const others = await each(variants, place, variantOf);
  if (!others.ok) return others;
  const found = await each(cases, place, caseOf);
  if (!found.ok) return found;
  const judged = found.value.find(({ expect }) => expect.some(({ kind }) => kind === "judge"));
  if (judged !== undefined && judge === undefined)
    return wrong(`${judged.name} expects "judge", and the file names no model for it ("judge")`);
  const more = judge === undefined ? {} : { judge };
  return ok({ cases: found.value, variants: others.value, parallel, budget, ...more });
}
