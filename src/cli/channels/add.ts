// Owns `parley channels add`: asks for what an account needs, tries it, and writes it into the configuration
// file.
// CA1: nothing is written before everything is known and tried, or the user wants it untried; what stands in
//      the file stays as it is.
// CA2: a file that is made for it is its owner's alone: secrets stand in it.

import { readFileSync, realpathSync, renameSync, statSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { insertAt } from "../../config/insert.ts";
import { showPath } from "../../config/source.ts";
import { configPathOf, settingsOfText } from "../../config.ts";
import { CHANNEL_IDS, type ChannelId } from "../../core/channel-settings.ts";
import { fail, ok, type Result } from "../../core/errors.ts";
import { safeLine } from "../../core/safe-text.ts";
import type { Settings } from "../../core/settings.ts";
import { ensureFolder } from "../../world/folders.ts";
import { type Cli, EXIT } from "../cli.ts";
import { checkAnswer, FROM_ENVIRONMENT, GUIDES } from "./guides.ts";
import { openPrompter, type Prompter } from "./prompter.ts";

export interface AddOptions {
  /** `key=value`, as often as there are keys. */
  readonly set?: readonly string[];
  readonly account?: string;
  /** False: it is not tried at the platform. */
  readonly test?: boolean;
}

interface Wanted {
  readonly channel: ChannelId;
  readonly values: Readonly<Record<string, string>>;
}

function isChannel(name: string): name is ChannelId {
  return (CHANNEL_IDS as readonly string[]).includes(name);
}

/** What the file holds for a value of the command line: lists, tables, true and false as they are there. */
function inFile(text: string): unknown {
  if (!/^(?:true|false|\[.*\]|\{.*\})$/s.test(text)) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** `key=value` pairs as an object. */
function readPairs(pairs: readonly string[]): Result<Record<string, string>> {
  const values: Record<string, string> = {};
  for (const pair of pairs) {
    const at = pair.indexOf("=");
    if (at < 1) return fail("invalid_argument", "--set takes key=value, like --set botToken=123:abc");
    values[pair.slice(0, at)] = pair.slice(at + 1);
  }
  return ok(values);
}

async function chooseChannel(
  prompter: Prompter | undefined,
  named: string | undefined,
): Promise<Result<ChannelId>> {
  const list = CHANNEL_IDS.join(", ");
  if (named !== undefined) {
    if (isChannel(named)) return ok(named);
    return fail(
      "channel_unknown",
      `there is no channel ${JSON.stringify(named.slice(0, 40))}; there are: ${list}`,
    );
  }
  if (prompter === undefined) return fail("invalid_argument", `which channel? One of: ${list}`);
  return prompter.choose(
    "Which channel?",
    CHANNEL_IDS.map((id) => ({ value: id, label: GUIDES[id].title })),
  );
}

/** All that the channel needs: from the command line, else asked for. */
async function answersFor(
  channel: ChannelId,
  given: Readonly<Record<string, string>>,
  prompter: Prompter | undefined,
): Promise<Result<Wanted>> {
  const guide = GUIDES[channel];
  const values: Record<string, string> = { ...given };
  if (prompter !== undefined && guide.questions.some(({ key }) => !(key in given))) {
    prompter.tell(guide.title, [...guide.first, `More: docs/${guide.page}`]);
  }
  const open = guide.questions.filter(({ key }) => !(key in given));
  if (prompter === undefined && open.length > 0) {
    const keys = open.map(({ key, ask }) => `${key}=… (${ask})`).join(", ");
    const hint = [...guide.first, `More: docs/${guide.page}`].join(" ");
    return fail("cancelled", `there is no terminal to ask at: --set needs ${keys}`, { hint });
  }
  for (const question of guide.questions) {
    const { key, ask, secret } = question;
    if (values[key] === undefined) {
      const hint = secret ? " (or ${NAME} of an environment variable)" : "";
      const told = await prompter?.ask(`${ask}${hint}`, {
        secret,
        check: (text) => checkAnswer(question, text),
      });
      if (told?.ok !== true) return told ?? fail("invalid_argument", `${key} is needed`);
      values[key] = told.value;
    }
    const wrong = checkAnswer(question, values[key] ?? "");
    if (wrong !== undefined) return fail("invalid_argument", `${key}: ${wrong}`);
  }
  return ok({ channel, values });
}

interface Placed {
  readonly path: string;
  readonly exists: boolean;
  readonly text: string;
  readonly settings: Settings;
  readonly accountId: string;
}

/** The file as it would be. */
function place(cli: Cli, { channel, values }: Wanted, account: string | undefined): Result<Placed> {
  const { env, home } = cli.parts;
  const named = cli.options.config === undefined ? {} : { configPath: cli.options.config };
  const options = { env, home, ...named };
  const path = configPathOf(options);
  let text = "";
  let exists = true;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") {
      return fail("invalid_config", `${path} could not be read: ${(error as Error).message}`);
    }
    exists = false;
  }
  const keys = account === undefined ? ["channels", channel] : ["channels", channel, "accounts", account];
  // What is asked for is text, whatever it looks like.
  const asText = GUIDES[channel].questions.map(({ key }) => key);
  const held = Object.entries(values).map(([key, word]) => [key, asText.includes(key) ? word : inFile(word)]);
  // Where nothing is asked for, this is what makes an account of it.
  const value = { ...(asText.length === 0 ? { enabled: true } : {}), ...Object.fromEntries(held) };
  const changed = insertAt(text, keys, value);
  if (!changed.ok) {
    const hint = changed.error.endsWith("already exists")
      ? `Change it in ${path}, or add a further account with --account NAME.`
      : `Add it by hand to ${path}: ${showPath(keys)}`;
    return { ...changed, hint };
  }
  const read = settingsOfText(changed.value, path, options);
  if (read.settings === undefined) {
    const [problem] = read.problems;
    const at = problem === undefined ? "" : `${showPath(problem.path)} `;
    return fail("invalid_config", `${path} would be wrong: ${at}${problem?.text ?? ""}`);
  }
  return ok({ path, exists, text: changed.value, settings: read.settings, accountId: account ?? "default" });
}

/** Written beside it first: whoever reads the file sees the old text or the new one. */
async function write({ path, exists, text }: Placed): Promise<void> {
  const file = exists ? realpathSync(path) : path;
  await ensureFolder(dirname(file));
  const beside = `${file}.new`;
  writeFileSync(beside, text, { mode: exists ? statSync(file).mode & 0o777 : 0o600 });
  renameSync(beside, file);
}

/** Whether the platform knows the account. */
async function tried(cli: Cli, placed: Placed, channel: ChannelId): Promise<Result<string>> {
  const accounts = placed.settings.channels.filter(
    (one) => one.channel === channel && one.accountId === placed.accountId,
  );
  const [report] = (await cli.parts.inspectChannels?.(accounts)) ?? [];
  if (report === undefined) return ok("it was not tried");
  return report.usable ? ok(report.text) : fail("channel_failed", report.text);
}

async function add(cli: Cli, named: string | undefined, options: AddOptions, prompter: Prompter | undefined) {
  const channel = await chooseChannel(prompter, named);
  if (!channel.ok) return channel;
  const given = readPairs(options.set ?? []);
  if (!given.ok) return given;
  const wanted = await answersFor(channel.value, given.value, prompter);
  if (!wanted.ok) return wanted;
  const placed = place(cli, wanted.value, options.account);
  if (!placed.ok) return placed;
  const isLater = Object.values(wanted.value.values).some((value) => FROM_ENVIRONMENT.test(value));
  const isConfigured = placed.value.settings.channels.some(({ channel: one }) => one === channel.value);
  if (options.test !== false && isConfigured) {
    const found = await tried(cli, placed.value, channel.value);
    if (found.ok) cli.note(safeLine(`${GUIDES[channel.value].title}: ${found.value}`));
    else {
      const again = await prompter?.confirm(`${found.error}. Write it all the same?`);
      if (again?.ok !== true || !again.value)
        return { ...found, hint: "Nothing was written. --no-test writes it untried." };
    }
  } else if (isLater && !isConfigured) {
    cli.note("A variable that it names is not set here: it was not tried.");
  }
  await write(placed.value);
  return ok({ channel: channel.value, account: placed.value.accountId, path: placed.value.path });
}

export async function addChannel(cli: Cli, [named]: readonly string[], options: AddOptions): Promise<number> {
  const prompter = cli.parts.isTTY && !cli.options.json ? await openPrompter(cli.parts) : undefined;
  const done = await add(cli, named, options, prompter);
  if (!done.ok) {
    const isUsage = done.code === "invalid_argument" || done.code === "channel_unknown";
    return cli.fail(done, isUsage ? EXIT.usage : EXIT.failed);
  }
  const { channel, account, path } = done.value;
  const steps = [
    "Restart the gateway: it reads its configuration at the start.",
    ...GUIDES[channel].afterwards,
  ];
  cli.line(safeLine(`${path} has the account ${channel}:${account}.`));
  for (const [at, step] of steps.entries())
    cli.line(safeLine(`${at + 1}. ${step.replace("{account}", account)}`));
  cli.document({ ok: true, channel, account, path });
  return EXIT.done;
}
