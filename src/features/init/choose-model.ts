// The questions of `parley init` about the model: provider, key, model, and one call to test them.
// IN1: a key in a variable stays there: the file refers to it. Only a typed key is written to the file.

import { localServers, type ModelServer, modelsAt } from "../../agent/model/local-models.ts";
import type { Cli } from "../../cli/cli.ts";
import type { Prompter } from "../../cli/prompter.ts";
import { secretsOf } from "../../config/describe.ts";
import { KEY_VARIABLES, predefinedModels } from "../../config/providers.ts";
import { settingsOfText } from "../../config.ts";
import { FROM_ENVIRONMENT } from "../../core/account-answer.ts";
import { optional } from "../../core/optional.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import { quoted } from "../../core/text/cut.ts";
import { Redactor } from "../../core/text/redact/redact.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import { showPath } from "../../core/text/value-path.ts";
import { type ChosenModel, fileText, modelRef } from "./file.ts";

/** Provider of a server whose address the user gives. */
const OTHER = "server";
const OFFLINE = "offline";
const MANUAL = "";
const TITLES: Readonly<Record<string, string>> = {
  anthropic: "Anthropic",
  openai: "OpenAI",
  google: "Google",
};

export interface ModelOptions {
  readonly provider?: string;
  readonly baseUrl?: string;
  readonly model?: string;
  readonly keyEnv?: string;
  readonly noTest?: boolean;
  readonly yes?: boolean;
}

/** A provider that the user can choose. */
interface Offer {
  readonly id: string;
  readonly label: string;
  /** Whether it can be used without another answer. */
  readonly isReady: boolean;
  readonly server?: ModelServer;
  readonly models: readonly string[];
}

interface Around {
  readonly cli: Cli;
  /** Absent if nobody can be asked. */
  readonly prompter: Prompter | undefined;
  /** Path of the configuration file. */
  readonly path: string;
}

/** The answers about the model. `model`: absent for the offline model. */
export interface Choice {
  readonly model: ChosenModel | undefined;
  /** Result of the test. Absent if the model was not tested. */
  readonly tested?: boolean;
}

/** Lists the providers: those with a key or with a local server first. */
export async function findOffers({ parts }: Cli): Promise<Offer[]> {
  const { env, world } = parts;
  const known = [...KEY_VARIABLES].map(([id, variable]): Offer => {
    const isReady = Boolean(env[variable]);
    const models = predefinedModels(id);
    const label = `${TITLES[id] ?? id} (${isReady ? `key in ${variable}` : "needs a key"})`;
    return { id, label, isReady, models };
  });
  const local = (await localServers(env, world)).map((server): Offer => {
    const { id, title, models } = server;
    const isReady = models.length > 0;
    const state = isReady ? `runs here, ${models.length} models` : "does not answer";
    return { id, label: `${title} (${state})`, isReady, server, models };
  });
  const rest: Offer[] = [
    { id: OTHER, label: "Another server with the OpenAI API", isReady: false, models: [] },
    { id: OFFLINE, label: "The offline model (no key, for a first look)", isReady: false, models: [] },
  ];
  const all = [...known, ...local];
  return [...all.filter(({ isReady }) => isReady), ...all.filter(({ isReady }) => !isReady), ...rest];
}

async function chooseOffer(
  offers: readonly Offer[],
  { provider, yes }: ModelOptions,
  prompter: Prompter | undefined,
): Promise<Result<Offer>> {
  const named = offers.find(({ id }) => id === provider);
  if (named !== undefined) return ok(named);
  const ids = offers.map(({ id }) => id).join(", ");
  if (provider !== undefined)
    return fail("invalid_argument", `unknown provider ${quoted(provider, 40)}; providers: ${ids}`);
  const [first] = offers;
  if (prompter === undefined) {
    if (yes === true && first?.isReady === true) return ok(first);
    return fail("invalid_argument", "no model was found: no key in the environment, no local server", {
      hint: `Set ${[...KEY_VARIABLES.values()].join(" or ")}, start Ollama, or add --provider offline.`,
    });
  }
  if (first?.isReady !== true) prompter.show("No model was found", NOTHING_FOUND);
  const shown = offers.map(({ id, label }) => ({ value: id, label }));
  const answer = await prompter.choose("Which model provider?", shown);
  if (!answer.ok) return answer;
  return ok(offers.find(({ id }) => id === answer.value) as Offer);
}

const NOTHING_FOUND = [
  "No key is in the environment, and no Ollama, LM Studio or llama.cpp answers on this machine.",
  "Choose a provider and paste its key, start a local server, or begin with the offline model.",
];

const nonEmpty = (text: string): string | undefined =>
  /^\S+$/.test(text) ? undefined : "The value must not be empty or contain spaces.";

function checkAddress(text: string): string | undefined {
  return /^https?:\/\/\S+$/.test(text) && URL.canParse(text)
    ? undefined
    : "An address looks like http://127.0.0.1:8000/v1.";
}

/** Returns the key for the file: a reference to a variable, or a typed key. Undefined: no key. */
async function keyFor(
  { id }: Offer,
  { keyEnv }: ModelOptions,
  { cli, prompter }: Around,
  isRefused: boolean,
): Promise<Result<string | undefined>> {
  const { env } = cli.parts;
  const own = KEY_VARIABLES.get(id);
  const variable = isRefused ? undefined : (keyEnv ?? (own !== undefined && env[own] ? own : undefined));
  if (variable !== undefined) {
    if (!/^[A-Za-z_]\w*$/.test(variable) || !env[variable])
      return fail("invalid_argument", `the environment variable ${quoted(variable, 60)} is not set`);
    return ok(`\${${variable}}`);
  }
  if (own === undefined && id !== OTHER && !isRefused) return ok(undefined);
  if (prompter === undefined) {
    if (id === OTHER) return ok(undefined);
    return fail("invalid_argument", `the key is missing: set ${own}, or add --key-env NAME`);
  }
  const isOptional = id === OTHER || own === undefined;
  const check = (text: string): string | undefined => {
    if (isOptional && text === "") return undefined;
    const [, name = ""] = /^\$\{(\w+)\}$/.exec(text) ?? [];
    if (FROM_ENVIRONMENT.test(text)) return env[name] ? undefined : `${name} is not set.`;
    return nonEmpty(text);
  };
  const how = isOptional ? "empty: none" : `or \${NAME} of an environment variable`;
  const answer = await prompter.ask(`The key (${how})`, { secret: true, check });
  if (!answer.ok) return answer;
  if (answer.value === "") return ok(undefined);
  return ok(FROM_ENVIRONMENT.test(answer.value) ? answer.value : answer.value.replaceAll("${", "$${"));
}

async function addressFor(
  { id, server }: Offer,
  { baseUrl }: ModelOptions,
  prompter: Prompter | undefined,
): Promise<Result<string | undefined>> {
  if (baseUrl !== undefined) {
    const wrong = checkAddress(baseUrl);
    return wrong === undefined
      ? ok(baseUrl.replace(/\/+$/, ""))
      : fail("invalid_argument", `--base-url: ${wrong}`);
  }
  if (id !== OTHER) return ok(server?.baseUrl);
  if (prompter === undefined) return fail("invalid_argument", "the address is missing: add --base-url <url>");
  const answer = await prompter.ask("Its address, up to the version", { secret: false, check: checkAddress });
  return answer.ok ? ok(answer.value.replace(/\/+$/, "")) : answer;
}

async function modelFor(
  models: readonly string[],
  { model }: ModelOptions,
  prompter: Prompter | undefined,
): Promise<Result<string>> {
  if (model !== undefined) return ok(model);
  const [first] = models;
  if (prompter === undefined) {
    if (first !== undefined) return ok(first);
    return fail("invalid_argument", "the server lists no models: start it, or add --model <id>");
  }
  if (first !== undefined) {
    const shown = models.map((id) => ({ value: id, label: safeLine(id) }));
    const answer = await prompter.choose("Which model?", [
      ...shown,
      { value: MANUAL, label: "Another model" },
    ]);
    if (!answer.ok || answer.value !== MANUAL) return answer;
  }
  return prompter.ask("The id of the model", { secret: false, check: nonEmpty });
}

/** Asks for everything about one model. `isRefused`: the provider refused the key in the environment. */
async function complete(
  offer: Offer,
  options: ModelOptions,
  around: Around,
  isRefused: boolean,
): Promise<Result<ChosenModel>> {
  const { cli, prompter } = around;
  const { env, world } = cli.parts;
  const baseUrl = await addressFor(offer, options, prompter);
  if (!baseUrl.ok) return baseUrl;
  const apiKey = await keyFor(offer, options, around, isRefused);
  if (!apiKey.ok) return apiKey;
  const isServer = !KEY_VARIABLES.has(offer.id);
  const variable = /^\$\{(\w+)\}$/.exec(apiKey.value ?? "")?.[1];
  const key = variable === undefined ? apiKey.value : env[variable];
  const listed =
    isServer && baseUrl.value !== undefined && baseUrl.value !== offer.server?.baseUrl
      ? await modelsAt(baseUrl.value, key, world)
      : offer.models;
  const model = await modelFor(listed, options, prompter);
  if (!model.ok) return model;
  const isListed = listed.includes(model.value);
  const models = isListed && !isServer ? [] : isListed ? listed : [model.value, ...(isServer ? listed : [])];
  const known = { provider: offer.id, model: model.value, models, isServer };
  return ok({ ...known, ...optional({ apiKey: apiKey.value, baseUrl: baseUrl.value }) });
}

/** Calls the model once. Returns undefined if this is not possible here. */
async function tryModel({ cli, path }: Around, chosen: ChosenModel): Promise<Result<string> | undefined> {
  const { env, home, inspectModel } = cli.parts;
  const { settings, problems } = settingsOfText(fileText(chosen), path, { env, home });
  if (settings === undefined) {
    const [problem] = problems;
    return fail("invalid_config", `${showPath(problem?.path ?? [])} ${problem?.text ?? ""}`);
  }
  if (inspectModel === undefined) return undefined;
  const ref = modelRef(chosen);
  cli.note(safeLine(`Asking ${ref} for one word …`));
  const { usable, text } = await inspectModel(settings.providers, ref);
  const words = new Redactor(secretsOf(settings)).mask(`${ref}: ${text}`);
  return usable ? ok(words) : fail("invalid_model", words);
}

type Next = "key" | "other" | "keep";

/** Chooses a model. Asks again after a failed test. */
export async function chooseModel(
  offers: readonly Offer[],
  options: ModelOptions,
  around: Around,
): Promise<Result<Choice>> {
  const { cli, prompter } = around;
  let given = options;
  let offer: Offer | undefined;
  for (let isRefused = false; ; ) {
    const chosen = offer === undefined ? await chooseOffer(offers, given, prompter) : ok(offer);
    if (!chosen.ok) return chosen;
    if (chosen.value.id === OFFLINE) return ok({ model: undefined });
    const model = await complete(chosen.value, given, around, isRefused);
    if (!model.ok) return model;
    const tried = options.noTest === true ? undefined : await tryModel(around, model.value);
    if (tried === undefined) return ok({ model: model.value });
    if (tried.ok) {
      cli.note(safeLine(tried.value));
      return ok({ model: model.value, tested: true });
    }
    if (prompter === undefined)
      return { ...tried, hint: "Nothing was written. To skip this test, add --no-test." };
    cli.note(safeLine(tried.error));
    const next = await prompter.choose<Next>("The test failed. What now?", [
      { value: "key", label: "Enter another key" },
      { value: "other", label: "Choose another provider or model" },
      { value: "keep", label: "Use it anyway" },
    ]);
    if (!next.ok) return next;
    if (next.value === "keep") return ok({ model: model.value, tested: false });
    isRefused = next.value === "key";
    offer = isRefused ? chosen.value : undefined;
    // A new key is for the same model. Another provider has another address, so that no key is sent to the
    // address of the first one.
    given = isRefused
      ? { ...given, model: model.value.model, ...optional({ baseUrl: model.value.baseUrl }) }
      : {};
  }
}
