// Implements `parley upgrade --check`: says what this version of the program changes for a configuration and
// a store, and prints the commands of the upgrade and of the way back.
// Changes nothing, also while gateways of the version before run. The differences are data elsewhere: of
// stores in store/schema/conversion.ts, of settings in config/source.ts, and for people in CHANGELOG.md.

import { readFile, statfs } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { type Cli, EXIT, loadOptionsOf } from "../../cli/cli.ts";
import { count, size } from "../../cli/layout.ts";
import { quoteWord } from "../../cli/shell-words.ts";
import { CHANGED_DEFAULTS, type ChangedDefault, parseText, type Tree, valueAt } from "../../config/source.ts";
import { loadSettings, settingsToConnect } from "../../config.ts";
import { isObject } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { backupFolder, type Settings } from "../../core/shapes/settings/settings.ts";
import { type Path, showPath } from "../../core/text/value-path.ts";
import type { Finding } from "../../feature.ts";
import { FIRST_DEFINED, isLater, isPublished, releaseOf } from "../../store/schema/conversion.ts";
import type { StoreFacts } from "../../store/show.ts";
import { bad, good, risk } from "../doctor/checks/finding.ts";
import { checkStore } from "../doctor/checks/machine-checks.ts";
import { printFinding } from "../doctor/command.ts";

/**
 * Bytes that a slow machine converts in a second. tests/conversion/upgrade.deep.test.ts prints those of
 * yours.
 */
const BYTES_PER_S = 10 * 1024 ** 2;
const KINDS = { embedded: "sqlite", postgres: "postgres" } as const;

/** Returns the paths for which a path with `*` stands. */
function pathsOf(tree: Tree, path: Path): Path[] {
  const at = path.indexOf("*");
  if (at < 0) return [path];
  const named = valueAt(tree, path.slice(0, at));
  return isObject(named) ? Object.keys(named).map((name) => path.with(at, name)) : [];
}

/** Returns a warning for each default that has changed since a release and that the file does not set. */
export function warnOfDefaults(
  tree: Tree,
  since: string,
  changed: readonly ChangedDefault[] = CHANGED_DEFAULTS,
): Finding[] {
  return changed
    .filter((one) => isLater(one.since, since))
    .flatMap((one) => pathsOf(tree, one.path).map((path) => ({ ...one, path })))
    .filter(({ path }) => valueAt(tree, path) === undefined)
    .map(({ path, before, now }) => {
      const [old, current] = [before, now].map((value) => JSON.stringify(value) ?? "nothing");
      const name = showPath(path);
      return now === undefined
        ? risk("default", `${name} was removed; it was ${old}`, "CHANGELOG.md says what replaces it.")
        : risk("default", `${name} is ${current} instead of ${old}`, `To keep it, set ${name} to ${old}.`);
    });
}

/** Returns what the changelog tells operators to do in the releases after `since`, up to `version`. */
export function readToDo(changelog: string, since: string, version: string): string[] {
  const sections = changelog.split(/^## \[/m).filter((section) => {
    const [, release = ""] = /^(\d+\.\d+\.\d+)\]/.exec(section) ?? [];
    return release !== "" && isLater(release, since) && !isLater(release, version);
  });
  return sections.flatMap((section) => {
    const [, part = ""] = /^### What to do$([\s\S]*?)(?=^##|$(?![\s\S]))/m.exec(section) ?? [];
    return [...part.matchAll(/^(?:-|\d+\.) ([\s\S]*?)(?=^(?:-|\d+\.) |$(?![\s\S]))/gm)].map(([, text = ""]) =>
      text.trim().replaceAll(/\s+/g, " "),
    );
  });
}

/** A store that the first start of this version converts. */
interface Conversion {
  readonly facts: StoreFacts;
  readonly from: number;
  /** The release that the store belongs to. Absent if it was never released. */
  readonly release?: string;
}

async function checkConversion({ facts, from, release }: Conversion, dir: string): Promise<Finding[]> {
  const { kind, schema, holds } = facts;
  const bytes = holds?.bytes ?? 0;
  const holding =
    holds === undefined
      ? []
      : [`${count(holds.tally.sessions, "session")} and ${count(holds.tally.messages, "message")}`];
  const what = [
    `the first start converts it from schema version ${from} (${release ?? "unreleased"}) to ${schema.known}`,
    ...holding,
    `${size(bytes)}, about ${count(Math.max(1, Math.ceil(bytes / BYTES_PER_S)), "second")}`,
  ].join(": ");
  const isShared = kind === "postgres" && from >= FIRST_DEFINED && from === schema.known - 1;
  const mend = isShared
    ? "The version before still works with it, so that gateways can be replaced one by one."
    : "Older versions refuse it afterwards: without a backup there is no way back.";
  const needed = `the conversion needs up to ${size(bytes)}`;
  const space = kind === "embedded" ? await statfs(dir).catch(() => undefined) : undefined;
  const free = space && space.bavail * space.bsize;
  const disk =
    free === undefined
      ? good("disk", `${needed} on the server's disk`)
      : free < bytes
        ? bad("disk", `${needed} in ${dir}; ${size(free)} are free`, "Free some space first.")
        : good("disk", `${needed}; ${size(free)} are free`);
  return [risk("conversion", what, mend), disk];
}

/** Returns the steps of the upgrade, and those that go back. */
function planSteps(cli: Cli, { facts, from, release }: Conversion, settings: Settings, configPath?: string) {
  const { version } = cli.parts.machine;
  const { store } = settings;
  const named = cli.options.config === undefined ? "" : ` --config ${quoteWord(resolve(cli.options.config))}`;
  const parley = (words: string): string => `npx parley-gateway${named} ${words}`;
  const install = (wanted: string): string => `npm install --global parley-gateway@${wanted}`;
  const wasPublished = isPublished(release);
  const before = (words: string): string =>
    wasPublished
      ? parley(words)
      : `in your checkout of ${release ?? "that version"}, node bin/parley.js${named} ${words}`;
  const backup = quoteWord(join(backupFolder(store), `before-${version}.sqlite`));
  const [file, copy] = [configPath ?? "", `${configPath}.before-${version}`].map(quoteWord);
  const hasFile = configPath !== undefined;
  const isEmbedded = facts.kind === "embedded";
  const stopAll = "Stop all gateways: while an older one runs, the start is refused.";
  return {
    upgrade: [
      `With the version that runs now: ${before(`store backup ${backup}`)}`,
      ...(hasFile ? [`cp -p ${file} ${copy}`] : []),
      isEmbedded ? "Stop the gateway." : from < FIRST_DEFINED ? stopAll : "Replace the gateways one by one:",
      install(version),
      `Start: ${parley("gateway")} (a service: ${parley("service install")})`,
      parley("doctor --offline"),
    ],
    back: [
      isEmbedded
        ? `Stop the gateway. Move parley.sqlite, -wal, -shm and -mark out of ${store.dir}.`
        : "Stop all gateways. Name a new schema with ?schema=name in store.postgresUrl.",
      ...(release !== undefined && wasPublished ? [install(release)] : []),
      ...(hasFile ? [`cp -p ${copy} ${file}`] : []),
      `With it: ${before(`store restore ${backup}`)}. Accept what it asks about: it is yours.`,
      "Start it. Everything since the backup is lost, and unfinished work of then happens again.",
    ],
  };
}

export async function runUpgrade(cli: Cli, { check }: { readonly check?: boolean }): Promise<number> {
  if (check !== true) {
    const hint = "See what changes for you, and the commands: npx -y parley-gateway@latest upgrade --check";
    return cli.misuse("upgrade installs nothing and changes nothing: it only checks", hint);
  }
  const { version, launcher } = cli.parts.machine;
  const findings: Finding[] = [];
  const options = loadOptionsOf(cli);
  const loaded = loadSettings(options);
  if (loaded.ok) {
    const { path, exists, warnings } = loaded.value;
    findings.push(good("config", exists ? path : `${path} does not exist, so every setting has its default`));
    findings.push(...warnings.map((text): Finding => ({ name: "config", level: "warning", text })));
  } else findings.push(bad("config", loaded.error, loaded.hint));
  // A file with problems may still say where the store is.
  const settings = loaded.ok ? loaded.value.settings : settingsToConnect(options);
  const facts = settings && (await lookAtStore(cli, settings, findings));
  const from = facts?.schema.version;
  const release = from === undefined ? undefined : releaseOf(KINDS[facts?.kind ?? "embedded"], from);
  let steps: ReturnType<typeof planSteps> | undefined;
  if (settings && facts && from !== undefined && from < facts.schema.known) {
    const conversion = { facts, from, ...optional({ release }) };
    findings.push(...(await checkConversion(conversion, settings.store.dir)));
    const path = loaded.ok && loaded.value.exists ? loaded.value.path : undefined;
    steps = planSteps(cli, conversion, settings, path);
  }
  const changelog = join(dirname(dirname(launcher.script)), "CHANGELOG.md");
  let toDo: string[] = [];
  if (release !== undefined) {
    const tree = loaded.ok ? parseText(loaded.value.text, "") : loaded;
    if (tree.ok) findings.push(...warnOfDefaults(tree.value, release));
    toDo = readToDo(await readFile(changelog, "utf8").catch(() => ""), release, version);
  }
  const isReady = findings.every(({ level }) => level !== "problem");

  const wrote =
    from === undefined ? "" : `; the store has schema version ${from} (${release ?? "unreleased"})`;
  cli.say(`This is Parley ${version}${wrote}.`);
  for (const finding of findings) printFinding(cli, finding);
  const list = (title: string, lines: readonly string[] = []): void => {
    if (lines.length > 0) cli.line(`\n${cli.style("bold", title)}`);
    for (const [at, line] of lines.entries()) cli.say(`${at + 1}. ${line}`);
  };
  list("To do, says the changelog:", toDo);
  if (isReady) {
    list("To upgrade:", steps?.upgrade);
    list("To go back:", steps?.back);
  }
  cli.line();
  if (!isReady) cli.line("Fix the problems first. Nothing was changed.");
  else if (steps === undefined) cli.line("No conversion is needed: start this version.");
  else cli.line("This version can be installed. Nothing was changed.");
  const store = facts && { kind: facts.kind, place: facts.place, ...facts.schema, ...optional({ release }) };
  cli.document({ ok: isReady, version, ...optional({ store }), findings, toDo, ...optional({ steps }) });
  return isReady ? EXIT.done : EXIT.failed;
}

/** Adds the findings about the store. Returns its facts if it can be read. */
async function lookAtStore(
  cli: Cli,
  settings: Settings,
  findings: Finding[],
): Promise<StoreFacts | undefined> {
  const checked = await checkStore(cli, settings);
  findings.push(...checked.findings.filter(({ name, level }) => level !== "ok" || name === "store"));
  if (checked.findings.some(({ level }) => level === "problem")) return undefined;
  const shown = await cli.parts.store.show(settings.store);
  if (shown.ok) return shown.value;
  findings.push(bad("store", shown.error, shown.hint));
  return undefined;
}
