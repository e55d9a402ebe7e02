// Finds settings of an imported configuration that could harm this machine if its author is not trusted. Such
// a setting is written only if it was accepted by name; the others are removed. The report lists all of them,
// and shows only the relevant part of each value: hosts, folders, owners, programs, names of variables.

import type { Tree } from "../../../config/source.ts";
import { fieldsOf, listOf } from "../../../core/json.ts";
import { fail, ok, type Result } from "../../../core/shapes/errors.ts";
import { visibleText } from "../../../core/text/safe-text.ts";
import type { Path } from "../../../core/text/value-path.ts";
import { textIn, textsIn } from "../fields.ts";
import { NOBODY } from "./channels.ts";
import { KEY_VARIABLES } from "./models.ts";
import { drop, replace } from "./tree.ts";

/** Groups of settings, whose names accept all of their settings. */
const TRUST_GROUPS = [
  ...["providers", "owners", "workspaces", "mcp", "images", "tokens", "people", "nodes"],
] as const;

export interface TrustedSetting {
  /** The name to give with `--accept`. */
  readonly name: string;
  readonly group: (typeof TRUST_GROUPS)[number];
  /** Description of the setting's effect. */
  readonly text: string;
  /** True: only its own name accepts it, neither its group nor `all`. */
  readonly byName?: boolean;
}

interface Found extends TrustedSetting {
  /** The values that are taken out if the setting is declined. */
  readonly paths: readonly Path[];
  /**
   * Values that replace those that are declined, by key. Without them, an account would inherit the value of
   * its channel.
   */
  readonly instead?: Readonly<Record<string, unknown>>;
}

const ACCEPT_ALL = "all";
const VARIABLE = /(?<!\$)\$\{([A-Za-z_]\w*)/g;

const variablesIn = (value: unknown): string[] =>
  [...(JSON.stringify(value) ?? "").matchAll(VARIABLE)].map(([, name = ""]) => name);

/** Returns host and port of a URL. The rest is not shown, because it may contain a password. */
function hostOf(address: string): string {
  return URL.canParse(address) ? new URL(address).host : "an invalid address";
}

const isNear = (host: string): boolean => /^(localhost|127(\.\d+){3}|\[::1\])(:\d+)?$/i.test(host);

/** Says what is sent to an address, without values. */
function sending(what: string, variables: readonly string[], own: Readonly<Record<string, unknown>>): string {
  const parts = Object.entries(own).flatMap(([name, value]) =>
    value === undefined ? [] : [`the source's ${name}`],
  );
  if (variables.length > 0) parts.push(`${variables.join(", ")} of the gateway's environment`);
  return `sends ${[what, ...parts].join(" and ")}`;
}

/**
 * Returns the model providers whose address is not on this machine, or gets environment variables of this
 * machine.
 */
function addresses(file: Tree): Found[] {
  return Object.entries(fieldsOf(fieldsOf(file.models).providers)).flatMap(([id, value]) => {
    const { baseUrl, apiKey, headers } = fieldsOf(value);
    const address = textIn(baseUrl, 2_000);
    if (address === undefined) return [];
    // For a known provider without a key in the file, Parley takes the key from the environment.
    const own = apiKey === undefined && KEY_VARIABLES[id] !== undefined ? [KEY_VARIABLES[id]] : [];
    const sent = [...new Set([...own, ...variablesIn([address, apiKey, headers])])].sort();
    const host = hostOf(address);
    if (sent.length === 0 && isNear(host)) return [];
    const text = `${sending("conversations", sent, { key: apiKey, headers })} to ${host}`;
    return [
      { name: `models.providers.${id}`, group: "providers", paths: [["models", "providers", id]], text },
    ];
  });
}

function owners(file: Tree): Found[] {
  return textsIn(fieldsOf(file.commands).owners).map((owner, index) => ({
    ...{ name: `commands.owners.${owner}`, group: "owners" },
    paths: [["commands", "owners", index]],
    text: `lets ${owner} give every command and approve what agents ask for`,
  }));
}

const LINE_CHARS_MAX = 200;

function mcpServers(file: Tree): Found[] {
  const { servers } = fieldsOf(fieldsOf(file.tools).mcp);
  return Object.entries(fieldsOf(servers)).map(([name, value]) => {
    const { command, args, env, url, headers } = fieldsOf(value);
    const own = Object.entries(fieldsOf(env)).map(([variable, text]) => `${variable}=${String(text)}`);
    const program = visibleText([...own, String(command), ...textsIn(args)].join(" "));
    const variables = variablesIn([env, url, headers, args, command]);
    const text =
      url === undefined
        ? `runs the program ${program}` +
          (variables.length === 0 ? "" : `, which gets ${variables.join(", ")} of the gateway's environment`)
        : `${sending("what agents ask", variables, { headers })} to ${hostOf(String(url))}`;
    const path = ["tools", "mcp", "servers", name];
    return { name: path.join("."), group: "mcp", paths: [path], text };
  });
}

function images(file: Tree): Found[] {
  const { defaults, list } = fieldsOf(file.agents);
  const places: [string, Path, unknown][] = [["agents.defaults", ["agents", "defaults"], defaults]];
  for (const [index, agent] of listOf(list).entries())
    places.push([`agents.list.${fieldsOf(agent).id}`, ["agents", "list", index], agent]);
  return places.flatMap(([name, path, agent]) => {
    const image = textIn(fieldsOf(fieldsOf(agent).sandbox).image, LINE_CHARS_MAX);
    if (image === undefined) return [];
    const text = `runs contained commands in the container image ${image}`;
    return [{ name: `${name}.sandbox.image`, group: "images", paths: [[...path, "sandbox", "image"]], text }];
  });
}

const SHOWN_MAX = 20;

function joinNames(names: readonly string[]): string {
  const more = names.length > SHOWN_MAX ? ` and ${names.length - SHOWN_MAX} more` : "";
  return `${names.slice(0, SHOWN_MAX).join(", ")}${more}`;
}

/** Returns the token of one account. Without it, an account is nothing. */
function tokenOf(account: Tree, channel: string, name: string, path: Path): Found[] {
  const key = channel === "telegram" ? "botToken" : "token";
  const token = textIn(account[key]);
  if (token === undefined) return [];
  const [variable] = variablesIn(token);
  const [, id] = /^(\d{1,20}):/.exec(token) ?? [];
  const bot = id === undefined ? "a bot" : `the bot ${id}`;
  const from = variable === undefined ? "" : ` with the token in ${variable}`;
  const text = `answers as ${bot} of ${channel}${from}; everybody who has its token can read and answer, too`;
  // The keys of a channel are also defaults of its accounts.
  const isAccount = path.length > 2;
  return [{ name: `${name}.${key}`, group: "tokens", paths: [isAccount ? path : [...path, key]], text }];
}

/** Returns the allow lists of one account. */
function admissionsOf(account: Tree, name: string, path: Path): Found[] {
  const below = (...keys: readonly string[]): Path[] =>
    keys.filter((key) => account[key] !== undefined).map((key) => [...path, key]);
  const people = textsIn(account.allowFrom);
  const groups = Object.entries(fieldsOf(account.groups)).filter(
    ([, group]) => fieldsOf(group).enabled !== false,
  );
  const writers = textsIn(account.groupAllowFrom);
  const isOpen = account.dmPolicy === "open";
  const anywhere = account.groupPolicy === "open" ? "everybody in any group" : joinNames(writers);
  const places = groups.length > 0 ? `people in the groups ${joinNames(groups.map(([id]) => id))}` : anywhere;
  const found: Found[] = [];
  if (people.length > 0 || isOpen) {
    const text = `lets ${isOpen ? "everybody" : "these people"} write directly: ${joinNames(people)}`;
    const paths = below("allowFrom", ...(isOpen ? ["dmPolicy"] : []));
    found.push({ name: `${name}.allowFrom`, group: "people", text, paths, instead: NOBODY });
  }
  if (places !== "") {
    const paths = below("groups", "groupAllowFrom", "groupPolicy");
    found.push({
      name: `${name}.groups`,
      group: "people",
      text: `answers ${places}`,
      paths,
      instead: NOBODY,
    });
  }
  return found;
}

function admissions(file: Tree): Found[] {
  return Object.entries(fieldsOf(file.channels)).flatMap(([id, section]) => {
    const channel = fieldsOf(section);
    const whole: [Tree, Path] = [channel, ["channels", id]];
    const accounts = Object.entries(fieldsOf(channel.accounts)).map(([account, own]): [Tree, Path] => [
      fieldsOf(own),
      ["channels", id, "accounts", account],
    ]);
    return [whole, ...accounts].flatMap(([account, path]) => {
      const name = path.join(".");
      return [...tokenOf(account, id, name, path), ...admissionsOf(account, name, path)];
    });
  });
}

/** Returns every setting that a person must accept. */
function trustedIn(file: Tree): Found[] {
  return [...addresses(file), ...owners(file), ...mcpServers(file), ...images(file), ...admissions(file)];
}

export interface Judged {
  /** The configuration without declined settings. */
  readonly file: Tree;
  readonly settings: readonly (TrustedSetting & { readonly accepted: boolean })[];
  /** Names of the settings for which the person chose a link. */
  readonly linked: ReadonlySet<string>;
}

/** `link`: accepted, and a workspace is used where it is. */
export type TrustAnswer = boolean | "link";

/** How settings are accepted: by name, all at once, or by asking a person about each. */
export interface Acceptance {
  readonly names: readonly string[];
  readonly ask?: ((setting: TrustedSetting) => Promise<Result<TrustAnswer>>) | undefined;
  /** True: the settings of the configuration were accepted in an earlier import. */
  readonly isRepeated?: boolean;
}

/** Returns the configuration without declined settings. */
function without(file: Tree, declined: readonly Found[]): Tree {
  const kept = structuredClone(file);
  // Drops from the end, so that list indexes stay valid.
  for (const { paths, instead } of declined.toReversed()) {
    for (const path of paths) {
      const value = instead?.[String(path.at(-1))];
      if (value === undefined) drop(kept, path);
      else replace(kept, path, value);
    }
  }
  return kept;
}

/** Removes settings that are not accepted. `rights`: what else must be accepted, outside of the file. */
export async function judgeTrust(
  file: Tree,
  { names, ask, isRepeated = false }: Acceptance,
  rights: readonly TrustedSetting[] = [],
): Promise<Result<Judged>> {
  const found = trustedIn(file);
  const all = [...found, ...rights];
  const known = all.map(({ name }) => name);
  const groups: readonly string[] = TRUST_GROUPS;
  const unknown = names.find((name) => ![ACCEPT_ALL, ...groups, ...known].includes(name));
  if (unknown !== undefined) {
    const hint =
      known.length === 0
        ? "No setting in this configuration needs acceptance."
        : `There are: ${known.join(", ")}, and the groups ${groups.join(", ")}.`;
    return fail("invalid_argument", `no setting named ${JSON.stringify(unknown)} needs acceptance`, { hint });
  }
  const settings: (TrustedSetting & { accepted: boolean })[] = [];
  const linked = new Set<string>();
  for (const [at, { name, group, text, byName = false }] of all.entries()) {
    const isMeant = !byName && (names.includes(ACCEPT_ALL) || names.includes(group));
    const isNamed = isMeant || names.includes(name) || (isRepeated && at < found.length);
    const setting = { name, group, text, ...(byName ? { byName } : {}) };
    const answer = isNamed ? ok(true) : ((await ask?.(setting)) ?? ok(false));
    if (!answer.ok) return answer;
    if (answer.value === "link") linked.add(name);
    settings.push({ ...setting, accepted: answer.value !== false });
  }
  const declined = found.filter((_, at) => settings[at]?.accepted !== true);
  return ok({ file: without(file, declined), settings, linked });
}

/** Returns the configuration without the settings that a person must accept. */
export function withoutTrust(file: Tree): Tree {
  return without(file, trustedIn(file));
}
