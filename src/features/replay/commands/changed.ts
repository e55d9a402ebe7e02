// Reads the options of a replay with changes, and the file that describes them.

import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { type Cli, loadOptionsOf } from "../../../cli/cli.ts";
import { readText } from "../../../cli/files.ts";
import { loadSettings } from "../../../config.ts";
import { isObject, jsonOf } from "../../../core/json.ts";
import { optional } from "../../../core/optional.ts";
import { fail, ok, type Result } from "../../../core/shapes/errors.ts";
import { NO_VARIATION, type Variation } from "../../../core/shapes/record/variation.ts";
import type { WantedVariation } from "../play/play.ts";

export interface ChangeOptions {
  readonly model?: string;
  readonly agent?: readonly string[];
  readonly from?: string;
  readonly change?: string;
  readonly live?: string;
}

type Change = Pick<Variation, "instructions" | "files" | "settings" | "message">;

const FIELDS = ["instructions", "files", "settings", "message"];

/** Returns a name in `value` that is not known. */
export const otherThan = (value: object, known: readonly string[]): string | undefined =>
  Object.keys(value).find((name) => !known.includes(name));

export const hasChanges = ({ model, agent, from, change, live }: ChangeOptions): boolean =>
  [model, agent, from, change, live].some((option) => option !== undefined);

function wrong(file: string, why: string): Result<never> {
  return fail("invalid_argument", `${file} is not a change: ${why}`, {
    hint: 'An example: {"instructions": {"main": "Be brief."}, "message": "Hello"}',
  });
}

/** Replaces texts like `@notes.md` by the contents of the file, which is relative to the folder. */
async function withFiles(value: unknown, folder: string): Promise<unknown> {
  if (typeof value === "string")
    return value.startsWith("@") ? readFile(resolve(folder, value.slice(1)), "utf8") : value;
  if (!isObject(value)) return value;
  const fields: [string, unknown][] = [];
  for (const [name, one] of Object.entries(value)) fields.push([name, await withFiles(one, folder)]);
  return Object.fromEntries(fields);
}

/** Returns whether the value is an object whose values are texts, or objects of texts if `depth` is 2. */
function hasTexts(value: unknown, depth: 1 | 2): boolean {
  if (!isObject(value)) return false;
  return Object.values(value).every((one) => (depth === 1 ? typeof one === "string" : hasTexts(one, 1)));
}

/** Reads a change. `@` texts are relative to the folder. */
export async function changeIn(
  parsed: Readonly<Record<string, unknown>>,
  folder: string,
  file: string,
): Promise<Result<Partial<Change>>> {
  const unknown = otherThan(parsed, FIELDS);
  if (unknown !== undefined) return wrong(file, `"${unknown}" is unknown; there is: ${FIELDS.join(", ")}`);
  const { settings = {}, message = "" } = parsed;
  let texts: Partial<Pick<Variation, "instructions" | "files">>;
  try {
    const { instructions = {}, files = {} } = parsed;
    texts = (await withFiles({ instructions, files }, folder)) as typeof texts;
  } catch (error) {
    return fail("file_problem", `a text of ${file} could not be read: ${(error as Error).message}`);
  }
  if (!hasTexts(texts.instructions, 1)) return wrong(file, '"instructions" must have a text for each agent');
  if (!hasTexts(texts.files, 2))
    return wrong(file, '"files" must have the text of each file, by agent and name');
  if (!isObject(settings)) return wrong(file, '"settings" must be an object');
  if (typeof message !== "string") return wrong(file, '"message" must be a text');
  return ok({ ...(parsed as Partial<Change>), ...texts });
}

export async function readChange(cli: Cli, file: string): Promise<Result<Partial<Change>>> {
  const { folder } = cli.parts;
  const text = await readText(folder, file);
  if (!text.ok) return text;
  const parsed = jsonOf(text.value);
  const place = dirname(resolve(folder, file));
  return isObject(parsed) ? changeIn(parsed, place, file) : wrong(file, "it has no JSON object");
}

/** Returns the changes that the options want, and the providers of the configuration. */
export async function changesOf(cli: Cli, options: ChangeOptions): Promise<Result<WantedVariation>> {
  const models: Record<string, string> = options.model === undefined ? {} : { "*": options.model };
  for (const text of options.agent ?? []) {
    const [, id, model] = /^([^.=]+)\.model=(.+)$/.exec(text) ?? [];
    if (id === undefined || model === undefined)
      return fail("invalid_argument", `--agent must be like main.model=provider/model, got "${text}"`);
    models[id] = model;
  }
  const change = options.change === undefined ? ok({}) : await readChange(cli, options.change);
  if (!change.ok) return change;
  const loaded = loadSettings(loadOptionsOf(cli));
  if (!loaded.ok) return loaded;
  const live = (options.live ?? "").split(",").flatMap((name) => name.trim() || []);
  const { from } = options;
  const variation = { ...NO_VARIATION, ...change.value, models, live, ...optional({ from }) };
  return ok({ variation, providers: loaded.value.settings.providers });
}
