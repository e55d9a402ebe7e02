// Implements `parley init`: asks for a model, a service and a channel, tests them, and writes a configuration
// file with comments.
// IN2: the file is written after the last question. Until then Ctrl-C leaves everything unchanged.
// IN3: an existing file is replaced only if the user agrees, and its copy is kept.

import { existsSync } from "node:fs";
import { configToEdit } from "../../cli/address.ts";
import { answersFor, readPairs, testAccount, withAccount } from "../../cli/channels/add.ts";
import { CHOICES, type ChannelGuide, findGuide } from "../../cli/channels/guides.ts";
import { type Cli, EXIT } from "../../cli/cli.ts";
import { openPrompter, type Prompter } from "../../cli/prompter.ts";
import { optional } from "../../core/optional.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import { installService, serviceObjection } from "../service/commands.ts";
import { type Choice, chooseModel, findOffers, type ModelOptions, readyIds } from "./choose-model.ts";
import { fileText, modelRef, writeFile } from "./file.ts";

interface InitOptions extends ModelOptions {
  readonly service?: boolean;
  readonly noService?: boolean;
  readonly channel?: string;
  /** Values of the channel, each as `key=value`. */
  readonly set?: readonly string[];
}

const NO_CHANNEL = "none";

interface Around {
  readonly cli: Cli;
  readonly prompter: Prompter | undefined;
  readonly path: string;
}

interface Plan {
  readonly choice: Choice;
  readonly guide?: ChannelGuide;
  readonly service: boolean;
  readonly text: string;
}

async function mayReplace({ prompter, path }: Around): Promise<Result<void>> {
  if (prompter === undefined || !existsSync(path)) return ok(undefined);
  const answer = await prompter.confirm(`${path} exists. Replace it (a copy is kept)?`);
  if (!answer.ok) return answer;
  return answer.value ? ok(undefined) : fail("cancelled", `nothing was written: ${path} stays as it is`);
}

/** Returns the flags that are missing because nobody can be asked. */
function missingFlags(ready: readonly string[], { path }: Around, options: InitOptions): string[] {
  if (options.yes === true) return [];
  const found = ready.length === 0 ? "nothing was found here" : `found: ${ready.join(", ")}`;
  return [
    ...(options.provider === undefined ? [`--provider <name> (${found})`] : []),
    ...(existsSync(path) ? [`--yes, to replace ${path} (a copy is kept)`] : []),
  ];
}

async function wantsService(
  { cli, prompter }: Around,
  { service, noService }: InitOptions,
): Promise<Result<boolean>> {
  const objection = serviceObjection(cli);
  if (service === true && objection !== undefined) return objection;
  if (service === true) return ok(true);
  if (noService === true || prompter === undefined || objection !== undefined) return ok(false);
  return prompter.confirm("Run the gateway as a service, which starts with this machine?");
}

async function wantedChannel(
  { prompter }: Around,
  options: InitOptions,
): Promise<Result<ChannelGuide | undefined>> {
  const none = { value: NO_CHANNEL, label: "None for now" };
  const answer =
    options.channel !== undefined || prompter === undefined
      ? ok(options.channel ?? NO_CHANNEL)
      : await prompter.choose("Connect a chat channel?", [none, ...CHOICES]);
  if (!answer.ok) return answer;
  return answer.value === NO_CHANNEL ? ok(undefined) : findGuide(answer.value);
}

/** Adds the account of a channel to the text of the file, and tests the account. */
async function addAccount(
  around: Around,
  guide: ChannelGuide,
  options: InitOptions,
  text: string,
): Promise<Result<string>> {
  const { cli, prompter, path } = around;
  const given = readPairs(options.set ?? []);
  if (!given.ok) return given;
  // A second try asks all questions of the guide again, and keeps the other values.
  const questions = guide.questions.map(({ key }) => key);
  const others = Object.entries(given.value).filter(([key]) => !questions.includes(key));
  for (let values = given.value; ; values = Object.fromEntries(others)) {
    const wanted = await answersFor(guide, values, prompter);
    if (!wanted.ok) return wanted;
    const draft = withAccount(cli, { path, text }, wanted.value, undefined);
    if (!draft.ok || options.noTest === true) return draft.ok ? ok(draft.value.text) : draft;
    const found = await testAccount(cli, draft.value, guide.channel);
    if (found.ok) {
      cli.note(safeLine(`${guide.title}: ${found.value}`));
      return ok(draft.value.text);
    }
    if (prompter === undefined)
      return { ...found, hint: "Nothing was written. To skip this test, add --no-test." };
    cli.note(safeLine(found.error));
    const next = await prompter.choose("The test failed. What now?", [
      { value: "again", label: "Enter the values again" },
      { value: "keep", label: "Use them anyway" },
      { value: "none", label: "Continue without a channel" },
    ]);
    if (!next.ok) return next;
    if (next.value !== "again") return ok(next.value === "keep" ? draft.value.text : text);
  }
}

/** Asks all questions. Writes nothing. */
async function plan(around: Around, options: InitOptions): Promise<Result<Plan>> {
  const { cli, prompter } = around;
  const replaced = await mayReplace(around);
  if (!replaced.ok) return replaced;
  if (options.provider === undefined || prompter !== undefined)
    cli.note("Looking for keys and local models …");
  const offers = await findOffers(cli);
  const missing = prompter === undefined ? missingFlags(readyIds(offers), around, options) : [];
  if (missing.length > 0) {
    const hint = "Or add --yes alone: it uses the first model that was found.";
    return fail("invalid_argument", `there is no terminal to ask in; add ${missing.join(", and ")}`, {
      hint,
    });
  }
  const choice = await chooseModel(offers, options, around);
  if (!choice.ok) return choice;
  const guide = await wantedChannel(around, options);
  if (!guide.ok) return guide;
  const base = fileText(choice.value.model);
  const text = guide.value === undefined ? ok(base) : await addAccount(around, guide.value, options, base);
  if (!text.ok) return text;
  const service = await wantsService(around, options);
  if (!service.ok) return service;
  const isConnected = text.value !== base;
  return ok({
    choice: choice.value,
    service: service.value,
    text: text.value,
    ...optional({ guide: isConnected ? guide.value : undefined }),
  });
}

/** Returns the environment variables that the file refers to. */
const variablesIn = (text: string): string[] => [
  ...new Set([...text.matchAll(/(?<!\$)\$\{(\w+)\}/g)].map(([, name = ""]) => name)),
];

async function apply({ cli, path }: Around, done: Plan): Promise<number> {
  const { choice, guide, service, text } = done;
  const copy = await writeFile(path, text);
  cli.say(`Wrote ${path}.`);
  if (copy !== undefined) cli.say(`The file from before is ${copy}.`);
  if (service) {
    // The document of this command is the only one.
    const quiet: Cli = { ...cli, document: () => {} };
    const code = await installService(quiet, { keys: variablesIn(text) });
    if (code !== EXIT.done) return code;
  }
  const steps = [
    service
      ? "Open the page: npx parley-gateway link"
      : "Start the gateway: npx parley-gateway gateway. It prints a link to its page.",
    ...(guide?.afterwards ?? []),
  ];
  for (const [at, step] of steps.entries()) cli.say(`${at + 1}. ${step.replace("{account}", "default")}`);
  const { model, tested } = choice;
  cli.document({
    ok: true,
    path,
    model: modelRef(model),
    tested: tested === true,
    service,
    ...optional({ copy, channel: guide?.channel }),
  });
  return EXIT.done;
}

export async function runInit(cli: Cli, options: InitOptions): Promise<number> {
  const { isTTY } = cli.parts;
  const path = await configToEdit(cli);
  if (!path.ok) return cli.fail(path);
  const canAsk = isTTY && !cli.options.json && options.yes !== true;
  const prompter = canAsk ? await openPrompter(cli.parts) : undefined;
  const around: Around = { cli, prompter, path: path.value };
  const done = await plan(around, options);
  if (done.ok) return apply(around, done.value);
  const isUsage = done.code === "invalid_argument" || done.code === "channel_unknown";
  return cli.fail(done, isUsage ? EXIT.usage : EXIT.failed);
}
