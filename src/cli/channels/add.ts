// Implements `parley channels add`: asks for the values of an account, tests it, and adds it to the
// configuration file.
// The file is written only after the values are complete and tested, unless the user skips the test. The rest
// of the file stays unchanged. A new file is readable only by its owner, because it holds secrets.

import { readFileSync } from "node:fs";
import { dirname } from "node:path";
import { insertAt } from "../../config/editing/text.ts";
import { replaceFile } from "../../config/replace-file.ts";
import { settingsOfText } from "../../config.ts";
import { checkAccountValue, FROM_ENVIRONMENT } from "../../core/account-answer.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { Settings } from "../../core/shapes/settings/settings.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import { showPath } from "../../core/text/value-path.ts";
import { ensureFolder } from "../../world/folders.ts";
import { configToEdit } from "../address.ts";
import { type Cli, EXIT } from "../cli.ts";
import { openPrompter, type Prompter } from "../prompter.ts";
import { CHOICES, type ChannelGuide, findGuide } from "./guides.ts";

export interface AddOptions {
  /** Values from the command line, each as `key=value`. */
  readonly set?: readonly string[];
  readonly account?: string;
  /** Whether the account is not tested at the platform. */
  readonly noTest?: boolean;
}

interface Wanted {
  readonly guide: ChannelGuide;
  readonly values: Readonly<Record<string, string>>;
}

/** Converts a value from the command line: JSON lists and objects, `true` and `false` are parsed. */
function configValue(text: string): unknown {
  if (!/^(?:true|false|\[.*\]|\{.*\})$/s.test(text)) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Parses `key=value` pairs into an object. */
export function readPairs(pairs: readonly string[]): Result<Record<string, string>> {
  const values: Record<string, string> = {};
  for (const pair of pairs) {
    const at = pair.indexOf("=");
    if (at < 1) return fail("invalid_argument", "--set must be key=value, like --set botToken=123:abc");
    values[pair.slice(0, at)] = pair.slice(at + 1);
  }
  return ok(values);
}

async function chooseChannel(
  prompter: Prompter | undefined,
  named: string | undefined,
): Promise<Result<ChannelGuide>> {
  if (named !== undefined) return findGuide(named);
  if (prompter === undefined) {
    const list = CHOICES.map(({ value }) => value).join(", ");
    return fail("invalid_argument", `missing channel; give one of: ${list}`);
  }
  const choice = await prompter.choose("Which channel?", CHOICES);
  return choice.ok ? findGuide(choice.value) : choice;
}

/** Returns a value for each question of the guide, from the command line or from the user. */
export async function answersFor(
  guide: ChannelGuide,
  given: Readonly<Record<string, string>>,
  prompter: Prompter | undefined,
): Promise<Result<Wanted>> {
  const values: Record<string, string> = { ...given };
  if (prompter !== undefined && guide.questions.some(({ key }) => !(key in given))) {
    prompter.show(guide.title, [...guide.first, `More: docs/${guide.page}`]);
  }
  const open = guide.questions.filter(({ key }) => !(key in given));
  if (prompter === undefined && open.length > 0) {
    const keys = open.map(({ key, ask }) => `${key}=… (${ask})`).join(", ");
    const hint = [...guide.first, `More: docs/${guide.page}`].join(" ");
    return fail(
      "cancelled",
      `values are missing and there is no terminal to ask for them: add --set ${keys}`,
      { hint },
    );
  }
  for (const question of guide.questions) {
    const { key, ask, form, secret } = question;
    if (values[key] === undefined) {
      const hint = secret ? " (or ${NAME} of an environment variable)" : "";
      const answer = await prompter?.ask(`${ask}${hint}`, {
        secret,
        check: (text) => checkAccountValue(form, text),
      });
      if (answer?.ok !== true) return answer ?? fail("invalid_argument", `missing value for ${key}`);
      values[key] = answer.value;
    }
    const wrong = checkAccountValue(form, values[key] ?? "");
    if (wrong !== undefined) return fail("invalid_argument", `${key}: ${wrong}`);
  }
  return ok({ guide, values });
}

interface ConfigDraft {
  readonly path: string;
  readonly text: string;
  readonly settings: Settings;
  readonly accountId: string;
}

/** Reads the configuration file at `path`, and adds the account to its text. Writes nothing. */
function draftConfig(
  cli: Cli,
  path: string,
  wanted: Wanted,
  account: string | undefined,
): Result<ConfigDraft> {
  let text = "";
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") {
      return fail("invalid_config", `${path} could not be read: ${(error as Error).message}`);
    }
  }
  return withAccount(cli, { path, text }, wanted, account);
}

/** Adds the account to the text of a configuration file and checks the result. */
export function withAccount(
  { parts: { env, home } }: Cli,
  { path, text }: { readonly path: string; readonly text: string },
  { guide: { channel, questions }, values }: Wanted,
  account: string | undefined,
): Result<ConfigDraft> {
  const keys = account === undefined ? ["channels", channel] : ["channels", channel, "accounts", account];
  // Answers to the guide's questions are strings, even if they look like JSON.
  const asText = questions.map(({ key }) => key);
  const held = Object.entries(values).map(([key, word]) => [
    key,
    asText.includes(key) ? word : configValue(word),
  ]);
  // A channel without questions needs `enabled`, because an account without any key does not count as
  // configured.
  const value = { ...(asText.length === 0 ? { enabled: true } : {}), ...Object.fromEntries(held) };
  const changed = insertAt(text, keys, value);
  if (!changed.ok) {
    const hint = changed.error.endsWith("already exists")
      ? `Change it in ${path}, or add another account with --account NAME.`
      : `Add it by hand to ${path}: ${showPath(keys)}`;
    return { ...changed, hint };
  }
  const read = settingsOfText(changed.value, path, { env, home });
  if (read.settings === undefined) {
    const [problem] = read.problems;
    const at = problem === undefined ? "" : `${showPath(problem.path)} `;
    return fail("invalid_config", `with this account, ${path} would be invalid: ${at}${problem?.text ?? ""}`);
  }
  return ok({ path, text: changed.value, settings: read.settings, accountId: account ?? "default" });
}

/** Tests the account at the platform. Returns the result as text for people. */
export async function testAccount(cli: Cli, draft: ConfigDraft, channel: string): Promise<Result<string>> {
  const accounts = draft.settings.channels.filter(
    (one) => one.channel === channel && one.accountId === draft.accountId,
  );
  const [report] = (await cli.parts.inspectChannels?.(accounts)) ?? [];
  if (report === undefined) return ok("the account was not tested");
  return report.usable ? ok(report.text) : fail("channel_failed", report.text);
}

async function add(cli: Cli, named: string | undefined, options: AddOptions, prompter: Prompter | undefined) {
  const path = await configToEdit(cli);
  if (!path.ok) return path;
  const guide = await chooseChannel(prompter, named);
  if (!guide.ok) return guide;
  const { channel, title, afterwards } = guide.value;
  const given = readPairs(options.set ?? []);
  if (!given.ok) return given;
  const wanted = await answersFor(guide.value, given.value, prompter);
  if (!wanted.ok) return wanted;
  const draft = draftConfig(cli, path.value, wanted.value, options.account);
  if (!draft.ok) return draft;
  const isLater = Object.values(wanted.value.values).some((value) => FROM_ENVIRONMENT.test(value));
  const isConfigured = draft.value.settings.channels.some(({ channel: one }) => one === channel);
  if (options.noTest !== true && isConfigured) {
    const found = await testAccount(cli, draft.value, channel);
    if (found.ok) cli.note(safeLine(`${title}: ${found.value}`));
    else {
      const again = await prompter?.confirm(`${found.error}. Add it anyway?`);
      if (again?.ok !== true || !again.value)
        return { ...found, hint: "Nothing was written. To skip this test, add --no-test." };
    }
  } else if (isLater && !isConfigured) {
    cli.note("The account was not tested, because an environment variable that it uses is not set here.");
  }
  await ensureFolder(dirname(draft.value.path));
  replaceFile(draft.value.path, draft.value.text);
  const { accountId } = draft.value;
  return ok({ channel, afterwards, account: accountId, path: path.value, isLater });
}

export async function addChannel(
  cli: Cli,
  options: AddOptions & { readonly channel?: string },
): Promise<number> {
  const prompter = cli.parts.isTTY && !cli.options.json ? await openPrompter(cli.parts) : undefined;
  const done = await add(cli, options.channel, options, prompter);
  if (!done.ok) {
    const isUsage = done.code === "invalid_argument" || done.code === "channel_unknown";
    return cli.fail(done, isUsage ? EXIT.usage : EXIT.failed);
  }
  const { channel, afterwards, account, path, isLater } = done.value;
  const start = isLater
    ? "Restart the gateway, unless it was started with the environment variable."
    : "Start the gateway. If it is running, it listens now.";
  const steps = [start, ...afterwards];
  cli.say(`Added ${channel}:${account} to ${path}.`);
  for (const [at, step] of steps.entries()) cli.say(`${at + 1}. ${step.replace("{account}", account)}`);
  cli.document({ ok: true, channel, account, path });
  return EXIT.done;
}
