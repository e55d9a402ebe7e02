// Finds settings of an imported configuration that could harm this machine if its author is not trusted. Such
// a setting is written only if it was accepted by name; the others are removed. The report lists all of them,
// and shows only the relevant part of each value: hosts, folders, owners, names of variables.

import { existsSync, realpathSync } from "node:fs";
import { dirname, isAbsolute, join, relative, sep } from "node:path";
import type { Tree } from "../../config/source.ts";
import { fieldsOf } from "../../core/json.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { Path } from "../../core/text/value-path.ts";
import { textIn, textsIn } from "../fields.ts";
import { KEY_VARIABLES } from "./models.ts";
import { drop, replace } from "./tree.ts";

export interface TrustedSetting {
  /** The name to give with `--accept`. */
  readonly name: string;
  /** Description of the setting's effect. */
  readonly text: string;
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

/** Returns the settings that send environment variables of this machine to a URL. */
function addresses(file: Tree): Found[] {
  return Object.entries(fieldsOf(fieldsOf(file.models).providers)).flatMap(([id, value]) => {
    const { baseUrl, apiKey, headers } = fieldsOf(value);
    const address = textIn(baseUrl, 2_000);
    if (address === undefined) return [];
    // For a known provider without a key in the file, Parley takes the key from the environment.
    const own = apiKey === undefined && KEY_VARIABLES[id] !== undefined ? [KEY_VARIABLES[id]] : [];
    const sent = [...new Set([...own, ...variablesIn([address, apiKey, headers])])].sort();
    if (sent.length === 0) return [];
    const text = `sends ${sent.join(", ")} of the gateway's environment to ${hostOf(address)}`;
    return [{ name: `models.providers.${id}`, paths: [["models", "providers", id]], text }];
  });
}

function owners(file: Tree): Found[] {
  return textsIn(fieldsOf(file.commands).owners).map((owner, index) => ({
    name: `commands.owners.${owner}`,
    paths: [["commands", "owners", index]],
    text: `lets ${owner} give every command`,
  }));
}

/** Returns whether `folder` is inside `home`, with existing links resolved. */
function isBelow(home: string, folder: string): boolean {
  let at = folder;
  while (!existsSync(at) && dirname(at) !== at) at = dirname(at);
  const way = relative(
    existsSync(home) ? realpathSync(home) : home,
    join(realpathSync(at), relative(at, folder)),
  );
  return way !== "" && way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

function workspaces(file: Tree, home: string): Found[] {
  const { defaults, list } = fieldsOf(file.agents);
  const places: [string, Path, unknown][] = [["agents.defaults", ["agents", "defaults"], defaults]];
  for (const [index, agent] of (Array.isArray(list) ? list : []).entries()) {
    places.push([`agents.list.${fieldsOf(agent).id}`, ["agents", "list", index], agent]);
  }
  return places.flatMap(([name, path, agent]) => {
    const workspace = textIn(fieldsOf(agent).workspace, 2_000);
    if (workspace === undefined) return [];
    const folder = workspace.replace(/^~(?=\/|$)/, home);
    const isOwn = isAbsolute(folder) && !workspace.includes("${") && isBelow(home, folder);
    if (isOwn) return [];
    const text = `lets agents read and write ${workspace}, which is not a folder in your home`;
    return [{ name: `${name}.workspace`, paths: [[...path, "workspace"]], text }];
  });
}

const SHOWN_MAX = 20;

function listed(names: readonly string[]): string {
  const more = names.length > SHOWN_MAX ? ` and ${names.length - SHOWN_MAX} more` : "";
  return `${names.slice(0, SHOWN_MAX).join(", ")}${more}`;
}

/** The strictest values of the settings that admit people. */
const NOBODY = {
  ...{ dmPolicy: "pairing", allowFrom: [], groupPolicy: "allowlist", groupAllowFrom: [], groups: {} },
};

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
  const anywhere = account.groupPolicy === "open" ? "everybody in any group" : listed(writers);
  const places = groups.length > 0 ? `people in the groups ${listed(groups.map(([id]) => id))}` : anywhere;
  const found: Found[] = [];
  if (people.length > 0 || isOpen) {
    const text = `lets ${isOpen ? "everybody" : "these people"} write directly: ${listed(people)}`;
    const paths = below("allowFrom", ...(isOpen ? ["dmPolicy"] : []));
    found.push({ name: `${name}.allowFrom`, text, paths, instead: NOBODY });
  }
  if (places !== "") {
    const paths = below("groups", "groupAllowFrom", "groupPolicy");
    found.push({ name: `${name}.groups`, text: `answers ${places}`, paths, instead: NOBODY });
  }
  return found;
}

function admissions(file: Tree): Found[] {
  return Object.entries(fieldsOf(file.channels)).flatMap(([id, section]) => {
    const channel = fieldsOf(section);
    const accounts = Object.entries(fieldsOf(channel.accounts)).flatMap(([account, own]) =>
      admissionsOf(fieldsOf(own), `channels.${id}.accounts.${account}`, [
        "channels",
        id,
        "accounts",
        account,
      ]),
    );
    return [...admissionsOf(channel, `channels.${id}`, ["channels", id]), ...accounts];
  });
}

/** Returns every setting that a person must accept. */
function trustedIn(file: Tree, home: string): Found[] {
  return [...addresses(file), ...owners(file), ...workspaces(file, home), ...admissions(file)];
}

export interface Judged {
  /** The configuration without declined settings. */
  readonly file: Tree;
  readonly settings: readonly (TrustedSetting & { readonly accepted: boolean })[];
}

/** How settings are accepted: by name, all at once, or by asking a person about each. */
export interface Acceptance {
  readonly names: readonly string[];
  readonly ask?: ((setting: TrustedSetting) => Promise<Result<boolean>>) | undefined;
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
  home: string,
  { names, ask, isRepeated = false }: Acceptance,
  rights: readonly TrustedSetting[] = [],
): Promise<Result<Judged>> {
  const found = trustedIn(file, home);
  const all = [...found, ...rights];
  const known = all.map(({ name }) => name);
  const unknown = names.find((name) => name !== ACCEPT_ALL && !known.includes(name));
  if (unknown !== undefined) {
    const hint =
      known.length === 0
        ? "No setting in this configuration needs acceptance."
        : `There are: ${known.join(", ")}.`;
    return fail("invalid_argument", `no setting named ${JSON.stringify(unknown)} needs acceptance`, { hint });
  }
  const settings: (TrustedSetting & { accepted: boolean })[] = [];
  for (const [at, { name, text }] of all.entries()) {
    const isKnown = isRepeated && at < found.length;
    const isNamed = isKnown || names.includes(ACCEPT_ALL) || names.includes(name);
    const answer = isNamed ? ok(true) : ((await ask?.({ name, text })) ?? ok(false));
    if (!answer.ok) return answer;
    settings.push({ name, text, accepted: answer.value });
  }
  const declined = found.filter((_, at) => settings[at]?.accepted !== true);
  return ok({ file: without(file, declined), settings });
}

/** Returns the configuration without the settings that a person must accept. */
export function withoutTrust(file: Tree, home: string): Tree {
  return without(file, trustedIn(file, home));
}
