// Implements `parley config get` and `parley config set`: read and change single settings.

import { withPlaces } from "../../../config/editing/entries.ts";
import { pathProblem, tell } from "../../../config/problems.ts";
import { parseText, valueAt } from "../../../config/source.ts";
import type { ConfigChange, ConfigSaved } from "../../../contract/methods/configuration.ts";
import type { PayloadOf } from "../../../contract/methods.ts";
import { jsonOf } from "../../../core/json.ts";
import { fail, ok, type Result } from "../../../core/shapes/errors.ts";
import { safeLine, safeText } from "../../../core/text/safe-text.ts";
import { type Path, parsePath } from "../../../core/text/value-path.ts";
import { type Cli, EXIT, type Trouble } from "../../cli.ts";
import { readStdin } from "../../files.ts";
import { type ConfigDesk, withConfigFile } from "./file.ts";

/** Maximum length of a value on standard input. */
const VALUE_MAX_CHARS = 64 * 1024;

type Setting = PayloadOf<"config.schema">["settings"][number];

function pathOf(text: string): Result<Path> {
  const path = parsePath(text);
  if (path !== undefined) return { ok: true, value: path };
  return fail("invalid_argument", `"${text}" is not a path`, { hint: "Give a path like session.queueMax." });
}

/** Returns the description of the setting at a path: `agents.list.main.model` is one of `agents.list[]`. */
async function settingAt(desk: ConfigDesk, path: Path): Promise<Setting | undefined> {
  const all = await desk.settings();
  if (!all.ok) return undefined;
  const isHere = (one: Setting): boolean => {
    const steps = one.path.replaceAll("[]", ".[]").split(".");
    const fits = (step: string, part: string | number | undefined): boolean =>
      step === "[]" || step === "<name>" || step === part;
    return steps.length === path.length && steps.every((step, at) => fits(step, path[at]));
  };
  return all.value.settings.find(isHere);
}

function helpOf(setting: Setting): string {
  const { type, unit, fallback, meaning } = setting;
  const more = [type, unit, fallback === undefined ? undefined : `default ${fallback}`];
  return `${setting.path} (${more.filter((one) => one !== undefined).join(", ")}): ${meaning}`;
}

export async function getConfig(cli: Cli, { path: named }: { readonly path?: string }): Promise<number> {
  return withConfigFile(cli, async (desk) => {
    const file = await desk.read();
    if (!file.ok) return cli.fail(file);
    const { text, path: place, exists } = file.value;
    if (named === undefined) {
      cli.write(safeText(text));
      cli.document({ path: place, exists, text });
      return EXIT.done;
    }
    const asked = pathOf(named);
    if (!asked.ok) return cli.fail(asked, EXIT.usage);
    const tree = parseText(text, place);
    if (!tree.ok) return cli.fail(tree);
    const path = withPlaces(tree.value, asked.value);
    if (!path.ok) return cli.fail(path);
    const value = valueAt(tree.value, path.value);
    const wrong = value === undefined ? pathProblem(path.value) : undefined;
    if (wrong !== undefined) return cli.fail({ code: "invalid_config", error: tell([wrong]).join() });
    const fallback = (await settingAt(desk, path.value))?.fallback;
    const isSet = value !== undefined;
    if (isSet) cli.line(safeText(typeof value === "string" ? value : JSON.stringify(value, null, 2)));
    else
      cli.note(
        `${named} is not set${fallback === undefined ? "" : `; its default is ${safeLine(fallback)}`}`,
      );
    cli.document({ path: named, isSet, value: value ?? null, default: fallback ?? null });
    return EXIT.done;
  });
}

/** Reads a value as JSON; any other text is a string, as is everything for a setting of that type. */
function givenValue(text: string, setting: Setting | undefined): unknown {
  if (setting !== undefined && /^string\b/.test(setting.type) && !/^["']/.test(text)) return text;
  return jsonOf(text) ?? (text.trim() === "null" ? null : text);
}

/** Prints the diff of an edit and its warnings. */
export function showChange(cli: Cli, done: ConfigSaved): void {
  for (const line of done.diff) {
    const style = line.startsWith("+") ? "green" : line.startsWith("-") ? "red" : "dim";
    cli.line(cli.style(style, safeLine(line)));
  }
  for (const line of [...done.warnings, ...done.reach]) cli.note(`warning: ${safeLine(line)}`);
}

/** Prints whether an edit was saved, and what a running gateway applies only after a restart. */
export function showEffect(cli: Cli, done: ConfigSaved, desk: ConfigDesk): void {
  const effect =
    done.restart.length > 0 && desk.isRunning
      ? `Takes effect after a restart: ${done.restart.join(", ")}.`
      : "";
  if (done.diff.length === 0 && done.errors.length === 0) cli.line("Nothing changes.");
  else if (done.saved) cli.say(`Saved ${done.path}. ${effect}`.trimEnd());
  else if (effect !== "") cli.say(effect);
}

/**
 * Returns the value that an argument stands for. `-` stands for standard input, so that a secret is in no
 * list of processes; a terminal asks for it and does not show it.
 */
async function valueIn(
  cli: Cli,
  named: string,
  given: string | undefined,
): Promise<Result<string | undefined>> {
  if (given !== "-") return ok(given);
  if (cli.parts.isTTY && !cli.options.json) {
    const { openPrompter } = await import("../../prompter.ts");
    return (await openPrompter(cli.parts)).ask(named, { secret: true, check: () => undefined });
  }
  const text = await readStdin(cli.parts, VALUE_MAX_CHARS);
  if (text.length > VALUE_MAX_CHARS)
    return fail("invalid_argument", `the value has more than ${VALUE_MAX_CHARS} characters`);
  const value = text.trim();
  return value === "" ? fail("invalid_argument", "standard input has no value") : ok(value);
}

interface SetOptions {
  readonly path: string;
  readonly value?: string;
  readonly dryRun?: boolean;
  readonly unset?: boolean;
}

export async function setConfig(
  cli: Cli,
  { path: named, value: word, dryRun = false, unset = false }: SetOptions,
): Promise<number> {
  if (unset === (word !== undefined)) {
    const error = "Give either a value or --unset.";
    return cli.fail({ code: "invalid_argument", error }, EXIT.usage);
  }
  const path = pathOf(named);
  if (!path.ok) return cli.fail(path, EXIT.usage);
  const given = await valueIn(cli, named, word);
  if (!given.ok) return cli.fail(given, EXIT.usage);
  return withConfigFile(cli, async (desk) => {
    const file = await desk.read();
    if (!file.ok) return cli.fail(file);
    const setting = await settingAt(desk, path.value);
    const change = unset
      ? { path: named, unset: true }
      : { path: named, value: givenValue(given.value ?? "", setting) as never };
    return saveChange(cli, desk, change, { revision: file.value.revision, dryRun }, setting);
  });
}

/** Saves one change, and shows it. A problem is shown with the description of the `setting`. */
export async function saveChange(
  cli: Cli,
  desk: ConfigDesk,
  change: ConfigChange,
  wish: { readonly revision: string; readonly dryRun: boolean },
  setting?: Setting,
): Promise<number> {
  const done = await desk.patch([change], wish);
  const trouble: Trouble | undefined = !done.ok
    ? done
    : done.value.errors.length > 0
      ? { code: "invalid_config", error: done.value.errors.join("\n") }
      : undefined;
  if (trouble !== undefined) return cli.fail({ ...trouble, ...(setting && { hint: helpOf(setting) }) });
  if (!done.ok) return EXIT.failed;
  showChange(cli, done.value);
  showEffect(cli, done.value, desk);
  cli.document({ ok: done.value.errors.length === 0, ...done.value });
  return EXIT.done;
}
